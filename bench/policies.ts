/** Seeds policies and volumes for benchmarks. */
import { type Db, transaction } from '../src/platform/db.ts';

const schedulesEach = 3;
const volumeCount = 1000;

/**
 * Inserts active policies of one volume each, with schedules that are due in a year, as if they had been created one by
 * one, and analyzes the tables.
 */
export async function seedPolicies(db: Db, count: number): Promise<void> {
  await transaction(db, async (tx) => {
    // Skips foreign key checks, which would take most of the time.
    await tx.$client.query('set local session_replication_role = replica');
    await tx.$client.query(insertVolumes, [volumeCount]);
    await tx.$client.query(insertPolicies, [count]);
    await tx.$client.query(insertSchedules, [schedulesEach]);
    await tx.$client.query(joinVolumes, [volumeCount]);
  });
  for (const table of tables) await db.$client.query(`vacuum analyze ${table}`);
}

const tables = ['volumes', 'lifecycle_policies', 'lifecycle_policy_schedules', 'lifecycle_policy_volumes'];

const insertVolumes = `
  insert into volumes (id, client_id, project_id, region_id, name, type_name, size, observed_size, tags, status,
    creator_task_id, generation, observed_generation, created_at, updated_at)
  select gen_random_uuid(), 1, 1, 1, 'volume-' || n, 'standard', 1, 1, '{}', 'available', gen_random_uuid(), 1, 1,
    now() - n * interval '1 second', now()
  from generate_series(1, $1::int) as n`;

const insertPolicies = `
  insert into lifecycle_policies (client_id, project_id, region_id, name, action, status, user_id, created_at)
  select 1, 1, 1, 'policy-' || n, 'volume_snapshot', 'active', 1, now() from generate_series(1, $1::int) as n`;

const insertSchedules = `
  insert into lifecycle_policy_schedules (id, policy_id, region_id, position, given, user_id, created_at, next_run_at)
  select gen_random_uuid(), p.id, 1, n, json_build_object('type', 'cron', 'hour', '3', 'minute', (p.id % 60)::text,
    'timezone', 'Europe/Luxembourg', 'max_quantity', 2), 1, now(), now() + interval '1 year' + p.id * interval '1 second'
  from lifecycle_policies p, generate_series(1, $1::int) as n`;

const joinVolumes = `
  insert into lifecycle_policy_volumes (policy_id, volume_id)
  select p.id, v.id from lifecycle_policies p
    join (select id, row_number() over (order by id) as n from volumes) v on v.n = p.id % $1::int + 1`;

/** Makes one schedule of `count` random policies due at an instant. */
export async function makeDue(db: Db, count: number, at: Date): Promise<void> {
  await db.$client.query(
    `update lifecycle_policy_schedules set next_run_at = $2 where position = 1 and policy_id in (
       select policy_id from lifecycle_policy_schedules where position = 1 order by md5(policy_id::text) limit $1)`,
    [count, at],
  );
}

/** Deletes all runs and their snapshots, tasks and jobs. No worker has started them. */
export async function deleteRuns(db: Db): Promise<void> {
  await db.$client.query('truncate lifecycle_policy_runs, lifecycle_policy_run_volumes, snapshots, tasks');
  await db.$client.query(`delete from row_counts where resource = 'snapshot'`);
  await db.$client.query(`update quota_counters set usage = 0 where kind like 'volume_snapshots%'`);
  await db.$client.query('delete from jobs');
  await db.$client.query('vacuum lifecycle_policy_schedules');
}
