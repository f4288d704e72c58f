import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { queryClient } from '../api/query-client.ts';
import type { Scope } from '../ui/scope.tsx';

export type Task = components['schemas']['Task'];
export type TaskState = Task['state'];

export const STATES: readonly TaskState[] = ['NEW', 'RUNNING', 'FINISHED', 'ERROR'];

interface TaskFilter {
  readonly states: readonly TaskState[];
  readonly type: string;
  /** Undefined: both. */
  readonly isAcknowledged?: boolean | undefined;
  readonly order?: 'asc' | 'desc';
  readonly limit: number;
  readonly offset: number;
}

/** A page of the tasks of the project and region, newest first. The server filters, because there can be many. */
export const tasksQuery = (scope: Scope, filter: TaskFilter) =>
  queryOptions({
    queryKey: ['tasks', scope.project, scope.region, filter],
    queryFn: () =>
      unwrap(
        api.GET('/cloud/v1/tasks', {
          params: {
            query: {
              project_id: [scope.project],
              region_id: [scope.region],
              order_by: filter.order ?? 'desc',
              limit: filter.limit,
              offset: filter.offset,
              ...(filter.states.length > 0 ? { state: [...filter.states] } : {}),
              ...(filter.type === '' ? {} : { task_type: filter.type }),
              ...(filter.isAcknowledged === undefined ? {} : { is_acknowledged: filter.isAcknowledged }),
            },
          },
        }),
      ),
    placeholderData: keepPreviousData,
  });

export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: ['tasks', id],
    queryFn: () => unwrap(api.GET('/cloud/v1/tasks/{task_id}', { params: { path: { task_id: id } } })),
  });

/** Whether the task has ended and is not acknowledged. */
export const isAcknowledgeable = ({ finished_on, acknowledged_at }: Task) =>
  finished_on !== null && acknowledged_at === null;

export const ACKNOWLEDGE = '/cloud/v1/tasks/{task_id}/acknowledge';

export async function acknowledge(id: string): Promise<void> {
  await unwrap(api.POST(ACKNOWLEDGE, { params: { path: { task_id: id } } }));
  await queryClient.invalidateQueries({ queryKey: ['tasks'] });
}
