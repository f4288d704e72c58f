/** What clients see of tasks, and the long poll. */
import { setTimeout as sleep } from 'node:timers/promises';
import { whileWaiting } from '../../authz/actor.ts';
import type { Actor, RequestContext, Scope } from '../../authz/actor.ts';
import { invalidInput, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withoutZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import type { Groups, SizedRow } from '../../platform/large-rows.ts';
import type { AcknowledgeAll, AcknowledgeTasks, ListActiveTasks, ListTasks, Task } from './schema.ts';
import * as store from './store.ts';
import type { TaskRow, Visible } from './store.ts';

type TaskList = { count: number; results: Groups<Task> };

export type TaskViews = ReturnType<typeof createTaskViews>;

/** One question to the database for all that wait, this often, and none while nobody waits. */
const waitPollMs = 10;

export function createTaskViews(deps: { db: Db; clock: Clock; idempotency: Idempotency }) {
  const { db, clock, idempotency } = deps;
  const waiting = createWaitingRoom(db);

  const get = async (actor: Actor, id: string): Promise<Task> => {
    const row = await store.find(db, visibleTo(actor), id);
    if (!row) throw notFound('task', id);
    return present(row);
  };

  const inGroups = (rows: SizedRow<string>[]) => readInGroups(rows, (ids) => store.rowsById(db, ids), present);

  return {
    /** Answers at once, or as soon as the task ends, at the latest after `waitSeconds`. */
    async get(context: RequestContext, id: string, waitSeconds: number): Promise<Task> {
      const task = await get(context.actor, id);
      if (waitSeconds === 0 || task.finished_on) return task;
      await whileWaiting(context, (gone) => waiting.untilEnd(id, waitSeconds, gone));
      return get(context.actor, id);
    },

    /** Resolves as soon as the task ends, at the latest after `seconds`. */
    untilEnd: (id: string, seconds: number): Promise<void> => waiting.untilEnd(id, seconds),

    /** Lets every waiting request answer now, for a server that stops. */
    releaseWaiting: () => waiting.release(),

    async list(actor: Actor, query: ListTasks): Promise<TaskList> {
      const { count, rows } = await store.list(db, visibleTo(actor), {
        from: query.from_timestamp === undefined ? undefined : instantOf('from_timestamp', query.from_timestamp),
        to: query.to_timestamp === undefined ? undefined : instantOf('to_timestamp', query.to_timestamp),
        acknowledged: query.is_acknowledged,
        projectIds: query.project_id,
        regionIds: query.region_id,
        states: query.state,
        types: query.task_type === undefined ? undefined : [query.task_type],
        order: query.order_by ?? query.sorting ?? 'asc',
        limit: query.limit ?? 10,
        offset: query.offset ?? 0,
      });
      return { count, results: inGroups(rows) };
    },

    async listActive(actor: Actor, scope: Scope, query: ListActiveTasks): Promise<TaskList> {
      const { count, rows } = await store.list(db, visibleTo(actor), {
        projectIds: [scope.projectId],
        regionIds: [scope.regionId],
        states: ['NEW', 'RUNNING'],
        types: query.task_type,
        order: 'asc',
        limit: query.limit ?? 10,
        offset: query.offset ?? 0,
      });
      return { count, results: inGroups(rows) };
    },

    async acknowledge(context: RequestContext, id: string): Promise<Task> {
      return idempotency.auditedTransaction(db, context, async (tx, act) => {
        const who = visibleTo(context.actor);
        await store.acknowledge(tx, who, { ids: [id] }, context.actor.tokenId, clock.now());
        const row = await store.find(tx, who, id);
        if (!row) throw notFound('task', id);
        act.projectId = row.projectId;
        act.regionId = row.regionId;
        return present(row);
      });
    },

    async acknowledgeMany(context: RequestContext, query: AcknowledgeAll, body?: AcknowledgeTasks): Promise<void> {
      await idempotency.auditedTransaction(db, context, (tx) =>
        store.acknowledge(
          tx,
          visibleTo(context.actor),
          { ids: body?.task_ids ?? undefined, projectId: query.project_id, regionId: query.region_id },
          context.actor.tokenId,
          clock.now(),
        ),
      );
    },
  };
}

function createWaitingRoom(db: Db) {
  const waiters = new Map<string, Set<() => void>>();
  let polling = false;

  const wake = (id: string) => {
    for (const resolve of waiters.get(id) ?? []) resolve();
    waiters.delete(id);
  };
  const poll = async () => {
    polling = true;
    while (waiters.size > 0) {
      await sleep(waitPollMs);
      // The database may be away: whoever waits goes on waiting, and reads the truth at the end.
      const ended = await store.whichEnded(db, [...waiters.keys()]).catch(() => []);
      for (const id of ended) wake(id);
    }
    polling = false;
  };

  return {
    async untilEnd(id: string, seconds: number, gone?: AbortSignal): Promise<void> {
      await new Promise<void>((resolve) => {
        const waitersOfTask = waiters.get(id) ?? new Set();
        const end = () => {
          clearTimeout(timeout);
          gone?.removeEventListener('abort', end);
          waitersOfTask.delete(end);
          if (waitersOfTask.size === 0 && waiters.get(id) === waitersOfTask) waiters.delete(id);
          resolve();
        };
        const timeout = setTimeout(end, seconds * 1000);
        if (gone?.aborted) return end();
        gone?.addEventListener('abort', end);
        waiters.set(id, waitersOfTask.add(end));
        if (!polling) void poll();
      });
    },
    release() {
      for (const id of [...waiters.keys()]) wake(id);
    },
  };
}

function visibleTo(actor: Actor): Visible {
  return { clientId: actor.clientId, projectIds: actor.projectIds };
}

/** A time without a zone is UTC, as tasks write it. @throws ClientError 400 for what a column cannot hold (a leap second, the year 0) */
function instantOf(path: string, text: string): Date {
  const [day, time] = text.toUpperCase().split(/[T ]/);
  const zone = time && (/(Z|[+-]\d\d(:?\d\d)?)$/.exec(time)?.[0] ?? '');
  const date = new Date(time ? `${day}T${time}${zone === '' ? 'Z' : zone?.length === 3 ? ':00' : ''}` : text);
  const year = date.getUTCFullYear();
  if (year >= 1 && year <= 9999) return date;
  throw invalidInput([{ path, message: 'must be a date and time such as 2026-11-20T09:52:52Z' }]);
}

function present(task: TaskRow): Task {
  const ended = task.state === 'FINISHED' || task.state === 'ERROR' ? task.state : null;
  return {
    id: task.id,
    state: task.state,
    task_type: task.taskType,
    error: task.error,
    created_resources: task.createdResources,
    data: task.data,
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
