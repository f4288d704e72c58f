import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { FullDate } from '../ui/time.tsx';
import { type AuditChange, type AuditEntry, auditEntryQuery } from './data.ts';
import { tokenOf } from './list.tsx';
import './audit.css';

export function AuditEntryDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  return (
    <DetailPage
      crumbs={[{ title: 'Audit log', to: scope.path('audit') }]}
      query={useQuery(auditEntryQuery(Number(id)))}
      titleOf={(entry) => entry.operation}
      actions={() => null}
      tabs={(entry) => [
        { key: 'changes', title: 'Changes', render: () => <Overview entry={entry} /> },
        { key: 'origin', title: 'Origin', render: () => <Origin entry={entry} /> },
      ]}
    />
  );
}

function Overview({ entry }: { entry: AuditEntry }) {
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            When: <FullDate at={entry.at} />,
            Token: <bdi>{tokenOf(entry)}</bdi>,
            Project: entry.project_id,
            Region: entry.region_id,
            Client: entry.client_id,
            'Request ID': entry.request_id && <code>{entry.request_id}</code>,
          }}
        />
      </Card>
      {entry.changes.length === 0 && <EmptyState title="No row changed" />}
      {entry.changes.map((change, at) => (
        <Change key={at} change={change} />
      ))}
    </>
  );
}

interface Difference {
  readonly column: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The changed columns of a row, before and after. */
function Change({ change }: { change: AuditChange }) {
  const { table, before, after } = change;
  const columns = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const rows = columns.map((column): Difference => ({ column, before: before?.[column], after: after?.[column] }));
  const verb = before === null ? 'created' : after === null ? 'deleted' : 'changed';
  const name = `${table} ${keyOf(change)}`;
  return (
    <Card title={`${name}: ${verb}`}>
      <Table
        label={name}
        rows={rows}
        rowKey={(row) => row.column}
        columns={[
          { key: 'column', title: 'Column', render: (row) => <code>{row.column}</code> },
          { key: 'before', title: 'Before', kind: 'wrap', render: (row) => valueOf(row.before, 'audit-before') },
          { key: 'after', title: 'After', kind: 'wrap', render: (row) => valueOf(row.after, 'audit-after') },
        ]}
      />
    </Card>
  );
}

/** The columns that identify rows without an ID, such as quotas. */
const keyColumns = ['region_id', 'kind', 'name', 'policy_id', 'volume_id'];

function keyOf({ id, before, after }: AuditChange): string {
  if (id !== null) return String(id);
  const row = after ?? before ?? {};
  return keyColumns.flatMap((column) => (row[column] === undefined ? [] : [String(row[column])])).join(' ');
}

function valueOf(value: unknown, className: string) {
  if (value === undefined) return <span className="muted">–</span>;
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 1);
  return (
    <pre className={className}>
      <bdi>{text}</bdi>
    </pre>
  );
}

function Origin({ entry }: { entry: AuditEntry }) {
  const items = Object.entries(entry.origin);
  if (items.length === 0) return <EmptyState title="No origin">A command on the host made this change.</EmptyState>;
  return (
    <Card title="Origin">
      <Properties items={Object.fromEntries(items.map(([name, value]) => [name, <bdi key={name}>{value}</bdi>]))} />
    </Card>
  );
}
