/**
 * Tasks: the customer's side of asynchronous work.
 *
 * Invariants: a task and the job that serves it are written in the transaction of the change they are about, so nothing
 * acknowledged is lost. A task ends when the generation it waits for was observed (or failed), so jobs may coalesce and
 * every task still ends. A resource is locked exactly while it has an active task: the lock is not stored, so it cannot
 * be left behind.
 */
import { randomUUID } from 'node:crypto';
import type { Job } from 'graphile-worker';
import type { RequestContext } from '../authz/actor.ts';
import type { Clock } from '../platform/clock.ts';
import { prepared } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import type { Backlog, Share } from './backlog.ts';
import { flagOf, policyPriority, priorityAt, stepOf } from './priority.ts';

/** What a job is about, and all that it carries. */
export interface ResourceKey {
  resource: string;
  id: string;
  regionId: number;
}

/** The key of what lives in rows alone: it may be in no region. */
export type RecordKey = Omit<ResourceKey, 'regionId'> & { regionId: number | null };

/** A resource, the region whose worker serves it, and whose it is. */
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
  /** The schedule of a policy that asks. Nobody sits and waits for it: its job comes after those that somebody waits for. */
  schedule?: { id: string; policyId: number } | null;
}

/** A task, and who asks for it. */
export interface AskedTask<Key = ResourceKey> {
  context: RequestContext;
  task: NewTask<Key>;
}

/** Tasks as they are given, one or a thousand: a policy's instant asks for as many in one statement. */
const asked = `asked as (
  select * from jsonb_to_recordset($1::jsonb) as asked (
    id uuid, client_id int, project_id int, region_id int, user_id int, task_type text, resource text, resource_id text,
    generation int8, created_resources jsonb, data jsonb, request_id text, lifecycle_policy_id int, schedule_id uuid, step int, policy_priority int))`;

const insertAsked = (state: string, finishedOn: string) =>
  `insert into tasks (id, client_id, project_id, region_id, user_id, task_type, state, resource, resource_id, generation,
                      created_resources, data, request_id, lifecycle_policy_id, schedule_id, created_on, updated_on,
                      finished_on)
   select id, client_id, project_id, region_id, user_id, task_type, '${state}', resource, resource_id, generation,
          created_resources, data, request_id, lifecycle_policy_id, schedule_id, $2::timestamptz, $2::timestamptz,
          ${finishedOn} from asked`;

const insertTasksAndJobs = prepared(
  'tasks_enqueue',
  `with ${asked}, task as (${insertAsked('NEW', 'null')})
   select 1 from graphile_worker.add_jobs(array(
     select ('reconcile:' || region_id, json_build_object('resource', resource, 'id', resource_id),
             resource || ':' || resource_id, null, null, resource || ':' || resource_id,
             coalesce(policy_priority, ${priorityAt('step')}), array['client:' || client_id]
            )::graphile_worker.job_spec
     from asked order by resource_id)) limit 1`,
);

const insertEndedTask = prepared('task_record', `with ${asked} ${insertAsked('FINISHED', '$2::timestamptz')}`);

const insertJob = prepared(
  'job_enqueue',
  `select 1 from graphile_worker.add_job('reconcile:' || $1::int, json_build_object('resource', $2::text, 'id', $3::text),
     queue_name => $2::text || ':' || $3::text, job_key => $2::text || ':' || $3::text, run_at => now() + $4,
     priority => coalesce($5::int, ${priorityAt('$6::int')}), flags => $7::text[])`,
);

const start = prepared(
  'task_start',
  `update tasks set state = 'RUNNING', updated_on = $2 where resource_id = $1 and state = 'NEW'`,
);

