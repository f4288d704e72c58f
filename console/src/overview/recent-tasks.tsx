import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { tasksQuery, type TaskState } from '../tasks/data.ts';
import { useResourceNames } from '../tasks/resource.tsx';
import { Card } from '../ui/detail-page.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { taskTitle } from '../ui/task-text.ts';
import { Ago } from '../ui/time.tsx';

const SHOWN = 5;

interface RecentTasksProps {
  readonly title: string;
  readonly states: readonly TaskState[];
  readonly empty: string;
}

/** The newest tasks in these states that nobody acknowledged. */
export function RecentTasks({ title, states, empty }: RecentTasksProps) {
  const scope = useScope();
  const query = useQuery(tasksQuery(scope, { states, type: '', isAcknowledged: false, limit: SHOWN, offset: 0 }));
  const names = useResourceNames(query.data?.results ?? []);
  const count = query.data?.count ?? 0;
  const search = { acknowledged: 'no', ...(states.length === 1 ? { state: states[0] } : {}) };
  const all = (
    <Link to={scope.path('tasks')} search={search as never}>
      {count > SHOWN ? `All ${count}` : 'All tasks'}
    </Link>
  );
  return (
    <Card title={title} actions={all}>
      {!query.data && <NotLoaded query={query} />}
      {query.data && count === 0 && <p className="card-body muted">{empty}</p>}
      {count > 0 && (
        <ul className="menu-list card-body">
          {query.data?.results.map((task) => (
            <li key={task.id}>
              <Link to={scope.path('tasks', task.id)}>
                <span>
                  {taskTitle(task.task_type)} <bdi>{names.get(task.resource_id)}</bdi> <Ago at={task.created_on} />
                  {task.error && <span className="small muted block">{task.error}</span>}
                </span>
                <StatusBadge status={task.state} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
