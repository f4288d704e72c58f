import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { formatBytes } from '../ui/numbers.ts';
import { useScope } from '../ui/scope.tsx';
import { taskTitle } from '../ui/task-text.ts';
import { type Task, taskQuery } from './data.ts';

interface Progress {
  readonly done_bytes: number;
  readonly total_bytes: number;
}

/** The bytes that a task copied; null where it copies none or has not reported yet. */
function progressOf({ data }: Task): Progress | null {
  const progress = data?.['progress'] as Progress | undefined;
  return progress && progress.total_bytes > 0 ? progress : null;
}

const REFRESH_MS = 1000;

/** The task that changes a resource, with the bytes that it copied so far. Progress is read every second: it has no events. */
export function RunningTask({ id }: { id: string | null }) {
  const scope = useScope();
  const { data: task } = useQuery({
    ...taskQuery(id ?? ''),
    enabled: id !== null,
    refetchInterval: ({ state }) => (state.data && state.data.finished_on !== null ? false : REFRESH_MS),
  });
  if (id === null || !task || task.finished_on !== null) return null;
  const progress = progressOf(task);
  return (
    <div className="notice">
      <div className="row spread">
        <Link to={scope.path('tasks', id)}>{taskTitle(task.task_type)}</Link>
        {progress && (
          <span className="num">
            {formatBytes(progress.done_bytes)} of {formatBytes(progress.total_bytes)}
          </span>
        )}
      </div>
      <progress
        aria-label={`Progress of ${taskTitle(task.task_type)}`}
        {...(progress ? { value: progress.done_bytes, max: progress.total_bytes } : {})}
      />
    </div>
  );
}
