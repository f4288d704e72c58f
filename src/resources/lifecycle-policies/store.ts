/** SQL of policies, their schedules and volumes. */
import { and, asc, eq, getTableColumns, gt, inArray, isNull, sql, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { type Db, prepared, type Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { projects } from '../projects/table.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { volumes } from '../volumes/table.ts';
import { lifecyclePolicies, lifecyclePolicySchedules, lifecyclePolicyVolumes } from './table.ts';

export type PolicyRow = typeof lifecyclePolicies.$inferSelect;
export type ScheduleRow = typeof lifecyclePolicySchedules.$inferSelect;
/** The columns of a volume that policies need. */
type VolumeOfPolicy = Pick<typeof volumes.$inferSelect, 'id' | 'name' | 'size' | 'typeName'>;

const resource = 'lifecycle_policy';

/** Every change of a policy, its schedules or its volumes holds the policy's lock. */
export const { lock, lockById, update, remove: removeRow } = kit.singleRows(lifecyclePolicies);

/** A policy with its schedules, in the order of the requests that added them. */
export interface PolicyView extends PolicyRow {
  schedules: ScheduleRow[];
}

const columns = {
  ...getTableColumns(lifecyclePolicies),
  schedules: kit.jsonRows(
    lifecyclePolicySchedules,
    getTableColumns(lifecyclePolicySchedules),
    'policy_id = lifecycle_policies.id',
    ['r.position'],
  ),
};
const toView = (row: PolicyView): PolicyView => ({
  ...row,
  schedules: kit.withDates(lifecyclePolicySchedules, row.schedules),
});
const readView = kit.viewOf<PolicyView>(lifecyclePolicies, { columns });
const readViews = kit.rowsByIds<PolicyView>(lifecyclePolicies, { columns });

export async function find(on: Db | Tx, scope: ProjectRegion, id: number): Promise<PolicyView | null> {
  const row = await readView(on, scope, id);
  return row && toView(row);
}

/** The ids of all policies of all projects. */
export async function findAllIds(db: Db): Promise<number[]> {
  const rows = await db.select({ id: lifecyclePolicies.id }).from(lifecyclePolicies).orderBy(asc(lifecyclePolicies.id));
  return rows.map((row) => row.id);
}

const bytesOfVolumes = sql<number>`(
  select count(*) * 64 from lifecycle_policy_volumes v where v.policy_id = lifecycle_policies.id)`;

const sizesOf = (bytes: SQL<number>) =>
  kit.pagesOf<SizedRow<number>>(lifecyclePolicies, {
    columns: { id: lifecyclePolicies.id, bytes },
    counted: resource,
    order: [asc(lifecyclePolicies.id)],
  });
const [readSizes, readSizesWithVolumes] = [sizesOf(sql`0`), sizesOf(bytesOfVolumes)];

/** A page of policies, by id. A thousand policies may have millions of volumes, so the rows are read separately. */
export const list = (db: Db, scope: ProjectRegion, query: kit.PageQuery & { need_volumes?: boolean }) =>
  (query.need_volumes ? readSizesWithVolumes : readSizes)(db, scope, query);

export const findViews = async (db: Db, ids: number[]): Promise<PolicyView[]> => (await readViews(db, ids)).map(toView);

/** Returns the row with its id, and counts it. */
export async function insert(tx: Tx, policy: Omit<PolicyRow, 'id' | 'missedReportedAt'>): Promise<PolicyRow> {
  const [row] = await tx.insert(lifecyclePolicies).values(policy).returning();
  await kit.countRows(tx, resource, [policy], 1);
  return row!;
}

export const limitOfProject = kit.limitRows(projects, {
  of: 'lifecycle policies',
  most: 1000,
  count: 'select count(*) from lifecycle_policies where project_id = $1',
});

/** Removes the policy with its schedules and the records of its runs. */
export async function remove(tx: Tx, policy: PolicyRow): Promise<void> {
  await removeRow(tx, policy.id);
  await kit.countRows(tx, resource, [policy], -1);
}

/** The schedules of a policy, in the order of the requests that added them. */
export const findSchedules = prepared<ScheduleRow, [policyId: number]>(
  'lifecycle_policy_schedules_of_policy',
  `${kit.selectOf(lifecyclePolicySchedules)} where policy_id = $1 order by position`,
);

export const findSchedule = kit.viewOf<ScheduleRow & ProjectRegion>(lifecyclePolicySchedules, {
  columns: { ...getTableColumns(lifecyclePolicySchedules), projectId: lifecyclePolicies.projectId },
  joins: sql`join ${lifecyclePolicies} on ${lifecyclePolicies.id} = ${lifecyclePolicySchedules.policyId}`,
});

export const updateSchedule = kit.updateRow(lifecyclePolicySchedules);
export const insertSchedules = kit.insertRows(lifecyclePolicySchedules);

/** Returns how many existed. */
export async function removeSchedules(tx: Tx, policyId: number, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const { rowCount } = await tx
    .delete(lifecyclePolicySchedules)
    .where(and(eq(lifecyclePolicySchedules.policyId, policyId), inArray(lifecyclePolicySchedules.id, ids)));
  return rowCount!;
}

export const setNextRuns = kit.writeRows<{ id: string; nextRunAt: Date | null }>(
  'lifecycle_policy_next_runs',
  ['id', 'nextRunAt'],
  `update lifecycle_policy_schedules s set next_run_at = n.at
   from unnest($1::uuid[], $2::timestamptz[]) as n (id, at) where s.id = n.id`,
);

export type UpcomingSchedule = Pick<ScheduleRow, 'id' | 'given' | 'createdAt'> & { nextRunAt: Date };

/** Schedules that will run, in the order of their ids, after an id. */
export const findUpcoming = prepared<
  UpcomingSchedule,
  [regionIds: number[], now: Date, after: string | null, limit: number],
  Db
>(
  'lifecycle_policy_upcoming',
  `select id, given, created_at as "createdAt", next_run_at as "nextRunAt" from lifecycle_policy_schedules
   where region_id = any($1::int[]) and next_run_at > $2 and ($3::uuid is null or id > $3)
   order by id limit $4`,
);

export interface MovedRun {
  id: string;
  from: Date;
  to: Date;
}

/** A schedule whose next run has changed meanwhile is unchanged. */
export const moveRuns = kit.writeRows<MovedRun>(
  'lifecycle_policy_move_runs',
  ['id', 'from', 'to'],
  `update lifecycle_policy_schedules s set next_run_at = m."to"
   from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) as m (id, "from", "to")
   where s.id = m.id and s.next_run_at = m."from"`,
);

/** Sets the creation time of younger schedules to this time. */
export async function limitCreatedAt(tx: Tx, createdAt: Date): Promise<void> {
  await tx.update(lifecyclePolicySchedules).set({ createdAt }).where(gt(lifecyclePolicySchedules.createdAt, createdAt));
}

/** The volumes of the project and region among the ids that are not being deleted, held until the commit. */
export async function holdVolumes(tx: Tx, scope: ProjectRegion, ids: string[]): Promise<VolumeOfPolicy[]> {
  if (ids.length === 0) return [];
  return volumesIn(tx, scope, ids).orderBy(asc(volumes.id)).for('key share');
}

/** The same volumes, not held. */
export async function findVolumes(on: Db, scope: ProjectRegion, ids: string[]): Promise<VolumeOfPolicy[]> {
  return ids.length === 0 ? [] : volumesIn(on, scope, ids);
}

/** One parameter, for lists of thousands. */
const isOneOf = (column: PgColumn, ids: string[]) => sql`${column} = any(${sql.param(ids)}::uuid[])`;

const volumeOfPolicy = { id: volumes.id, name: volumes.name, size: volumes.size, typeName: volumes.typeName };

const volumesIn = (on: Db | Tx, scope: ProjectRegion, ids: string[]) =>
  on
    .select(volumeOfPolicy)
    .from(volumes)
    .where(and(isOneOf(volumes.id, ids), kit.inScope(volumes, scope), isNull(volumes.deletedAt)));

/** The volumes of several policies, oldest first. */
export async function findVolumesOfPolicies(
  on: Db | Tx,
  policyIds: number[],
): Promise<(VolumeOfPolicy & { policyId: number })[]> {
  if (policyIds.length === 0) return [];
  return on
    .select({ ...volumeOfPolicy, policyId: lifecyclePolicyVolumes.policyId })
    .from(lifecyclePolicyVolumes)
    .innerJoin(volumes, eq(volumes.id, lifecyclePolicyVolumes.volumeId))
    .where(and(inArray(lifecyclePolicyVolumes.policyId, policyIds), isNull(volumes.deletedAt)))
    .orderBy(asc(volumes.createdAt), asc(volumes.id));
}

/** Existing pairs are unchanged. */
export const addVolumes = kit.insertRows(lifecyclePolicyVolumes, { onConflict: 'do nothing' });

export async function removeVolumes(tx: Tx, policyId: number, volumeIds: string[]): Promise<void> {
  if (volumeIds.length === 0) return;
  await tx
    .delete(lifecyclePolicyVolumes)
    .where(and(eq(lifecyclePolicyVolumes.policyId, policyId), isOneOf(lifecyclePolicyVolumes.volumeId, volumeIds)));
}

/** The policies of the project and region among the ids, held until the commit. */
export async function holdPolicies(tx: Tx, scope: ProjectRegion, ids: number[]): Promise<Set<number>> {
  const rows = await tx
    .select({ id: lifecyclePolicies.id })
    .from(lifecyclePolicies)
    .where(and(inArray(lifecyclePolicies.id, ids), kit.inScope(lifecyclePolicies, scope)))
    .orderBy(asc(lifecyclePolicies.id))
    .for('key share');
  return new Set(rows.map((row) => row.id));
}

export const usesOfProject = kit.usesOfProject('lifecycle policy', lifecyclePolicies, { order: 'id' });

/** The quota that the rows use (quota/audit.ts). */
export const usageOfRows = `
  select p.client_id, p.region_id, 'snapshot_schedule_count', count(*)
  from lifecycle_policies p join lifecycle_policy_schedules s on s.policy_id = p.id group by 1, 2`;
