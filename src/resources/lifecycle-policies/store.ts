/** SQL of policies, their schedules and volumes. */
import { and, asc, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { rowCounts } from '../../platform/table.ts';
import { volumes } from '../volumes/table.ts';
import { lifecyclePolicies, lifecyclePolicySchedules, lifecyclePolicyVolumes } from './table.ts';

export type PolicyRow = typeof lifecyclePolicies.$inferSelect;
export type ScheduleRow = typeof lifecyclePolicySchedules.$inferSelect;
/** What policies know of a volume. */
export type VolumeOfPolicy = Pick<typeof volumes.$inferSelect, 'id' | 'name' | 'size' | 'typeName'>;

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const resource = 'lifecycle_policy';
const standsIn = (where: Where) => [
  eq(lifecyclePolicies.projectId, where.projectId),
  eq(lifecyclePolicies.regionId, where.regionId),
];

export async function find(on: Db | Tx, where: Where, id: number): Promise<PolicyRow | null> {
  const [row] = await on
    .select()
    .from(lifecyclePolicies)
    .where(and(eq(lifecyclePolicies.id, id), ...standsIn(where)));
  return row ?? null;
}

/** Takes the row's lock: whoever changes a policy, its schedules or its volumes holds it. */
export async function lock(tx: Tx, id: number, where?: Where): Promise<PolicyRow | null> {
  const [row] = await tx
    .select()
    .from(lifecyclePolicies)
    .where(and(eq(lifecyclePolicies.id, id), ...(where ? standsIn(where) : [])))
    .for('update');
  return row ?? null;
}

/** Of all policies of all projects. */
export async function allIds(db: Db): Promise<number[]> {
  const rows = await db.select({ id: lifecyclePolicies.id }).from(lifecyclePolicies).orderBy(asc(lifecyclePolicies.id));
  return rows.map((row) => row.id);
}

const bytesOfVolumes = sql<number>`(
  select count(*) * 64 from lifecycle_policy_volumes v where v.policy_id = lifecycle_policies.id)`;

/** A thousand policies may have millions of volumes, so they are read apart. Counts come from `row_counts`, so that a page costs the same however many there are. */
export async function list(
  db: Db,
  where: Where,
  page: { limit?: number; offset?: number; need_volumes?: boolean },
): Promise<{ count: number; rows: SizedRow<number>[] }> {
  const [rows, counted] = await Promise.all([
    db
      .select({ id: lifecyclePolicies.id, bytes: page.need_volumes ? bytesOfVolumes : sql<number>`0` })
      .from(lifecyclePolicies)
      .where(and(...standsIn(where)))
      .orderBy(asc(lifecyclePolicies.id))
      .limit(page.limit ?? 1000)
      .offset(page.offset ?? 0),
    db
      .select({ count: rowCounts.count })
      .from(rowCounts)
      .where(
        and(
          eq(rowCounts.resource, resource),
          eq(rowCounts.projectId, where.projectId),
          eq(rowCounts.regionId, where.regionId),
        ),
      ),
  ]);
  return { count: counted[0]?.count ?? 0, rows };
}

export async function rowsById(db: Db, ids: number[]): Promise<PolicyRow[]> {
  return db.select().from(lifecyclePolicies).where(inArray(lifecyclePolicies.id, ids));
}

export async function insert(tx: Tx, policy: Omit<PolicyRow, 'id'>): Promise<PolicyRow> {
  const [row] = await tx.insert(lifecyclePolicies).values(policy).returning();
  await count(tx, policy, 1);
  return row!;
}

async function count(tx: Tx, { projectId, regionId }: Where, by: 1 | -1): Promise<void> {
  await tx
    .insert(rowCounts)
    .values({ resource, projectId, regionId, count: by })
    .onConflictDoUpdate({
      target: [rowCounts.resource, rowCounts.projectId, rowCounts.regionId],
      set: { count: sql`${rowCounts.count} + ${by}` },
    });
}

export async function update(tx: Tx, id: number, changes: Partial<PolicyRow>): Promise<void> {
  await tx.update(lifecyclePolicies).set(changes).where(eq(lifecyclePolicies.id, id));
}

/** Goes with its schedules and what was recorded of its runs. */
export async function remove(tx: Tx, policy: PolicyRow): Promise<void> {
  await tx.delete(lifecyclePolicies).where(eq(lifecyclePolicies.id, policy.id));
  await count(tx, policy, -1);
}

/** Of several policies, in the order in which they were given. */
export async function schedulesOf(on: Db | Tx, policyIds: number[]): Promise<ScheduleRow[]> {
  if (policyIds.length === 0) return [];
  return on
    .select()
    .from(lifecyclePolicySchedules)
    .where(inArray(lifecyclePolicySchedules.policyId, policyIds))
    .orderBy(asc(lifecyclePolicySchedules.policyId), asc(lifecyclePolicySchedules.position));
}

export async function insertSchedules(tx: Tx, schedules: Omit<ScheduleRow, 'failing'>[]): Promise<void> {
  if (schedules.length > 0) await tx.insert(lifecyclePolicySchedules).values(schedules);
}

/** Returns how many there were. */
export async function removeSchedules(tx: Tx, policyId: number, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const removed = await tx
    .delete(lifecyclePolicySchedules)
    .where(and(eq(lifecyclePolicySchedules.policyId, policyId), inArray(lifecyclePolicySchedules.id, ids)))
    .returning({ id: lifecyclePolicySchedules.id });
  return removed.length;
}

const writeNextRuns = prepared(
  'lifecycle_policy_next_runs',
  `update lifecycle_policy_schedules s set next_run_at = n.at
   from unnest($1::uuid[], $2::timestamptz[]) as n (id, at) where s.id = n.id`,
);

export async function setNextRuns(tx: Tx, next: { id: string; nextRunAt: Date | null }[]): Promise<void> {
  await writeNextRuns(
    tx,
    next.map(({ id }) => id),
    next.map(({ nextRunAt }) => nextRunAt),
  );
}

/** No schedule is younger than this. */
export async function createdUntil(tx: Tx, createdAt: Date): Promise<void> {
  await tx.update(lifecyclePolicySchedules).set({ createdAt }).where(gt(lifecyclePolicySchedules.createdAt, createdAt));
}

/** Those of the volumes that are in the project and region and not on their way out, held until the commit. */
export async function holdVolumes(tx: Tx, where: Where, ids: string[]): Promise<VolumeOfPolicy[]> {
  if (ids.length === 0) return [];
  return volumesIn(tx, where, ids).orderBy(asc(volumes.id)).for('key share');
}

/** The same, only read. */
export async function readVolumes(on: Db, where: Where, ids: string[]): Promise<VolumeOfPolicy[]> {
  return ids.length === 0 ? [] : volumesIn(on, where, ids);
}

/** For lists of thousands, as one parameter. */
const isOneOf = (column: PgColumn, ids: string[]) => sql`${column} = any(${sql.param(ids)}::uuid[])`;

const volumeOfPolicy = { id: volumes.id, name: volumes.name, size: volumes.size, typeName: volumes.typeName };

const volumesIn = (on: Db | Tx, where: Where, ids: string[]) =>
  on
    .select(volumeOfPolicy)
    .from(volumes)
    .where(
      and(
        isOneOf(volumes.id, ids),
        eq(volumes.projectId, where.projectId),
        eq(volumes.regionId, where.regionId),
        isNull(volumes.deletedAt),
      ),
    );

/** Of several policies, oldest volume first. */
export async function volumesOf(on: Db | Tx, policyIds: number[]): Promise<(VolumeOfPolicy & { policyId: number })[]> {
  if (policyIds.length === 0) return [];
  return on
    .select({ ...volumeOfPolicy, policyId: lifecyclePolicyVolumes.policyId })
    .from(lifecyclePolicyVolumes)
    .innerJoin(volumes, eq(volumes.id, lifecyclePolicyVolumes.volumeId))
    .where(and(inArray(lifecyclePolicyVolumes.policyId, policyIds), isNull(volumes.deletedAt)))
    .orderBy(asc(volumes.createdAt), asc(volumes.id));
}

/** Leaves those that are there already. */
export async function addVolumes(tx: Tx, pairs: { policyId: number; volumeId: string }[]): Promise<void> {
  if (pairs.length === 0) return;
  // There may be 10,000: as two parameters, because 20,000 would take longer to write down than to insert.
  const [policyIds, volumeIds] = [pairs.map((pair) => pair.policyId), pairs.map((pair) => pair.volumeId)];
  await tx.execute(sql`
    insert into ${lifecyclePolicyVolumes} (policy_id, volume_id)
    select * from unnest(${sql.param(policyIds)}::int[], ${sql.param(volumeIds)}::uuid[]) on conflict do nothing`);
}

export async function removeVolumes(tx: Tx, policyId: number, volumeIds: string[]): Promise<void> {
  if (volumeIds.length === 0) return;
  await tx
    .delete(lifecyclePolicyVolumes)
    .where(and(eq(lifecyclePolicyVolumes.policyId, policyId), isOneOf(lifecyclePolicyVolumes.volumeId, volumeIds)));
}

/** Those of the ids that are policies of the project and region, held until the commit. */
export async function holdPolicies(tx: Tx, where: Where, ids: number[]): Promise<Set<number>> {
  const rows = await tx
    .select({ id: lifecyclePolicies.id })
    .from(lifecyclePolicies)
    .where(and(inArray(lifecyclePolicies.id, ids), ...standsIn(where)))
    .orderBy(asc(lifecyclePolicies.id))
    .for('key share');
  return new Set(rows.map((row) => row.id));
}

const readUsesOfProject = prepared<Uses>(
  'lifecycle_policy_uses_of_project',
  `select 'lifecycle policy' as kind, count(*) as count, (array_agg(id::text order by id))[1:3] as ids
   from lifecycle_policies where project_id = $1 having count(*) > 0`,
);

/** What of policies stands in a project. */
export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select p.client_id, p.region_id, 'snapshot_schedule_count', count(*)
  from lifecycle_policies p join lifecycle_policy_schedules s on s.policy_id = p.id group by 1, 2`;
