import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useManagesClients } from '../api/session.ts';
import { useListState } from '../ui/list-state.ts';
import { PageButtons } from '../ui/pager.tsx';
import { PageHead } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import { type AuditEntry, auditQuery, exportUrl } from './data.ts';
import { AuditTools, useAuditFilter } from './filter.tsx';
import './audit.css';

const CLIENT: Column<AuditEntry> = {
  key: 'client',
  title: 'Client',
  kind: 'number',
  render: (entry) => entry.client_id,
};

export function AuditLog() {
  const scope = useScope();
  const filter = useAuditFilter();
  const query = useQuery(auditQuery(filter));
  const isOfAll = useManagesClients();
  return (
    <>
      <PageHead
        title="Audit log"
        actions={
          query.data && (
            <>
              <a className="button" href={exportUrl(filter, 'csv')} download="audit.csv">
                Export CSV
              </a>
              <a className="button" href={exportUrl(filter, 'jsonl')} download="audit.jsonl">
                Export JSON lines
              </a>
            </>
          )
        }
      >
        <p>Every change: when, by which token, and what it changed.</p>
      </PageHead>
      <section className="card" aria-label="Audit log">
        <AuditTools />
        {query.data ? (
          <Table
            label="Entries"
            columns={columnsOf(scope, isOfAll)}
            rows={query.data.results}
            rowKey={(entry) => entry.id}
            empty={<EmptyState title="No entry matches">Changes appear here.</EmptyState>}
          />
        ) : (
          <NotLoaded query={query} rows={6} />
        )}
        <AuditPager next={query.data?.next ?? null} />
      </section>
    </>
  );
}

/** `isOfAll`: the log has the changes of all clients. */
const columnsOf = (scope: Scope, isOfAll: boolean): Column<AuditEntry>[] => [
  {
    key: 'operation',
    title: 'Operation',
    kind: 'name',
    render: (entry) => <Link to={scope.path('audit', entry.id)}>{entry.operation}</Link>,
  },
  { key: 'at', title: 'When', render: (entry) => <FullDate at={entry.at} /> },
  { key: 'token', title: 'Token', render: (entry) => <bdi>{tokenOf(entry)}</bdi> },
  ...(isOfAll ? [CLIENT] : []),
  { key: 'project', title: 'Project', kind: 'number', render: (entry) => entry.project_id },
  { key: 'changes', title: 'Changed', kind: 'wrap', render: (entry) => <bdi>{changedRows(entry)}</bdi> },
];

export function tokenOf({ token }: AuditEntry): string {
  return token === null ? 'command' : (token.name ?? String(token.id));
}

/** `volumes: database; quota_counters`. Names are known of new, deleted and renamed rows. */
function changedRows({ changes }: AuditEntry): string {
  const byTable = Map.groupBy(changes, ({ table }) => table);
  const texts = [...byTable].map(([table, rows]) => {
    const names = rows
      .map(({ before, after }) => (after ?? before)?.['name'])
      .filter((name) => typeof name === 'string' && name !== '');
    return names.length === 0 ? table : `${table}: ${[...new Set(names)].join(', ')}`;
  });
  return texts.join('; ');
}

/** The log has no page numbers: entries are added all the time. */
function AuditPager({ next }: { next: number | null }) {
  const state = useListState();
  if (next === null && state.get('before') === '') return null;
  return (
    <PageButtons
      back={{ label: 'Newest', go: state.get('before') === '' ? null : () => state.set({ before: '' }) }}
      forward={{ label: 'Older', go: next === null ? null : () => state.set({ before: String(next) }) }}
    />
  );
}
