/**
 * Tasks: how clients follow asynchronous work.
 *
 * Invariants: a task and its job are written in the transaction of the change that they belong to, so no acknowledged change
 * is lost. A task ends when the generation that it waits for was observed or has failed, so jobs may coalesce and every
 * task still ends. A resource is locked while it has an active task: the lock is not stored, so it cannot be left behind.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext } from '../authz/actor.ts';
import type { Clock } from '../platform/clock.ts';
import { afterCommit, type Db, deferred, prepared, preparedValue, type Tx } from '../platform/db.ts';
import type { Backlog, WeightedClient } from './backlog.ts';
import type { HostSpace } from './host-space.ts';
import { insertJobs, regionQueue } from './jobs.ts';
import { policyPriority, priorityAt, stepOf } from './priority.ts';
import type { Wakeups } from './wakeups.ts';

/** The resource of a job; a job carries nothing else. */
export interface ResourceKey {
  resource: string;
  id: string;
  regionId: number;
}

/** The key of a resource that exists in rows alone: it need not have a region. */
type RecordKey = Omit<ResourceKey, 'regionId'> & { regionId: number | null };

/** A resource, the region whose worker serves it, and its client. */
export type Placed = Pick<ResourceKey, 'id' | 'regionId'> & { clientId: number };

export interface NewTask<Key = ResourceKey> {
  id?: string;
  /** For example `create_sfs`. */
  type: string;
  key: Key;
  projectId: number | null;
  /** The generation of the resource that the task waits for. */
  generation: number;
  /** Ids under the documented keys of `created_resources`. */
  createdResources?: Record<string, (string | number)[]>;
  data?: Record<string, unknown>;
  /** The schedule of the policy that requests it. Its job runs after the jobs that clients wait for. */
  schedule?: { id: string; policyId: number } | null;
}

/** A task, and the context of the request that creates it. */
interface TaskRequest<Key = ResourceKey> {
  context: RequestContext;
  task: NewTask<Key>;
}

/** SQL: all tasks of a statement, from one JSON parameter: a policy may request a thousand at once. */
const requests = `requests as (
  select * from jsonb_to_recordset($1) as requests (
    id uuid, client_id int, project_id int, region_id int, user_id int, task_type text, resource text, resource_id text,
    generation int8, created_resources jsonb, data jsonb, request_id text, lifecycle_policy_id int, schedule_id uuid, step int, policy_priority int))`;

const insertRequests = (state: string, finishedOn: string) =>
  `insert into tasks (id, client_id, project_id, region_id, user_id, task_type, state, resource, resource_id, generation,
                      created_resources, data, request_id, lifecycle_policy_id, schedule_id, created_on, updated_on,
                      finished_on)
   select id, client_id, project_id, region_id, user_id, task_type, '${state}', resource, resource_id, generation,
          created_resources, data, request_id, lifecycle_policy_id, schedule_id, $2, $2,
          ${finishedOn} from requests`;

const insertTasksAndJobs = deferred<[requests: string, now: Date]>('tasks_enqueue', {
  parameters: 'jsonb, timestamptz',
  body: `with ${requests}, new_tasks as (${insertRequests('NEW', 'null')})
   ${insertJobs(
     `select resource, resource_id, 'region:' || region_id, client_id,
            coalesce(policy_priority, ${priorityAt(`'region:' || region_id`, 'step')}), now()
     from requests order by resource_id`,
   )};`,
});

const insertOpenTask = deferred<[requests: string, now: Date]>('task_open', {
  parameters: 'jsonb, timestamptz',
  body: `with ${requests} ${insertRequests('NEW', 'null')};`,
});

const setRunning = prepared(
  'task_set_running',
  `update tasks set state = 'RUNNING', updated_on = $2 where resource_id = any($1::text[]) and state = 'NEW'`,
);

const insertFinishedTask = deferred<[requests: string, now: Date]>('task_record', {
  parameters: 'jsonb, timestamptz',
  body: `with ${requests} ${insertRequests('FINISHED', '$2')};`,
});

const insertJob = deferred<unknown[], void, Db | Tx>('job_enqueue', {
  parameters: 'text, text, text, int, int',
  body: `${insertJobs(`select $2, $3, $1, $4, ${priorityAt('$1', '$5')}, now()`)};`,
});

interface EndedTask {
  id: string;
  type: string;
  state: string;
  /** From its creation to its end. */
  seconds: number;
}

const end = deferred<unknown[], EndedTask[]>('task_end', {
  parameters: 'text, bigint, text, text, timestamptz',
  declare: 'v_ended jsonb;',
  body: `
  with ended as (
    update tasks set state = $3, error = $4, updated_on = $5, finished_on = $5,
      data = case when data ? 'progress' then data - 'progress' else data end
    where resource_id = $1 and generation <= $2 and state in ('NEW', 'RUNNING') returning id, task_type, created_on)
  select coalesce(jsonb_agg(jsonb_build_object('id', id, 'type', task_type, 'state', $3, 'seconds', extract(epoch from $5 - created_on))), '[]')
    into v_ended from ended;
  return v_ended;`,
  returns: 'jsonb',
});

const active = preparedValue<string | undefined>(
  'task_active',
  `select id from tasks where resource_id = $1 and state in ('NEW', 'RUNNING') order by created_on limit 1`,
);

const note = prepared(
  'task_note',
  `update tasks set data = coalesce(data, '{}') || $2::jsonb, updated_on = $3
   where resource_id = $1 and state in ('NEW', 'RUNNING')`,
);

/** How much of the work of a task is done. */
interface TaskProgress {
  doneBytes: number;
  totalBytes: number;
}

