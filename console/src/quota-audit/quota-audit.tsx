import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { clientsQuery } from '../clients/data.ts';
import { ActionButton } from '../ui/action-button.tsx';
import { CodeBlock } from '../ui/copy.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { formatNumber } from '../ui/numbers.ts';
import { regionsQuery } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';

type Drift = components['schemas']['QuotaDrift'];

/** Compares all usages on the server, so it is read when the page opens and on request only. */
const auditQuery = queryOptions({
  queryKey: ['quota_audit'],
  queryFn: () => unwrap(api.GET('/cloudyard/v1/quota_audit', {})),
  staleTime: 0,
});

interface Names {
  readonly client: (drift: Drift) => string;
  readonly region: (drift: Drift) => string;
}

const columnsOf = ({ client, region }: Names): Column<Drift>[] => [
  { key: 'client', title: 'Client', sortBy: client, render: (drift) => <bdi>{client(drift)}</bdi> },
  { key: 'region', title: 'Region', sortBy: region },
  { key: 'kind', title: 'Quota', sortBy: (drift) => drift.kind, render: (drift) => drift.kind.replaceAll('_', ' ') },
  {
    key: 'counted',
    title: 'Counted',
    kind: 'number',
    sortBy: (drift) => drift.counted,
    render: (drift) => formatNumber(drift.counted),
  },
  {
    key: 'in-use',
    title: 'In use',
    kind: 'number',
    sortBy: (drift) => drift.in_use,
    render: (drift) => formatNumber(drift.in_use),
  },
];

export function QuotaAudit() {
  const query = useQuery(auditQuery);
  const clients = useQuery(clientsQuery).data?.results ?? [];
  const regions = useQuery(regionsQuery).data?.results ?? [];
  const names: Names = {
    client: ({ client_id }) => clients.find(({ id }) => id === client_id)?.name ?? String(client_id),
    region: ({ region_id }) =>
      region_id === null ? 'all' : (regions.find(({ id }) => id === region_id)?.display_name ?? String(region_id)),
  };
  return (
    <div className="stack">
      <ListPage
        title="Quota audit"
        description="Usages that limits are checked against, where they differ from the resources."
        actions={
          <ActionButton isDisabled={query.isFetching} onClick={() => void query.refetch()}>
            Compare again
          </ActionButton>
        }
        query={query}
        columns={columnsOf(names)}
        rowKey={(drift) => `${drift.client_id} ${drift.region_id} ${drift.kind}`}
        textOf={(drift) => `${names.client(drift)} ${names.region(drift)} ${drift.kind}`}
        empty={{ title: 'All usages match the resources', text: 'Nothing needs to be repaired.' }}
      />
      {(query.data?.count ?? 0) > 0 && (
        <section className="card" aria-label="Repair">
          <div className="card-body stack">
            <p>This command corrects the usages:</p>
            <CodeBlock text="cloudyard quota audit --repair" what="the command" />
          </div>
        </section>
      )}
    </div>
  );
}
