/**
 * The SQL of the job queue. No other folder names the table `jobs`.
 *
 * Invariants: a resource has at most one row (its kind and id are the key), and the row is the lock: while `locked_by` is
 * set, that worker runs the job, so jobs of one resource never overlap. A request for a job that waits coalesces with it; a
 * request for a job that runs sets `again`, and the job runs again afterwards. `lease` identifies the fetch that assigned
 * the job, so a statement of a worker that lost the job meanwhile has no effect.
 *
 * A worker's statements never wait for the lock of a row (`skip locked`), so a transaction that holds some cannot stop it. Only
 * those that release the jobs of a lost session or of a dead worker wait.
 */
import { columnsOf, type Db, prepared, preparedColumn } from '../platform/db.ts';

/** The queue of the jobs that the worker of a region runs. */
export const regionQueue = (regionId: number) => `region:${regionId}`;
/** The queue of jobs that any process may run. */
export const notificationQueue = 'notifications';

/** The channel that announces jobs of a queue. */
export const channelOf = (queue: string) => `jobs:${queue}`;

/**
 * SQL: inserts jobs. `select` returns kind, id, queue, client_id, priority and run_at, in the order of the ids if there
 * may be several, so that such statements do not deadlock. A job that waits keeps its place unless the new one is better.
 */
export const insertJobs = (select: string) =>
  `insert into jobs as j (kind, id, queue, client_id, priority, run_at) ${select}
   on conflict (id, kind) do update set
     run_at = case when j.locked_by is null or j.again then least(j.run_at, excluded.run_at) else excluded.run_at end,
     priority = case when j.locked_by is null or j.again then least(j.priority, excluded.priority) else excluded.priority end,
     attempts = 0, again = j.locked_by is not null`;

/** SQL: whether a job with this kind and id waits or runs. */
export const hasJob = (kind: string, id: string) =>
  `exists (select from jobs j where j.kind = ${kind} and j.id = ${id})`;

/** SQL: announces jobs of the queue at the commit. Only for rare jobs: notifications serialize commits (wakeups.ts). */
export const announce = (queue: string) => `pg_notify('${channelOf(queue)}', '')`;

/** A job that a worker runs. `attempt` is 1 for the first one. */
export interface AssignedJob {
  kind: string;
  id: string;
  clientId: number;
  attempt: number;
  lease: number;
}

/** A job that has ended here. `delaySeconds`: when it runs again; null: never, unless it was requested meanwhile. */
export interface EndedJob extends Pick<AssignedJob, 'kind' | 'id' | 'lease'> {
  delaySeconds: number | null;
  /** What counts as used if it runs again. */
  attempts: number;
}

/** The next jobs of a queue. The jobs of `skippedClients` stay in it. */
export interface Fetch {
  queue: string;
  limit: number;
  skippedClients: number[];
  lease: number;
}

interface Turn {
  workerId: string;
  ended: EndedJob[];
  fetch: Fetch | null;
  now: Date;
}

interface TurnResult {
  jobs: AssignedJob[];
  /** Ended jobs whose rows another transaction holds: to be given to the next turn. */
  blocked: EndedJob[];
  /** Whether an ended job is ready again. */
  again: boolean;
}

/**
 * One statement for everything: removes or releases the ended jobs, assigns the next ones, and sets their tasks to RUNNING.
 * Rows are updated by ctid, and joined rows are also in a list of ids, which is a condition of an index in each plan: the plan
 * then does not depend on the estimated length of the queue. Ids have another collation in `jobs` than in the index of `tasks`.
 */
const turnText = `
  with given as (
    select * from unnest($2::text[], $3::text[], $4::int8[], $5::float8[], $6::int[]) as g (kind, id, lease, delay, attempts)),
  ended as (
    select j.ctid as row, g.* from given g join jobs j on j.id = g.id and j.kind = g.kind
    where j.id = any ($3) and j.locked_by = $1 and j.lease = g.lease for update of j skip locked),
  removed as (
    delete from jobs where ctid = any (array(select row from ended where delay is null)) and not again returning kind, id),
  released as (
    update jobs j set locked_by = null, lease = null, again = false,
      run_at = case when j.again then j.run_at else now() + e.delay * interval '1 second' end,
      attempts = case when j.again then 0 else e.attempts end
    from ended e where j.ctid = e.row and (j.again or e.delay is not null)
    returning j.kind, j.id, j.run_at),
  next as (
    select ctid as row from jobs
    where queue = $7 and locked_by is null and run_at <= now() and client_id <> all ($8::int[])
    order by priority, run_at limit $9 for update skip locked),
  assigned as (
    update jobs set locked_by = $1, lease = $10, attempts = attempts + 1
    where ctid = any (array(select row from next)) returning kind, id, client_id, priority, attempts),
  running as (
    update tasks t set state = 'RUNNING', updated_on = $11 from assigned a
    where t.resource_id = any (array(select id collate "default" from assigned))
      and t.resource_id = a.id and t.resource = a.kind and t.state = 'NEW')
  select 'assigned' as what, kind, id, client_id, priority, attempts from assigned
  union all
  select 'blocked', g.kind, g.id, null, null, null from given g join jobs j on j.id = g.id and j.kind = g.kind
  where j.id = any ($3) and j.locked_by = $1 and j.lease = g.lease
    and not exists (select from removed r where r.id = g.id and r.kind = g.kind)
    and not exists (select from released r where r.id = g.id and r.kind = g.kind)
  union all
  select 'again', kind, id, null, null, null from released where run_at <= now()`;

