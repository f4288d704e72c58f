/**
 * Tasks: how clients follow asynchronous work.
 *
 * Invariants: a task and its job are written in the transaction of the change that they belong to, so no acknowledged change
 * is lost. A task ends when the generation that it waits for was observed or has failed, so jobs may coalesce and every
 * task still ends. A resource is locked while it has an active task: the lock is not stored, so it cannot be left behind.
 */
import { randomUUID } from 'node:crypto';
import type { Job } from 'graphile-worker';
import type { RequestContext } from '../authz/actor.ts';
import type { Clock } from '../platform/clock.ts';
import { deferred, prepared } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import type { Backlog, WeightedClient } from './backlog.ts';
import { clientFlag, policyPriority, priorityAt, stepOf } from './priority.ts';
import { addJob } from './queue.ts';

/** The resource of a job; a job carries nothing else. */
export interface ResourceKey {
  resource: string;
  id: string;
  regionId: number;
}

/** The key of a resource that exists in rows alone: it need not have a region. */
export type RecordKey = Omit<ResourceKey, 'regionId'> & { regionId: number | null };

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
export interface TaskRequest<Key = ResourceKey> {
  context: RequestContext;
  task: NewTask<Key>;
}

/** All tasks of a statement, as one JSON parameter: a policy may request a thousand at once. */
const requests = `requests as (
  select * from jsonb_to_recordset($1::jsonb) as requests (
    id uuid, client_id int, project_id int, region_id int, user_id int, task_type text, resource text, resource_id text,
    generation int8, created_resources jsonb, data jsonb, request_id text, lifecycle_policy_id int, schedule_id uuid, step int, policy_priority int))`;

const insertRequests = (state: string, finishedOn: string) =>
  `insert into tasks (id, client_id, project_id, region_id, user_id, task_type, state, resource, resource_id, generation,
                      created_resources, data, request_id, lifecycle_policy_id, schedule_id, created_on, updated_on,
                      finished_on)
   select id, client_id, project_id, region_id, user_id, task_type, '${state}', resource, resource_id, generation,
          created_resources, data, request_id, lifecycle_policy_id, schedule_id, $2::timestamptz, $2::timestamptz,
          ${finishedOn} from requests`;

const insertTasksAndJobs = deferred('tasks_enqueue', {
  parameters: 'jsonb, timestamptz',
  body: `with ${requests} ${insertRequests('NEW', 'null')};
   with ${requests} select graphile_worker.add_jobs(array(
     select ('reconcile:' || region_id, json_build_object('resource', resource, 'id', resource_id),
             resource || ':' || resource_id, null, null, resource || ':' || resource_id,
             coalesce(policy_priority, ${priorityAt('step')}), array[${clientFlag.sql('client_id')}]
            )::graphile_worker.job_spec
     from requests order by resource_id)) into v_x;`,
  declare: 'v_x record;'
});

const insertFinishedTask = deferred('task_record', {
  parameters: 'jsonb, timestamptz',
  body: `with ${requests} ${insertRequests('FINISHED', '$2')};`,
});

const insertJob = prepared(
  'job_enqueue',
  `select 1 from ${addJob(`'reconcile:' || $1::int`, `'resource', $2::text, 'id', $3::text`, {
    queue_name: `$2::text || ':' || $3::text`,
    job_key: `$2::text || ':' || $3::text`,
    run_at: 'now() + $4',
    priority: `coalesce($5::int, ${priorityAt('$6::int')})`,
    flags: '$7::text[]',
  })}`,
);

const start = prepared(
  'task_start',
  `update tasks set state = 'RUNNING', updated_on = $2 where resource_id = $1 and state = 'NEW'`,
);

interface EndedTask {
  type: string;
  seconds: number;
}

const end = deferred<EndedTask[]>('task_end', {
  parameters: 'text, bigint, text, text, timestamptz',
  declare: 'v_ended jsonb;',
  body: `
  with ended as (
    update tasks set state = $3, error = $4, updated_on = $5, finished_on = $5
    where resource_id = $1 and generation <= $2 and state in ('NEW', 'RUNNING') returning task_type, created_on)
  select coalesce(jsonb_agg(jsonb_build_object('type', task_type, 'seconds', extract(epoch from $5 - created_on))), '[]')
    into v_ended from ended;
  return v_ended;`,
  returns: 'jsonb',
});

const active = prepared<{ id: string }>(
  'task_active',
  `select id from tasks where resource_id = $1 and state in ('NEW', 'RUNNING') and task_type <> all($2::text[])
   order by created_on limit 1`,
);

const note = prepared(
  'task_note',
  `update tasks set data = coalesce(data, '{}') || $2::jsonb, updated_on = $3
   where resource_id = $1 and state in ('NEW', 'RUNNING')`,
);

