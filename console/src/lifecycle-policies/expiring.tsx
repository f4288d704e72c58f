import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Card } from '../ui/detail-page.tsx';
import { formatGib } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import { forecastQuery, type Policy } from './data.ts';

/** The existing snapshots that the policy will delete, and when. */
export function Expiring({ policy }: { policy: Policy }) {
  const scope = useScope();
  const query = useQuery(forecastQuery(scope, policy.id));
  if (!query.data) return <NotLoaded query={query} />;
  const { runs, expiring } = query.data;
  const names = new Map((policy.volumes ?? []).map((volume) => [volume.volume_id, volume.volume_name]));
  return (
    <Card title="Snapshots that retention will delete">
      <Table
        label="Snapshots that retention will delete"
        rows={expiring}
        rowKey={(snapshot) => snapshot.snapshot_id}
        columns={[
          { key: 'at', title: 'When', render: (snapshot) => <FullDate at={snapshot.expires_at} /> },
          {
            key: 'name',
            title: 'Snapshot',
            kind: 'name',
            render: (snapshot) => <Link to={scope.path('snapshots', snapshot.snapshot_id)}>{snapshot.name}</Link>,
          },
          {
            key: 'volume',
            title: 'Volume',
            render: (snapshot) => <bdi>{names.get(snapshot.volume_id) ?? snapshot.volume_id}</bdi>,
          },
          {
            key: 'schedule',
            title: 'Schedule',
            kind: 'number',
            render: (snapshot) => policy.schedules.findIndex(({ id }) => id === snapshot.schedule_id) + 1,
          },
          { key: 'size', title: 'Size', kind: 'number', render: (snapshot) => formatGib(snapshot.size) },
        ]}
        empty={
          <EmptyState title="No snapshot will be deleted">
            {policy.status === 'paused'
              ? 'While the policy is paused, no snapshot expires.'
              : `None within the next ${runs.length} runs. The newest snapshot of a volume is always kept.`}
          </EmptyState>
        }
      />
    </Card>
  );
}
