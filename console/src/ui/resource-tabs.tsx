import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, unwrap } from '../api/client.ts';
import type { components, paths } from '../api/openapi.d.ts';
import { useSession } from '../api/session.ts';
import { Card, type Tab } from './detail-page.tsx';
import { type Scope, useScope } from './scope.tsx';
import { EmptyState, NotLoaded } from './states.tsx';
import { StatusBadge } from './status.tsx';
import { Table } from './table.tsx';
import { taskTitle } from './task-text.ts';
import { Ago, FullDate } from './time.tsx';

type Tag = components['schemas']['Tag'];

/** The tabs of a resource: its tags, its tasks and its entries in the audit log. */
export function resourceTabs(options: {
  /** Absent: resources of this kind have no tags. */
  readonly tags?: readonly Tag[];
  /** Of the table of the resource, as in the audit log: `file_shares`. */
  readonly table: string;
  readonly id: string | number;
}): Tab[] {
  const { tags } = options;
  return [
    ...(tags ? [{ key: 'tags', title: `Tags (${tags.length})`, render: () => <Tags tags={tags} /> }] : []),
    { key: 'tasks', title: 'Tasks', render: () => <Tasks id={options.id} /> },
    auditTab(options),
  ];
}

/** The entries of a row in the audit log. */
export function auditTab({ table, id }: { readonly table: string; readonly id: string | number }): Tab {
  return auditTabOf({ table, row_id: String(id) });
}

/** The same for a resource without an ID: also of resources that had its name before. */
export function auditTabByName(scope: Scope, table: string, name: string): Tab {
  return auditTabOf({ table, row_name: name, project_id: scope.project, region_id: scope.region });
}

function auditTabOf(filter: RowFilter): Tab {
  return { key: 'audit', title: 'Audit log', render: () => <Audit filter={filter} /> };
}

type RowFilter = NonNullable<paths['/cloudyard/v1/audit']['get']['parameters']['query']> & { readonly table: string };

function Tags({ tags }: { tags: readonly Tag[] }) {
  return (
    <Card title="Tags">
      <Table
        label="Tags"
        rows={tags}
        rowKey={(tag) => tag.key}
        columns={[
          { key: 'key', title: 'Key', kind: 'wrap', render: (tag) => <bdi>{tag.key}</bdi> },
          { key: 'value', title: 'Value', kind: 'wrap', render: (tag) => <bdi>{tag.value}</bdi> },
          { key: 'owner', title: 'Set by', render: (tag) => (tag.read_only ? 'system' : 'user') },
        ]}
        empty={<EmptyState title="No tags">Tags are set when a resource is created or edited.</EmptyState>}
      />
    </Card>
  );
}

const TASKS = 50;

/** The newest tasks of the resource. */
function Tasks({ id }: { id: string | number }) {
  const scope = useScope();
  const filter = { resource_id: String(id), limit: TASKS };
  const query = useQuery({
    queryKey: ['tasks', 'of', filter],
    queryFn: () => unwrap(api.GET('/cloud/v1/tasks', { params: { query: filter } })),
  });
  if (!query.data) return <NotLoaded query={query} />;
  if (query.data.results.length === 0)
    return <EmptyState title="No tasks">Creates, changes and deletions that take time appear here.</EmptyState>;
  return (
    <Card title="Tasks">
      <Table
        label="Tasks"
        rows={query.data.results}
        rowKey={(task) => task.id}
        columns={[
          {
            key: 'type',
            title: 'Task',
            kind: 'name',
            render: (task) => <Link to={scope.path('tasks', task.id)}>{taskTitle(task.task_type)}</Link>,
          },
          { key: 'state', title: 'State', render: (task) => <StatusBadge status={task.state} /> },
          { key: 'created', title: 'Started', render: (task) => <Ago at={task.created_on} /> },
          { key: 'error', title: 'Error', kind: 'wrap', render: (task) => task.error },
        ]}
      />
    </Card>
  );
}

const AUDIT_ROWS = 50;

function Audit({ filter }: { filter: RowFilter }) {
  const { role } = useSession();
  const query = useQuery({
    enabled: role === 'admin',
    queryKey: [filter.table, 'audit', filter],
    queryFn: () => unwrap(api.GET('/cloudyard/v1/audit', { params: { query: { ...filter, limit: AUDIT_ROWS } } })),
  });
  if (role !== 'admin')
    return <EmptyState title="Admins only">The audit log needs a token with the role admin.</EmptyState>;
  if (!query.data) return <NotLoaded query={query} />;
  if (query.data.results.length === 0)
    return <EmptyState title="No entries">Changes of this resource appear here.</EmptyState>;
  return (
    <Card title="Audit log">
      <Table
        label="Audit log"
        rows={query.data.results}
        rowKey={(entry) => entry.id}
        columns={[
          { key: 'at', title: 'When', render: (entry) => <FullDate at={entry.at} /> },
          { key: 'operation', title: 'Operation', render: (entry) => <code>{entry.operation}</code> },
          { key: 'token', title: 'Token', render: (entry) => entry.token?.name ?? entry.token?.id ?? 'command' },
          { key: 'changes', title: 'Changed', kind: 'wrap', render: (entry) => changedColumns(entry, filter.table) },
        ]}
      />
    </Card>
  );
}

function changedColumns({ changes }: components['schemas']['AuditEntry'], table: string): string {
  const change = changes.find((each) => each.table === table) ?? changes[0];
  if (!change) return '';
  if (change.before === null) return 'created';
  if (change.after === null) return 'deleted';
  return Object.keys(change.after).join(', ');
}
