import type { components } from '../api/openapi.d.ts';
import { Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';

type Attempt = components['schemas']['DeliveryAttempt'];

/** The last attempts of a delivery with the response of the receiver, the newest first. */
export function Attempts({ target, attempts }: { target: string; attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return null;
  return (
    <Table
      label={`Attempts to ${target}`}
      rows={attempts.toReversed()}
      rowKey={(attempt) => attempt.at}
      columns={[
        { key: 'at', title: 'Attempt', render: (attempt) => <FullDate at={attempt.at} /> },
        {
          key: 'answer',
          title: 'Response',
          kind: 'wrap',
          render: (attempt) => <bdi className="mono">{attempt.answer}</bdi>,
        },
      ]}
    />
  );
}
