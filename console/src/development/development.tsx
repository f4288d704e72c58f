import { useQuery } from '@tanstack/react-query';
import { Outlet } from '@tanstack/react-router';
import { useNotOperatorReason } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { ActionLink, PageHead } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Activity } from './activity.tsx';
import { Clock } from './clock.tsx';
import { type Fault, faultsQuery } from './data.ts';

export function Development() {
  return (
    <>
      <PageHead title="Development mode">
        <p>A clock that you move, and faults that you inject, to see how programs react. Never for production.</p>
      </PageHead>
      <div className="stack">
        <Clock />
        <Activity />
        <Faults />
      </div>
      <Outlet />
    </>
  );
}

const COLUMNS: Column<Fault>[] = [
  { key: 'resource', title: 'Resource', render: (fault) => fault.resource.replaceAll('_', ' ') },
  { key: 'operation', title: 'Operation', render: (fault) => fault.operation },
  { key: 'mode', title: 'Effect', render: (fault) => fault.mode },
  { key: 'remaining', title: 'Remaining', kind: 'number', render: (fault) => `${fault.remaining} of ${fault.count}` },
  {
    key: 'seconds',
    title: 'Duration',
    kind: 'number',
    render: (fault) => (fault.seconds === null ? '–' : `${fault.seconds} s`),
  },
  { key: 'message', title: 'Message', kind: 'wrap', render: (fault) => <bdi>{fault.message}</bdi> },
  { key: 'actions', title: 'Actions', kind: 'actions', render: (fault) => <Clear fault={fault} /> },
];

function Clear({ fault }: { fault: Fault }) {
  const scope = useScope();
  const reason = useNotOperatorReason();
  return (
    <ActionLink
      to={scope.path('development', 'faults', fault.id, 'clear')}
      className="small quiet danger"
      disabledReason={reason}
    >
      Clear <span className="visually-hidden">fault {fault.id}</span>
    </ActionLink>
  );
}

function Faults() {
  const scope = useScope();
  const reason = useNotOperatorReason();
  const query = useQuery(faultsQuery);
  const count = query.data?.count ?? 0;
  return (
    <Card
      title="Injected faults"
      actions={
        <div className="row">
          {count > 0 && (
            <ActionLink to={scope.path('development', 'faults', 'clear')} className="small" disabledReason={reason}>
              Clear all faults
            </ActionLink>
          )}
          <ActionLink
            to={scope.path('development', 'faults', 'new')}
            className="small"
            disabledReason={reason}
            shortcut="create"
          >
            <Icon name="plus" /> Inject fault
          </ActionLink>
        </div>
      }
    >
      {query.data ? (
        <Table
          label="Injected faults"
          rows={query.data.results}
          rowKey={(fault) => fault.id}
          columns={COLUMNS}
          empty={
            <EmptyState title="No faults">
              A fault makes the next operations of a driver fail, stall or take longer.
            </EmptyState>
          }
        />
      ) : (
        <NotLoaded query={query} />
      )}
    </Card>
  );
}
