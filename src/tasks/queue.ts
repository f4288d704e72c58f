/**
 * The SQL of the job queue, graphile-worker. No other folder names its tables or functions: private tables of it are read
 * here, so a new version of graphile-worker is checked in this folder alone.
 */
import { postgresCode, transaction } from '../platform/db.ts';
import type { Db } from '../platform/db.ts';

/** SQL: adds a job. All arguments are SQL expressions; `payload` is the argument list of json_build_object. */
export const addJob = (name: string, payload: string, options: Record<string, string>) => {
  const named = Object.entries(options).map(([option, value]) => `${option} => ${value}`);
  return `graphile_worker.add_job(${name}, json_build_object(${payload}), ${named.join(', ')})`;
};

/** SQL: whether a job with this key is running or has attempts left. `attempts` is how many it gets in all. */
export const hasJob = (key: string, attempts = 'j.max_attempts') =>
  `exists (select from graphile_worker.jobs j
     where j.key = ${key} and (j.attempts < ${attempts} or j.locked_at is not null))`;

export interface JobCounts {
  ready: number;
  delayed: number;
  running: number;
}

export async function countJobs(db: Db): Promise<JobCounts> {
  const { rows } = await db.$client.query<JobCounts>(
    `select count(*) filter (where locked_at is null and run_at <= now()) as ready,
            count(*) filter (where locked_at is null and run_at > now()) as delayed,
            count(*) filter (where locked_at is not null) as running
     from graphile_worker.jobs where attempts < max_attempts or locked_at is not null`,
  );
  return rows[0]!;
}

/** Below this many queues, deleting the idle ones is not worth the lock. */
const manyQueues = 500;
const lockNotAvailable = '55P03';

/**
 * Deletes queues without jobs once there are many: every resource that had a job leaves a queue, and each fetch of a job
 * locks all free queues. The table lock keeps others from adding jobs meanwhile: graphile-worker's own GC_JOB_QUEUES takes
 * none, so it can delete the queue of a job that is not yet committed, and that job would never run. Adding a job waits for
 * this lock at most as long as this waits for its turn; without a turn, the next run tries again.
 */
export async function deleteIdleQueues(db: Db): Promise<void> {
  const { rows } = await db.$client.query('select from graphile_worker._private_job_queues limit $1', [manyQueues]);
  if (rows.length < manyQueues) return;
  await transaction(db, async ({ $client }) => {
    await $client.query(`set local lock_timeout = '50ms'`);
    await $client.query('lock table graphile_worker._private_job_queues in share row exclusive mode');
    await $client.query(
      `delete from graphile_worker._private_job_queues q where locked_at is null and not exists (
         select from graphile_worker._private_jobs j where j.job_queue_id = q.id)`,
    );
  }).catch((error: unknown) => {
    if (postgresCode(error) !== lockNotAvailable) throw error;
  });
}