interface TurnRow {
  what: 'assigned' | 'blocked' | 'again';
  kind: string;
  id: string;
  client_id: number;
  priority: number;
  attempts: number;
}
const turn = prepared<TurnRow>('jobs_turn', turnText);

/** Runs on the connection of a session (session.ts), whose settings make PostgreSQL plan it by index. */
export async function takeTurn(session: Db, { workerId, ended, fetch, now }: Turn): Promise<TurnResult> {
  const rows = await turn(
    session,
    workerId,
    ...columnsOf(ended, 'kind', 'id', 'lease', 'delaySeconds', 'attempts'),
    ...[fetch?.queue ?? '', fetch?.skippedClients ?? [], fetch?.limit ?? 0, fetch?.lease ?? 0, now],
  );
  const isBlocked = ({ kind, id }: EndedJob) =>
    rows.some((row) => row.what === 'blocked' && row.kind === kind && row.id === id);
  const jobs = rows
    .filter(({ what }) => what === 'assigned')
    .sort((a, b) => a.priority - b.priority)
    .map(({ kind, id, client_id, attempts }) => ({
      kind,
      id,
      clientId: client_id,
      attempt: attempts,
      lease: fetch!.lease,
    }));
  return { jobs, blocked: ended.filter(isBlocked), again: rows.some(({ what }) => what === 'again') };
}

const release = `update jobs set locked_by = null, lease = null, again = false,
  attempts = case when again then 0 else attempts end`;

/** The jobs that are assigned to the worker. */
export const jobsOf = prepared<{ kind: string; id: string; lease: number }, [workerId: string], Db>(
  'jobs_held',
  'select kind, id, lease from jobs where locked_by = $1',
);

const releaseHeld = prepared(
  'jobs_release_held',
  `${release} where locked_by = $1 and (kind, id, lease) in (select * from unnest($2::text[], $3::text[], $4::int8[]))`,
);

/** Releases jobs of the worker that it does not run. */
export async function releaseJobs(
  session: Db,
  workerId: string,
  jobs: Pick<AssignedJob, 'kind' | 'id' | 'lease'>[],
): Promise<void> {
  if (jobs.length > 0) await releaseHeld(session, workerId, ...columnsOf(jobs, 'kind', 'id', 'lease'));
}

/** First key of the advisory lock that a worker holds as long as it lives; the second is the hash of its id. */
export const workerLocks = 0x636c6f75;

/** Runs waiting jobs of the queues whose time is further away than this number of seconds. */
export const runDistantJobs = prepared<object, [queues: string[], seconds: number], Db>(
  'jobs_run_distant',
  `update jobs set run_at = now() where ctid = any (array(
     select ctid from jobs
     where queue = any ($1::text[]) and locked_by is null and run_at > now() + $2::float8 * interval '1 second'
     for update skip locked))`,
);

/** SQL: whether a row of `pg_locks` is the lock of the worker with this id. */
export const isLockOf = (workerId: string) =>
  `locktype = 'advisory' and granted and objsubid = 2
     and classid = ${workerLocks}::int8::oid and objid = (hashtext(${workerId})::int8 & 4294967295)::oid`;

/** Workers that have jobs and whose advisory lock is free. */
export const findDeadWorkers = preparedColumn<string, [], Db>(
  'jobs_dead_workers',
  `select distinct locked_by as worker from jobs where locked_by is not null
     and not exists (select from pg_locks where ${isLockOf('locked_by')})`,
);

/** Releases all jobs of these workers, which must be dead: a live one would run them as well. */
export const releaseJobsOf = prepared<object, [workers: string[]], Db>(
  'jobs_release_dead',
  `${release} where locked_by = any ($1::text[])`,
);

/** SQL: one row with the number of jobs in its third column. */
export const countAllJobs = 'select null, null, count(*) from jobs';

interface JobCounts {
  ready: number;
  delayed: number;
  running: number;
  /** How long the oldest ready job has been waiting; 0 when none does. */
  oldestSeconds: number;
}

const count = prepared<JobCounts>(
  'jobs_count',
  `select count(*) filter (where locked_by is null and run_at <= now()) as ready,
          count(*) filter (where locked_by is null and run_at > now()) as delayed,
          count(*) filter (where locked_by is not null) as running,
          coalesce(extract(epoch from now() - min(run_at) filter (where locked_by is null and run_at <= now())), 0)::float8
            as "oldestSeconds"
   from jobs`,
);

/** Jobs of all queues. */
export async function countJobs(db: Db): Promise<JobCounts> {
  return (await count(db))[0]!;
}
