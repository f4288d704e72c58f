import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { tasksQuery } from '../tasks/data.ts';
import { Card } from '../ui/detail-page.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { Table } from '../ui/table.tsx';
import { taskTitle } from '../ui/task-text.ts';
import { FullDate } from '../ui/time.tsx';

const SHOWN = 10;

/** The newest tasks of the project: what happens while the clock moves. */
export function Activity() {
  const scope = useScope();
  const query = useQuery(tasksQuery(scope, { states: [], type: '', limit: SHOWN, offset: 0 }));
  return (
    <Card title="Activity" actions={<Link to={scope.path('tasks')}>All tasks</Link>}>
      {query.data ? (
        <Table
          label="Newest tasks"
          rows={query.data.results}
          rowKey={(task) => task.id}
          columns={[
            { key: 'at', title: 'When', render: (task) => <FullDate at={task.created_on} /> },
            {
              key: 'type',
              title: 'Task',
              kind: 'name',
              render: (task) => <Link to={scope.path('tasks', task.id)}>{taskTitle(task.task_type)}</Link>,
            },
            { key: 'state', title: 'State', render: (task) => <StatusBadge status={task.state} /> },
            { key: 'error', title: 'Error', kind: 'wrap', render: (task) => <bdi>{task.error}</bdi> },
          ]}
          empty={
            <EmptyState title="No tasks">Runs of lifecycle policies appear here while the clock moves.</EmptyState>
          }
        />
      ) : (
        <NotLoaded query={query} />
      )}
    </Card>
  );
}