const end = prepared<{ task_type: string; created_on: Date }>(
  'task_end',
  `update tasks set state = $3, error = $4, updated_on = $5, finished_on = $5
   where resource_id = $1 and generation <= $2 and state in ('NEW', 'RUNNING') returning task_type, created_on`,
);

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
  /** Writes a task and the job that serves it. Returns the task's id. */
  enqueue(tx: Tx, context: RequestContext, task: NewTask): Promise<string>;
  /** The same for many, each of a resource of its own. Returns their ids, in that order. */
  enqueueAll(tx: Tx, given: AskedTask[]): Promise<string[]>;
  /** Writes a task that is done with this very transaction, for resources that live in rows alone. */
  recordFinished(tx: Tx, context: RequestContext, task: NewTask<RecordKey>): Promise<string>;
  /** Asks for a reconcile without a task, for a client. */
  requestReconcile(tx: Db | Tx, key: ResourceKey, share: Share): Promise<void>;
  /** Asks for another reconcile after some seconds, in the place of a job that ends. */
  repeatReconcile(db: Db, key: ResourceKey, afterSeconds: number, job: Pick<Job, 'priority' | 'flags'>): Promise<void>;
  /**
   * The task that locks the resource, or null. Lock the resource's row first. Tasks of the types `besides` do not count:
   * who does the like waits its turn in the queue.
   */
  lockedBy(tx: Db | Tx, resourceId: string, besides?: readonly string[]): Promise<string | null>;
  markRunning(db: Db, resourceId: string): Promise<void>;
  /** Ends the tasks that waited for this generation or an earlier one. */
  finish(tx: Tx, resourceId: string, generation: number): Promise<void>;
  /** Ends them in ERROR; `message` is a sentence for the customer. */
  fail(tx: Tx, resourceId: string, generation: number, message: string): Promise<void>;
  /** Shows the customer why it takes long: the last failure and how many there were. */
  noteRetry(db: Db, resourceId: string, attempt: number, message: string): Promise<void>;
}

/** `onEnd` hears of every task that ended, for metrics; it may not throw. */
export function createTasks(
  clock: Clock,
  backlog: Backlog,
  onEnd: (type: string, state: string, seconds: number) => void,
): Tasks {
  const rowOf = ({ context, task }: AskedTask<RecordKey>) => ({
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
  /** Where its job comes in the queue. Policies are not refused: what they ask for was admitted with the policy. */
  const placeOf = ({ context: { actor }, task }: AskedTask) => {
    if (!task.schedule) backlog.requireRoom(actor);
    const step = stepOf(backlog.add(actor, task.key.regionId), actor);
    return task.schedule ? { policy_priority: policyPriority(step) } : { step };
  };
  const enqueueAll: Tasks['enqueueAll'] = (tx, given) =>
    write(
      insertTasksAndJobs,
      tx,
      given.map((asked) => ({ ...rowOf(asked), ...placeOf(asked) })),
    );
  const write = async (statement: typeof insertEndedTask, tx: Tx, rows: ReturnType<typeof rowOf>[]) => {
    if (rows.length > 0) await statement(tx, JSON.stringify(rows), clock.now());
    return rows.map(({ id }) => id);
  };
  const endAs = async (tx: Tx, state: string, resourceId: string, generation: number, error: string | null) => {
    const now = clock.now();
    const ended = await end(tx, resourceId, generation, state, error, now);
    for (const task of ended) onEnd(task.task_type, state, (now.getTime() - task.created_on.getTime()) / 1000);
  };

  return {
    enqueue: async (tx, context, task) => (await enqueueAll(tx, [{ context, task }]))[0]!,
    enqueueAll,
    recordFinished: async (tx, context, task) => (await write(insertEndedTask, tx, [rowOf({ context, task })]))[0]!,
    async requestReconcile(tx, { resource, id, regionId }, share) {
      const step = stepOf(backlog.add(share, regionId), share);
      await insertJob(tx, regionId, resource, id, '0 seconds', null, step, [flagOf(share.clientId)]);
    },
    async repeatReconcile(db, { resource, id, regionId }, afterSeconds, { priority, flags }) {
      const kept = Object.keys(flags ?? {});
      await insertJob(db, regionId, resource, id, `${afterSeconds} seconds`, priority, 0, kept);
    },
    async lockedBy(tx, resourceId, besides = []) {
      const [task] = await active(tx, resourceId, besides);
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
    async noteRetry(db, resourceId, attempt, message) {
      await note(db, resourceId, { attempt, last_error: message }, clock.now());
    },
  };
}
