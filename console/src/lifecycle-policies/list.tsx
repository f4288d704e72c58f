import { useQuery } from '@tanstack/react-query';
import { useReadOnlyReason } from '../api/session.ts';
import { nameColumn, statusColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { policiesQuery, type Policy } from './data.ts';
import { retentionText, ScheduleWords } from './schedule-words.tsx';
import { pausable, resumable, runnable, useSelection } from './selection.tsx';

type Selection = ReturnType<typeof useSelection>;

const columnsOf = (scope: Scope, { has, toggle }: Selection): Column<Policy>[] => [
  {
    key: 'select',
    title: 'Select',
    kind: 'actions',
    render: (policy) => (
      <input
        type="checkbox"
        aria-label={`Select ${policy.name}`}
        checked={has(policy.id)}
        onChange={() => toggle(policy.id)}
      />
    ),
  },
  nameColumn((policy) => scope.path('lifecycle-policies', policy.id)),
  statusColumn,
  {
    key: 'schedules',
    title: 'Schedules',
    kind: 'wrap',
    sortBy: (policy) => policy.schedules.length,
    render: (policy) =>
      policy.schedules.length === 0 ? (
        <span className="muted">none</span>
      ) : (
        <ul>
          {policy.schedules.map((schedule) => (
            <li key={schedule.id}>
              <ScheduleWords schedule={schedule} />
              <span className="muted"> · keeps {retentionText(schedule)}</span>
            </li>
          ))}
        </ul>
      ),
  },
  { key: 'volumes', title: 'Volumes', kind: 'number', sortBy: (policy) => policy.volumes?.length ?? 0 },
  { key: 'id', title: 'ID', kind: 'number', sortBy: (policy) => policy.id },
];

export function PolicyList() {
  const scope = useScope();
  const query = useQuery(policiesQuery(scope));
  const selection = useSelection();
  const hasPolicies = (query.data?.count ?? 0) > 0;
  return (
    <ListPage
      title="Lifecycle policies"
      description="Snapshots of volumes on a schedule, and how long they are kept."
      driverKind="volumes"
      query={query}
      columns={columnsOf(scope, selection)}
      rowKey={(policy) => policy.id}
      textOf={(policy) =>
        [policy.name, policy.id, ...(policy.volumes ?? []).map((volume) => volume.volume_name)].join(' ')
      }
      filters={[{ name: 'status', label: 'Status', valueOf: (policy) => policy.status }]}
      actions={
        hasPolicies && (
          <>
            <BulkAction label="Pause" path="pause" selection={selection} applies={pausable} state="paused" />
            <BulkAction label="Resume" path="resume" selection={selection} applies={resumable} state="active" />
            <BulkAction
              label="Run"
              path="run"
              selection={selection}
              applies={runnable}
              state="paused or without a schedule"
            />
          </>
        )
      }
      create={{ label: 'Create lifecycle policy', to: scope.path('lifecycle-policies', 'new') }}
      empty={{
        title: 'No lifecycle policies yet',
        text: 'A lifecycle policy creates snapshots of volumes on a schedule and deletes old ones.',
      }}
    />
  );
}

interface BulkActionProps {
  readonly label: string;
  readonly path: string;
  readonly selection: Selection;
  readonly applies: (policy: Policy) => boolean;
  /** The state of policies that the action does not apply to. */
  readonly state: string;
}

function BulkAction({ label, path, selection, applies, state }: BulkActionProps) {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const count = selection.policies.filter(applies).length;
  const selected = selection.policies.length;
  const none = selected === 0 ? 'Select policies first' : count === 0 ? `All selected are ${state}` : null;
  return (
    <ActionLink to={scope.path('lifecycle-policies', path)} disabledReason={readOnly ?? none}>
      {label} selected{count > 0 && ` (${count})`}
    </ActionLink>
  );
}
