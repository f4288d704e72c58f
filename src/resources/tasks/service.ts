/** The view of clients on tasks, and long polling. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Actor, type RequestContext, type Scope, whileWaiting } from '../../authz/actor.ts';
import { withoutZone } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../platform/large-rows.ts';
import { readInstant, requireFound, type ServiceDeps } from '../service-kit.ts';
import type { AcknowledgeAll, AcknowledgeTasks, ListActiveTasks, ListTasks, Task } from './schema.ts';
import * as store from './store.ts';
import type { TaskRow } from './store.ts';

export type TaskViews = ReturnType<typeof createTaskViews>;

/** For tasks that workers of other processes end. One query serves all waiting requests. */
const waitPollMs = 10;

export function createTaskViews(deps: Pick<ServiceDeps, 'db' | 'clock' | 'idempotency' | 'tasks'>) {
  const { db, clock, idempotency } = deps;
  const waiters = createTaskWaiters(db);
  deps.tasks.onEnd(({ id }) => waiters.wake(id));

  const get = async (actor: Actor, id: string): Promise<Task> =>
    toResponse(requireFound(await store.find(db, actor, id), 'task', id));

  const list = async (actor: Actor, filter: Parameters<typeof store.list>[2]): Promise<PageInGroups<Task>> =>
    pageInGroups(await store.list(db, actor, filter), (ids) => store.findRows(db, ids), toResponse);

  return {
    /** Responds at once, or with `waitSeconds` when the task ends or that time has passed. */
    async get(context: RequestContext, id: string, waitSeconds: number): Promise<Task> {
      if (waitSeconds === 0) return get(context.actor, id);
      // Watched before it is read: it may end while the result is on its way.
      const watch = waiters.watch(id);
      const task = await get(context.actor, id).finally(watch.stop);
      if (task.finished_on) return task;
      if (!watch.hasEnded()) await whileWaiting(context, (gone) => waiters.untilEnd(id, waitSeconds, gone));
      return get(context.actor, id);
    },

    /** Resolves when the task ends or after `seconds`. */
    untilEnd: (id: string, seconds: number): Promise<void> => waiters.untilEnd(id, seconds),

    /** Ends all waits, and shortens later ones, for a server that stops. */
    releaseWaiting: () => waiters.release(),

    async list(actor: Actor, query: ListTasks): Promise<PageInGroups<Task>> {
      return list(actor, {
        from: readInstant(query.from_timestamp),
        to: readInstant(query.to_timestamp),
        acknowledged: query.is_acknowledged,
        projectIds: query.project_id,
        regionIds: query.region_id,
        states: query.state,
        types: query.task_type === undefined ? undefined : [query.task_type],
        resourceId: query.resource_id,
        order: query.order_by ?? query.sorting ?? 'desc',
        page: query,
      });
    },

    async listActive(actor: Actor, scope: Scope, query: ListActiveTasks): Promise<PageInGroups<Task>> {
      return list(actor, {
        projectIds: [scope.projectId],
        regionIds: [scope.regionId],
        states: ['NEW', 'RUNNING'],
        types: query.task_type,
        order: 'desc',
        page: query,
      });
    },

    async acknowledge(context: RequestContext, id: string): Promise<Task> {
      return idempotency.auditedTransaction(db, context, async (tx, act) => {
        await store.acknowledge(tx, context.actor, { ids: [id] }, clock.now());
        const row = requireFound(await store.find(tx, context.actor, id), 'task', id);
        act.projectId = row.projectId;
        act.regionId = row.regionId;
        return toResponse(row);
      });
    },

    async acknowledgeMany(context: RequestContext, query: AcknowledgeAll, body?: AcknowledgeTasks): Promise<void> {
      await idempotency.auditedTransaction(db, context, (tx) =>
        store.acknowledge(
          tx,
          context.actor,
          { ids: body?.task_ids ?? undefined, projectId: query.project_id, regionId: query.region_id },
          clock.now(),
        ),
      );
    },
  };
}

function createTaskWaiters(db: Db) {
  const waiters = new Map<string, Set<() => void>>();
  let polling = false;
  let stopping = false;

  const wake = (id: string) => {
    for (const resolve of waiters.get(id) ?? []) resolve();
    waiters.delete(id);
  };
  /** Returns a function that removes it. */
  const add = (id: string, onEnd: () => void) => {
    const ofTask = waiters.get(id) ?? new Set();
    waiters.set(id, ofTask.add(onEnd));
    return () => {
      ofTask.delete(onEnd);
      if (ofTask.size === 0 && waiters.get(id) === ofTask) waiters.delete(id);
    };
  };
  const poll = async () => {
    polling = true;
    for (;;) {
      await sleep(waitPollMs);
      if (waiters.size === 0) break;
      // While the database is unavailable the requests continue to wait; they read the task again at the end.
      const ended = await store.findEnded(db, [...waiters.keys()]).catch(() => []);
      for (const id of ended) wake(id);
    }
    polling = false;
  };

  return {
    wake,
    /** Notes whether this process ends the task before `stop` is called. */
    watch(id: string) {
      let hasEnded = false;
      const stop = add(id, () => {
        hasEnded = true;
      });
      return { hasEnded: () => hasEnded, stop };
    },
    async untilEnd(id: string, seconds: number, gone?: AbortSignal): Promise<void> {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timeout);
          gone?.removeEventListener('abort', end);
          remove();
          resolve();
        };
        const remove = add(id, end);
        const timeout = setTimeout(end, Math.min(seconds * 1000, stopping ? waitPollMs : Infinity));
        if (gone?.aborted) return end();
        gone?.addEventListener('abort', end);
        if (!polling) void poll();
      });
    },
    release() {
      stopping = true;
      for (const id of [...waiters.keys()]) wake(id);
    },
  };
}

/**
 * The names in `data` under which official clients read the ID of the resource of a task. The tasks of listeners, pools and
 * other parts of a load balancer store the IDs of these parts, too.
 */
const idNames: Record<string, string> = {
  file_share: 'file_share_id',
  load_balancer: 'loadbalancer_id',
  network: 'network_id',
  secret: 'resource_id',
  snapshot: 'snapshot_id',
  subnet: 'subnet_id',
  volume: 'volume_id',
};

function dataOf({ resource, resourceId, data }: TaskRow): Task['data'] {
  const name = idNames[resource];
  return name === undefined ? data : { [name]: resourceId, ...data };
}

function toResponse(task: TaskRow): Task {
  const ended = task.state === 'FINISHED' || task.state === 'ERROR' ? task.state : null;
  return {
    id: task.id,
    state: task.state,
    task_type: task.taskType,
    resource_kind: task.resource,
    resource_id: task.resourceId,
    error: task.error,
    created_resources: task.createdResources,
    data: dataOf(task),
    detailed_state: ended,
    created_on: withoutZone(task.createdOn),
    updated_on: withoutZone(task.updatedOn),
    finished_on: withoutZone(task.finishedOn),
    acknowledged_at: withoutZone(task.acknowledgedAt),
    acknowledged_by: task.acknowledgedBy,
    client_id: task.clientId,
    user_client_id: task.clientId,
    user_id: task.userId,
    project_id: task.projectId,
    region_id: task.regionId,
    request_id: task.requestId,
    job_id: null,
    lifecycle_policy_id: task.lifecyclePolicyId,
    schedule_id: task.scheduleId,
  };
}
