import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { messageOf } from '../api/errors.ts';
import { useReadOnlyReason } from '../api/session.ts';
import { ActionButton } from '../ui/action-button.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { ServerRows } from '../ui/server-rows.tsx';
import { type ListState, PAGE_SIZE, useListState } from '../ui/list-state.ts';
import { formatNumber } from '../ui/numbers.ts';
import { ActionLink, PageHead } from '../ui/page-head.tsx';
import { type Scope, useScope } from '../ui/scope.tsx';
import { EmptyState } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import type { Column } from '../ui/table.tsx';
import { taskTitle } from '../ui/task-text.ts';
import { Ago } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { acknowledge, isAcknowledgeable, STATES, type Task, tasksQuery, type TaskState } from './data.ts';
import { type ResourceNames, TaskResource, useResourceNames } from './resource.tsx';

const ACKNOWLEDGED = { yes: true, no: false } as const;

const isFiltered = (state: ListState) =>
  ['type', 'state', 'acknowledged', 'page'].some((name) => state.get(name) !== '');

export function TaskList() {
  const scope = useScope();
  const state = useListState();
  const query = useQuery(
    tasksQuery(scope, {
      // The server rejects an unknown state.
      states: state.get('state') === '' ? [] : [state.get('state') as TaskState],
      type: state.get('type'),
      isAcknowledged: ACKNOWLEDGED[state.get('acknowledged') as keyof typeof ACKNOWLEDGED],
      limit: PAGE_SIZE,
      offset: (state.page - 1) * PAGE_SIZE,
      order: state.sort === 'started' ? 'asc' : 'desc',
    }),
  );
  const names = useResourceNames(query.data?.results ?? []);
  return (
    <>
      <PageHead title="Tasks" actions={<AcknowledgeAll />}>
        <p>Each create, change and deletion that takes time is a task.</p>
      </PageHead>
      <section className="card" aria-label="Tasks">
        <Tools
          state={state}
          types={query.data?.results.map((task) => task.task_type) ?? []}
          count={query.data?.count}
        />
        <ServerRows
          label="Tasks of the project"
          query={query}
          columns={columnsOf(scope, names)}
          empty={
            <EmptyState title={isFiltered(state) ? 'No task matches the filter' : 'No tasks yet'}>
              Tasks appear here when a resource changes.
            </EmptyState>
          }
        />
      </section>
      <Outlet />
    </>
  );
}

const columnsOf = (scope: Scope, names: ResourceNames): Column<Task>[] => [
  {
    key: 'type',
    title: 'Task',
    kind: 'name',
    render: (task) => <Link to={scope.path('tasks', task.id)}>{taskTitle(task.task_type)}</Link>,
  },
  {
    key: 'resource',
    title: 'Resource',
    kind: 'clip',
    render: (task) => <TaskResource task={task} names={names} />,
  },
  { key: 'state', title: 'State', render: (task) => <StatusBadge status={task.state} /> },
  {
    key: 'started',
    title: 'Started',
    sortBy: (task) => task.created_on,
    render: (task) => <Ago at={task.created_on} />,
  },
  { key: 'ended', title: 'Ended', render: (task) => <Ago at={task.finished_on} /> },
  { key: 'error', title: 'Error', kind: 'wrap', render: (task) => task.error },
  { key: 'actions', title: 'Actions', kind: 'actions', render: (task) => <Acknowledge task={task} /> },
];

function Tools({ state, types, count }: { state: ListState; types: readonly string[]; count: number | undefined }) {
  return (
    <div className="list-tools" role="search">
      <FilterInput
        state={state}
        name="type"
        type="search"
        aria-label="Type"
        placeholder="Type, such as create_volume"
        list="task-types"
      />
      <datalist id="task-types">
        {[...new Set(types)].sort().map((type) => (
          <option key={type}>{type}</option>
        ))}
      </datalist>
      <FilterSelect
        state={state}
        name="state"
        label="State"
        options={STATES.map((value) => ({ value, text: value.toLowerCase() }))}
      />
      <FilterSelect
        state={state}
        name="acknowledged"
        label="Acknowledged"
        options={[
          { value: 'no', text: 'not acknowledged' },
          { value: 'yes', text: 'acknowledged' },
        ]}
      />
      <span className="count" role="status">
        {count === undefined ? '' : count === 1 ? '1 task' : `${formatNumber(count)} tasks`}
      </span>
    </div>
  );
}

/** A button for a task that ended; nothing for one that runs or was acknowledged before. */
export function Acknowledge({ task }: { task: Task }) {
  const readOnly = useReadOnlyReason();
  const mutation = useMutation({
    mutationFn: () => acknowledge(task.id),
    onError: (error) => showToast({ tone: 'bad', text: messageOf(error) }),
  });
  const isDone = mutation.isPending || mutation.isSuccess;
  // A button that was pressed stays, because it has the focus.
  if (!isAcknowledgeable(task) && !isDone) return null;
  return (
    <ActionButton className="small" disabledReason={readOnly} isDisabled={isDone} onClick={() => mutation.mutate()}>
      {mutation.isSuccess ? 'Acknowledged' : 'Acknowledge'}{' '}
      <span className="visually-hidden">{taskTitle(task.task_type)}</span>
    </ActionButton>
  );
}

function AcknowledgeAll() {
  const scope = useScope();
  return (
    <ActionLink to={scope.path('tasks', 'acknowledge')} disabledReason={useReadOnlyReason()}>
      Acknowledge all
    </ActionLink>
  );
}