export interface Tasks {
  /** Inserts a task and its job. Returns the id of the task. */
  enqueue(tx: Tx, context: RequestContext, task: NewTask): Promise<string>;
  /** The same for many tasks, each of a different resource. Returns their ids in the same order. */
  enqueueAll(tx: Tx, given: TaskRequest[]): Promise<string[]>;
  /** Inserts a task that this transaction finishes, for resources that exist in rows alone. */
  recordFinished(tx: Tx, context: RequestContext, task: NewTask<RecordKey>): Promise<string>;
  /** Enqueues a reconcile without a task, for a client. */
  requestReconcile(tx: Db | Tx, key: ResourceKey, client: WeightedClient): Promise<void>;
  /** Enqueues the next reconcile, with the priority and flags of the job that ends. */
  rescheduleReconcile(
    db: Db,
    key: ResourceKey,
    afterSeconds: number,
    job: Pick<Job, 'priority' | 'flags'>,
  ): Promise<void>;
  /**
   * The task that locks the resource, or null. Lock the row of the resource first. Tasks of `ignoredTypes` do not lock:
   * their changes may queue up behind each other.
   */
  lockedBy(tx: Db | Tx, resourceId: string, ignoredTypes?: readonly string[]): Promise<string | null>;
  markRunning(db: Db, resourceId: string): Promise<void>;
  /** Ends the tasks that waited for this generation or an earlier one. */
  finish(tx: Tx, resourceId: string, generation: number): Promise<void>;
  /** Ends them in ERROR; `message` is for the customer. */
  fail(tx: Tx, resourceId: string, generation: number, message: string): Promise<void>;
  /** Shows the customer why a task takes long: the last failure and the number of attempts. */
  recordRetry(db: Db, resourceId: string, attempt: number, message: string): Promise<void>;
}

/** `onEnd` is called for every task that ended, for metrics; it must not throw. */
export function createTasks(
  clock: Clock,
  backlog: Backlog,
  onEnd: (type: string, state: string, seconds: number) => void,
): Tasks {
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
  /** The position of its job in the queue. The limit does not apply to policies: the policy itself was admitted. */
  const positionOf = ({ context: { actor }, task }: TaskRequest) => {
    if (!task.schedule) backlog.requireRoom(actor);
    const step = stepOf(backlog.add(actor, task.key.regionId), actor);
    return task.schedule ? { policy_priority: policyPriority(step) } : { step };
  };
  const enqueueAll: Tasks['enqueueAll'] = (tx, given) =>
    write(
      insertTasksAndJobs,
      tx,
      given.map((request) => ({ ...rowOf(request), ...positionOf(request) })),
    );
  const write = async (statement: typeof insertFinishedTask, tx: Tx, rows: ReturnType<typeof rowOf>[]) => {
    if (rows.length > 0) await statement(tx, JSON.stringify(rows), clock.now());
    return rows.map(({ id }) => id);
  };
  const endAs = async (tx: Tx, state: string, resourceId: string, generation: number, error: string | null) => {
    const report = (ended: EndedTask[]) => ended.forEach(({ type, seconds }) => onEnd(type, state, seconds));
    await end.withResult(tx, report, resourceId, generation, state, error, clock.now());
  };

  return {
    enqueue: async (tx, context, task) => (await enqueueAll(tx, [{ context, task }]))[0]!,
    enqueueAll,
    recordFinished: async (tx, context, task) => (await write(insertFinishedTask, tx, [rowOf({ context, task })]))[0]!,
    async requestReconcile(tx, { resource, id, regionId }, client) {
      const step = stepOf(backlog.add(client, regionId), client);
      await insertJob(tx, regionId, resource, id, '0 seconds', null, step, [clientFlag.of(client.clientId)]);
    },
    async rescheduleReconcile(db, { resource, id, regionId }, afterSeconds, { priority, flags }) {
      const kept = Object.keys(flags ?? {});
      await insertJob(db, regionId, resource, id, `${afterSeconds} seconds`, priority, 0, kept);
    },
    async lockedBy(tx, resourceId, ignoredTypes = []) {
      const [task] = await active(tx, resourceId, ignoredTypes);
      return task?.id ?? null;
    },
    async markRunning(db, resourceId) {
      await start(db, resourceId, clock.now());
    },
    async finish(tx, resourceId, generation) {
      await endAs(tx, 'FINISHED', resourceId, generation, null);
    },
    async fail(tx, resourceId, generation, message) {
      await endAs(tx, 'ERROR', resourceId, generation, message);
    },
    async recordRetry(db, resourceId, attempt, message) {
      await note(db, resourceId, { attempt, last_error: message }, clock.now());
    },
  };
}