interface TasksDeps {
  clock: Clock;
  backlog: Backlog;
  hostSpace: HostSpace;
  wakeups: Wakeups;
}

export type Tasks = ReturnType<typeof createTasks>;

/** New tasks are deferred writes, too: their ids are known before they are inserted. */
export function createTasks({ clock, backlog, hostSpace, wakeups }: TasksDeps) {
  const rowOf = ({ context, task }: TaskRequest<RecordKey>) => ({
    id: task.id ?? randomUUID(),
    client_id: context.actor.clientId,
    project_id: task.projectId,
    region_id: task.key.regionId,
    user_id: context.actor.tokenId,
    task_type: task.type,
    resource: task.key.resource,
    resource_id: task.key.id,
    generation: task.generation,
    created_resources: task.createdResources ?? null,
    data: task.data ?? null,
    request_id: context.requestId,
    lifecycle_policy_id: task.schedule?.policyId ?? null,
    schedule_id: task.schedule?.id ?? null,
  });
  /** The position of its job in the queue. The limits do not apply to policies: the policy itself was admitted. */
  const positionOf = ({ context: { actor }, task }: TaskRequest) => {
    if (!task.schedule) {
      backlog.requireRoom(actor);
      if (task.type.startsWith('create_')) backlog.requireShortQueue();
    }
    hostSpace.requireSpace(task.key.regionId, task.type);
    const step = stepOf(backlog.add(actor, task.key.regionId), actor);
    return task.schedule ? { policy_priority: policyPriority(step) } : { step };
  };
  const wakeRegions = (on: Db | Tx, regionIds: number[]) =>
    afterCommit(on, () => new Set(regionIds).forEach((regionId) => wakeups.wake(regionQueue(regionId))));
  const enqueueAll = async (tx: Tx, given: TaskRequest[]): Promise<string[]> => {
    if (given.length === 0) return [];
    const rows = given.map((request) => ({ ...rowOf(request), ...positionOf(request) }));
    await insertTasksAndJobs(tx, JSON.stringify(rows), clock.now());
    const regionIds = given.map(({ task }) => task.key.regionId);
    wakeRegions(tx, regionIds);
    return rows.map(({ id }) => id);
  };
  const listeners: ((task: EndedTask) => void)[] = [];
  const endAs = async (tx: Tx, state: string, resourceId: string, generation: number, error: string | null) => {
    const report = (ended: EndedTask[]) =>
      afterCommit(tx, () => ended.forEach((task) => listeners.forEach((listener) => listener(task))));
    await end.withResult(tx, report, resourceId, generation, state, error, clock.now());
  };

  return {
    /** Inserts a task and its job. Returns the id of the task. */
    enqueue: async (tx: Tx, context: RequestContext, task: NewTask): Promise<string> =>
      (await enqueueAll(tx, [{ context, task }]))[0]!,
    /** The same for many tasks, each of a different resource. Returns their ids in the same order. */
    enqueueAll,
    /** Inserts a task that this transaction finishes, for resources that exist in rows alone. */
    async recordFinished(tx: Tx, context: RequestContext, task: NewTask<RecordKey>): Promise<string> {
      const row = rowOf({ context, task });
      await insertFinishedTask(tx, JSON.stringify([row]), clock.now());
      return row.id;
    },
    /** Inserts a task without a job: a periodic duty does the work, calls `setRunning`, and ends it. Returns its id. */
    async open(tx: Tx, context: RequestContext, task: NewTask): Promise<string> {
      backlog.requireRoom(context.actor);
      const row = rowOf({ context, task });
      await insertOpenTask(tx, JSON.stringify([row]), clock.now());
      return row.id;
    },
    /** Marks the new tasks of these resources as RUNNING. */
    async setRunning(tx: Tx, resourceIds: string[]): Promise<void> {
      await setRunning(tx, resourceIds, clock.now());
    },
    /** Enqueues a reconcile without a task, for a client. */
    async requestReconcile(
      on: Db | Tx,
      { resource, id, regionId }: ResourceKey,
      client: WeightedClient,
    ): Promise<void> {
      const step = stepOf(backlog.add(client, regionId), client);
      await insertJob(on, regionQueue(regionId), resource, id, client.clientId, step);
      wakeRegions(on, [regionId]);
    },
    /** The task that locks the resource, or null. Lock the row of the resource first. */
    async lockedBy(on: Db | Tx, resourceId: string): Promise<string | null> {
      return (await active(on, resourceId)) ?? null;
    },
    /** Ends the tasks that waited for this generation or an earlier one. */
    async finish(tx: Tx, resourceId: string, generation: number): Promise<void> {
      await endAs(tx, 'FINISHED', resourceId, generation, null);
    },
    /** Ends them in ERROR; `message` is for the customer. */
    async fail(tx: Tx, resourceId: string, generation: number, message: string): Promise<void> {
      await endAs(tx, 'ERROR', resourceId, generation, message);
    },
    /** Shows the customer why a task takes long: the last failure and the number of attempts. */
    async recordRetry(db: Db, resourceId: string, attempt: number, message: string): Promise<void> {
      await note(db, resourceId, { attempt, last_error: message }, clock.now());
    },
    /** Shows the progress of the resource's tasks in `data.progress`, until they end. */
    async recordProgress(db: Db, resourceId: string, { doneBytes, totalBytes }: TaskProgress): Promise<void> {
      await note(db, resourceId, { progress: { done_bytes: doneBytes, total_bytes: totalBytes } }, clock.now());
    },
    /** Calls `listener`, which must not throw, for each task that a worker of this process has ended, after the commit. */
    onEnd: (listener: (task: EndedTask) => void): void => void listeners.push(listener),
  };
}
