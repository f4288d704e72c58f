import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, unwrap } from '../api/client.ts';
import { useScope } from './scope.tsx';
import { toneOf } from './status.tsx';
import { taskTitle } from './task-text.ts';

interface FailureReasonProps {
  /** Of the resource. */
  readonly id: string;
  readonly status: string;
}

/** Why the resource failed: its newest failed task. Nothing if the status is not a failure, or if that task was removed. */
export function FailureReason({ id, status }: FailureReasonProps) {
  const scope = useScope();
  const filter = { resource_id: id, state: ['ERROR' as const], limit: 1 };
  const { data } = useQuery({
    queryKey: ['tasks', 'of', filter],
    queryFn: () => unwrap(api.GET('/cloud/v1/tasks', { params: { query: filter } })),
    enabled: toneOf(status) === 'bad',
  });
  const task = data?.results[0];
  if (!task || toneOf(status) !== 'bad') return null;
  return (
    <div className="notice bad" role="status">
      <strong>{taskTitle(task.task_type)} failed:</strong> <bdi>{task.error ?? 'no reason was recorded'}</bdi>{' '}
      <Link to={scope.path('tasks', task.id)}>Open the task</Link>
    </div>
  );
}
