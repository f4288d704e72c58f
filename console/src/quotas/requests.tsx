import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useLimitedReason, useManagesClients, useNotOperatorReason, useSession } from '../api/session.ts';
import { clientsQuery } from '../clients/data.ts';
import { Card } from '../ui/detail-page.tsx';
import { Rows } from '../ui/list-page.tsx';
import { formatNumber } from '../ui/numbers.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { type QuotaRequest, quotaRequestsQuery } from './data.ts';
import { quotaTitle } from './gauges.tsx';

/** The requests of the client; for an admin of the operator, of all clients. */
export function QuotaRequests() {
  const scope = useScope();
  const isOfAll = useManagesClients();
  const clients = useQuery({ ...clientsQuery, enabled: isOfAll }).data?.results ?? [];
  const nameOf = ({ client_id }: QuotaRequest) => clients.find(({ id }) => id === client_id)?.name ?? String(client_id);
  const client: Column<QuotaRequest> = {
    key: 'client',
    title: 'Client',
    kind: 'clip',
    render: (each) => (
      <Link to={scope.path('clients', each.client_id)} search={{ tab: 'quotas' } as never}>
        {nameOf(each)}
      </Link>
    ),
  };
  return (
    <Card title="Limit requests">
      <Rows
        title="Limit requests"
        query={useQuery(quotaRequestsQuery)}
        columns={[...(isOfAll ? [client] : []), ...COLUMNS]}
        rowKey={(each) => each.id}
        textOf={(each) =>
          [...(isOfAll ? [nameOf(each)] : []), ...limitsOf(each), each.description, each.reason].join(' ')
        }
        filters={[{ name: 'status', label: 'Status', valueOf: (each) => each.status }]}
        empty={{
          title: 'No limit was requested',
          text: 'A request goes to the operator, who approves or declines it.',
        }}
      />
    </Card>
  );
}

const COLUMNS: Column<QuotaRequest>[] = [
  { key: 'status', title: 'Status', render: (each) => <StatusBadge status={each.status} /> },
  { key: 'limits', title: 'Limits', kind: 'wrap', render: (each) => limitsOf(each).join(', ') },
  { key: 'description', title: 'Why', kind: 'wrap', render: (each) => <bdi>{each.description}</bdi> },
  { key: 'reason', title: 'Decision', kind: 'wrap', render: (each) => <bdi>{each.reason}</bdi> },
  { key: 'created', title: 'Created', render: (each) => <Ago at={each.created_at} /> },
  { key: 'actions', title: 'Actions', kind: 'actions', render: (each) => <Actions request={each} /> },
];

/** `Volumes: 200 (region 1)`. */
function limitsOf({ requested_limits: { global_limits, regional_limits = [] } }: QuotaRequest): string[] {
  const texts = (limits: object, place: string) =>
    Object.entries(limits)
      .filter(([name]) => name.endsWith('_limit'))
      .map(([name, limit]) => `${quotaTitle(name.slice(0, -'_limit'.length))}: ${formatNumber(Number(limit))}${place}`);
  return [
    ...texts(global_limits ?? {}, ''),
    ...regional_limits.flatMap((limits) => texts(limits, ` (region ${String(limits.region_id)})`)),
  ];
}

function Actions({ request }: { request: QuotaRequest }) {
  const scope = useScope();
  const { is_operator } = useSession();
  const limited = useLimitedReason();
  const notOperator = useNotOperatorReason();
  const isOpen = request.status === 'in progress';
  return (
    <div className="row">
      {isOpen && is_operator && (
        <>
          <ActionLink
            to={scope.path('quotas', 'requests', request.id, 'approve')}
            className="small"
            disabledReason={notOperator}
          >
            Approve <span className="visually-hidden">request {request.id}</span>
          </ActionLink>
          <ActionLink
            to={scope.path('quotas', 'requests', request.id, 'decline')}
            className="small"
            disabledReason={notOperator}
          >
            Decline <span className="visually-hidden">request {request.id}</span>
          </ActionLink>
        </>
      )}
      <ActionLink
        to={scope.path('quotas', 'requests', request.id, 'delete')}
        className="small quiet danger"
        disabledReason={limited ?? (isOpen ? null : 'The request was decided')}
      >
        Delete <span className="visually-hidden">request {request.id}</span>
      </ActionLink>
    </div>
  );
}
