import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, unwrap } from '../api/client.ts';
import { Icon } from './icons.tsx';
import { scopeParams, useScope } from './scope.tsx';
import { StatusBadge } from './status.tsx';
import { taskTitle } from './task-text.ts';
import { Ago } from './time.tsx';

/** How many tasks run in the project and region; opens their list. */
export function RunningTasks() {
  const scope = useScope();
  const { data } = useQuery({
    queryKey: ['tasks', 'active', scope.project, scope.region],
    queryFn: () =>
      unwrap(
        api.GET('/cloud/v1/tasks/{project_id}/{region_id}/active', {
          params: { path: scopeParams(scope), query: { limit: 20 } },
        }),
      ),
  });
  const count = data?.count ?? 0;
  return (
    <>
      <button
        type="button"
        className="button quiet"
        popoverTarget="running-tasks"
        aria-label={count === 1 ? '1 running task' : `${count} running tasks`}
      >
        {count > 0 ? <span className="spinner" aria-hidden="true" /> : <Icon name="activity" />}
        {count > 0 && <span className="num">{count}</span>}
      </button>
      <div id="running-tasks" popover="auto" className="popover">
        {count === 0 && <p className="muted">No task is running.</p>}
        <ul className="menu-list">
          {data?.results.map((task) => (
            <li key={task.id}>
              <Link to={scope.path('tasks', task.id)}>
                <span>
                  {taskTitle(task.task_type)} <Ago at={task.created_on} />
                </span>
                <StatusBadge status={task.state} />
              </Link>
            </li>
          ))}
        </ul>
        <p>
          <Link to={scope.path('tasks')}>All tasks</Link>
        </p>
      </div>
    </>
  );
}
