/** SQL of volumes. Writes touch this folder's table only; reads look at the snapshots and tasks that hold a volume. */
import { and, asc, eq, getTableColumns, inArray, isNull, lt, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { rowCounts } from '../../platform/table.ts';
import { hasTags } from '../../tags/filter.ts';
import type { TagFilter } from '../../tags/filter.ts';
import type { Placed } from '../../tasks/tasks.ts';
import type { ListVolumes } from './schema.ts';
import { volumes } from './table.ts';

export type VolumeRow = typeof volumes.$inferSelect;

/** A volume with its snapshots, oldest first, and the task that locks it. */
export type VolumeView = VolumeRow & { snapshotIds: string[]; taskId: string | null };

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const resource = 'volume';

const snapshotIds = sql<string[]>`array(
  select s.id from snapshots s where s.volume_id = volumes.id order by s.created_at, s.id)`;

/**
 * Its own task, or else one of its snapshots': bytes that are being copied must not change. A snapshot has a task only
 * while its generation was not observed. Lateral, so that PostgreSQL never begins at the tasks: with statistics of a
 * quiet hour it took a minute for a list of 1,000 volumes of which each had a snapshot under way.
 */
const shownTask = sql<string | null>`coalesce(
  (select t.id from tasks t where t.resource_id = volumes.id::text and t.state in ('NEW', 'RUNNING')
   order by t.created_on limit 1),
  (select t.id from snapshots s cross join lateral (
     select id, created_on from tasks where resource_id = s.id::text and state in ('NEW', 'RUNNING')
     order by created_on limit 1) t
   where s.volume_id = volumes.id and s.observed_generation < s.generation order by t.created_on limit 1))`;

const views = (db: Db) => db.select({ volume: volumes, snapshotIds, taskId: shownTask }).from(volumes);
type Viewed = { volume: VolumeRow; snapshotIds: string[]; taskId: string | null };
const asView = ({ volume, ...rest }: Viewed): VolumeView => ({ ...volume, ...rest });

export async function view(db: Db, where: Where, id: string): Promise<VolumeView | null> {
  const [row] = await views(db).where(and(eq(volumes.id, id), ...standsIn(where)));
  return row ? asView(row) : null;
}

function standsIn(where: Where): SQL[] {
  return [eq(volumes.projectId, where.projectId), eq(volumes.regionId, where.regionId)];
}

export type NewVolume = Omit<
  VolumeRow,
  | 'status'
  | 'observedSize'
  | 'observedReal'
  | 'revertTo'
  | 'generation'
  | 'observedGeneration'
  | 'updatedAt'
  | 'deletedAt'
>;

/** Counts the volume too, so this is the statement to run late: it locks the project's count until the commit. */
export async function insert(tx: Tx, volume: NewVolume): Promise<void> {
  const begins = { status: 'creating', generation: 1, observedGeneration: 0, updatedAt: volume.createdAt } as const;
  await tx.insert(volumes).values({ ...volume, ...begins });
  await count(tx, volume, 1);
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

/** All columns, under the names of the row's fields. */
const columns = Object.entries(getTableColumns(volumes))
  .map(([field, column]) => `${column.name} as "${field}"`)
  .join(', ');

const lockRow = prepared<VolumeRow>(
  'volume_lock',
  `select ${columns} from volumes
   where id = $1 and ($2::int is null or (project_id = $2 and region_id = $3::int)) for update`,
);

/** Takes the row's lock: whoever changes a volume or its snapshots holds it from reading to commit. */
export async function lock(tx: Tx, id: string, where?: Where): Promise<VolumeRow | null> {
  const [row] = await lockRow(tx, id, where?.projectId ?? null, where?.regionId ?? null);
  return row ?? null;
}

const lockRows = prepared<VolumeRow>(
  'volumes_lock',
  `select ${columns} from volumes where id = any($1::uuid[]) order by id for update`,
);

/** Takes the locks of many, always in the same order. */
export async function lockAll(tx: Tx, ids: string[]): Promise<VolumeRow[]> {
  return lockRows(tx, ids);
}

/** The task that locks the volume, or null. Lock the volume's row first. */
export async function lockingTask(tx: Tx, id: string): Promise<string | null> {
  const [row] = await tx.select({ taskId: shownTask }).from(volumes).where(eq(volumes.id, id));
  return row?.taskId ?? null;
}

export async function load(db: Db, id: string): Promise<VolumeRow | null> {
  const [row] = await db.select().from(volumes).where(eq(volumes.id, id));
  return row ?? null;
}

/** `tags` are those that are asked for. */
export async function list(
  db: Db,
  where: Where,
  filter: ListVolumes,
  tags: TagFilter,
): Promise<{ count: number; rows: VolumeView[] }> {
  const filters = [...hasTags(volumes.tags, tags)];
  if (filter.name_part) filters.push(sql`strpos(${volumes.name}, ${filter.name_part}) > 0`);
  if (filter.id_part) filters.push(sql`strpos(${volumes.id}::text, lower(${filter.id_part})) > 0`);
  const conditions = and(...standsIn(where), ...filters);
  const page = views(db)
    .where(conditions)
    .orderBy(asc(volumes.createdAt), asc(volumes.id))
    .limit(filter.limit ?? 1000)
    .offset(filter.offset ?? 0);
  const counted = filters.length > 0 ? db.$count(volumes, conditions) : countAll(db, where);
  const [rows, count] = await Promise.all([page, counted]);
  return { count, rows: rows.map(asView) };
}

async function countAll(db: Db, where: Where): Promise<number> {
  const [row] = await db
    .select({ count: rowCounts.count })
    .from(rowCounts)
    .where(
      and(
        eq(rowCounts.resource, resource),
        eq(rowCounts.projectId, where.projectId),
        eq(rowCounts.regionId, where.regionId),
      ),
    );
  return row?.count ?? 0;
}

export async function update(tx: Tx, id: string, changes: Partial<VolumeRow>): Promise<void> {
  await tx.update(volumes).set(changes).where(eq(volumes.id, id));
}

/** Removes the row and counts it out. */
export async function remove(tx: Tx, volume: VolumeRow): Promise<void> {
  await tx.delete(volumes).where(eq(volumes.id, volume.id));
  await count(tx, volume, -1);
}

/** Volumes whose desired state the host has not been seen to have. */
export async function unconverged(db: Db, regionIds: number[]): Promise<Placed[]> {
  return db
    .select({ id: volumes.id, regionId: volumes.regionId, clientId: volumes.clientId })
    .from(volumes)
    .where(and(inArray(volumes.regionId, regionIds), lt(volumes.observedGeneration, volumes.generation)))
    .limit(1000);
}

/** Volumes that were made and are to stay, by whether they are thought to be whole. */
export async function settled(db: Db, regionIds: number[]): Promise<(Placed & { whole: boolean })[]> {
  return db
    .select({
      id: volumes.id,
      regionId: volumes.regionId,
      clientId: volumes.clientId,
      whole: sql<boolean>`${volumes.status} <> 'error'`,
    })
    .from(volumes)
    .where(
      and(
        inArray(volumes.regionId, regionIds),
        isNull(volumes.deletedAt),
        sql`${volumes.observedSize} is not null and (${volumes.status} <> 'error' or ${volumes.observedReal})`,
        sql`${volumes.observedGeneration} = ${volumes.generation}`,
      ),
    );
}

/** Those of the given ids that have a row, in whatever region and state. */
export async function known(db: Db, ids: string[]): Promise<Set<string>> {
  const rows = await db.select({ id: volumes.id }).from(volumes).where(inArray(volumes.id, ids));
  return new Set(rows.map((row) => row.id));
}

const readSnapshotsLeft = prepared<{ id: string; status: string; waiting: boolean }>(
  'volume_snapshots_left',
  `select id, status, observed_generation < generation as waiting from snapshots where volume_id = $1`,
);

/** The snapshots that still stand, and whether the host has yet to follow what was asked of them. */
export async function snapshotsLeft(db: Db, id: string) {
  return readSnapshotsLeft(db, id);
}

const readUsesOfProject = prepared<Uses>(
  'volume_uses_of_project',
  `select 'volume' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from volumes where project_id = $1 having count(*) > 0`,
);

/** What of volumes stands in a project. A snapshot never stands without its volume. */
export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select client_id, region_id, 'volume_count', count(*) from volumes group by 1, 2
  union all select client_id, region_id, 'volume_size', sum(size) from volumes group by 1, 2`;
