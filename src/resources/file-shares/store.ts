/** SQL of file shares. Writes touch this folder's tables only; reads may join the tables that a share refers to. */
import { and, asc, eq, getTableColumns, inArray, lt, sql } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { batchedRead, preparedByIds } from '../../platform/batched-read.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { rowCounts } from '../../platform/table.ts';
import { networks } from '../networks/table.ts';
import { subnets } from '../subnets/table.ts';
import type { Placed } from '../../tasks/tasks.ts';
import type { AccessRuleState, ListFileShares } from './schema.ts';
import { fileShareAccessRules, fileShares } from './table.ts';

export type FileShareRow = typeof fileShares.$inferSelect;
export type AccessRuleRow = typeof fileShareAccessRules.$inferSelect;

/** A share with what others say of it: the names of its network, and the task that locks it. */
export type FileShareView = FileShareRow & { networkName: string; subnetName: string; taskId: string | null };

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const resource = 'file_share';

/** All columns of `file_shares f`, under the names of the row's fields. */
const columns = Object.entries(getTableColumns(fileShares))
  .map(([field, column]) => `f.${column.name} as "${field}"`)
  .join(', ');

const lockingTask = sql<string | null>`(
  select t.id from tasks t where t.resource_id = file_shares.id::text and t.state in ('NEW', 'RUNNING')
  order by t.created_on limit 1)`;

const views = (on: Db | Tx) =>
  on
    .select({
      share: fileShares,
      networkName: networks.name,
      subnetName: subnets.name,
      taskId: lockingTask,
    })
    .from(fileShares)
    .innerJoin(networks, eq(networks.id, fileShares.networkId))
    .innerJoin(subnets, eq(subnets.id, fileShares.subnetId));

const asView = (row: { share: FileShareRow } & Omit<FileShareView, keyof FileShareRow>): FileShareView => {
  const { share, ...rest } = row;
  return { ...share, ...rest };
};

/** In plain SQL, because building and mapping cost more than the rest of the hottest of all requests. */
const viewsByIds = preparedByIds<FileShareView>(
  'file_share_views',
  (ids) => `select ${columns}, n.name as "networkName", s.name as "subnetName",
          (select t.id from tasks t where t.resource_id = f.id::text and t.state in ('NEW', 'RUNNING')
           order by t.created_on limit 1) as "taskId"
   from file_shares f join networks n on n.id = f.network_id join subnets s on s.id = f.subnet_id
   where f.id in (${ids})`,
);
const viewById = batchedRead<FileShareView>(viewsByIds);

export async function view(db: Db, where: Where, id: string): Promise<FileShareView | null> {
  const share = await viewById(db, id);
  return share?.projectId === where.projectId && share.regionId === where.regionId ? share : null;
}

const insertShare = prepared(
  'file_share_insert',
  `with counted as (
     insert into row_counts as c (resource, project_id, region_id, count) values ('${resource}', $3, $4, 1)
     on conflict (resource, project_id, region_id) do update set count = c.count + 1)
   insert into file_shares (id, client_id, project_id, region_id, name, type_name, size, network_id, subnet_id, root_squash,
     allowed_characters, path_length, tags, status, creator_task_id, created_at, generation, observed_generation)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'creating', $14, $15, 1, 0)`,
);

export type NewFileShare = Omit<
  FileShareRow,
  'status' | 'observedSize' | 'observedReal' | 'connectionPoint' | 'generation' | 'observedGeneration' | 'deletedAt'
>;

/** Counts the share too, so this is the statement to run late: it locks the project's count until the commit. */
export async function insert(tx: Tx, s: NewFileShare): Promise<void> {
  await insertShare(
    tx,
    s.id,
    s.clientId,
    s.projectId,
    s.regionId,
    s.name,
    s.typeName,
    s.size,
    s.networkId,
    s.subnetId,
    s.rootSquash,
    s.allowedCharacters,
    s.pathLength,
    s.tags,
    s.creatorTaskId,
    s.createdAt,
  );
}

/** Takes the row's lock: whoever changes a share holds it from reading to commit. */
export async function lock(tx: Tx, id: string, where?: Where): Promise<FileShareRow | null> {
  const conditions = [eq(fileShares.id, id)];
  if (where) conditions.push(eq(fileShares.projectId, where.projectId), eq(fileShares.regionId, where.regionId));
  const [row] = await tx
    .select()
    .from(fileShares)
    .where(and(...conditions))
    .for('update');
  return row ?? null;
}

export async function load(db: Db, id: string): Promise<FileShareRow | null> {
  const [row] = await db.select().from(fileShares).where(eq(fileShares.id, id));
  return row ?? null;
}

export async function list(
  db: Db,
  where: Where,
  filter: ListFileShares,
): Promise<{ count: number; rows: FileShareView[] }> {
  const conditions = [eq(fileShares.projectId, where.projectId), eq(fileShares.regionId, where.regionId)];
  if (filter.name) conditions.push(sql`strpos(${fileShares.name}, ${filter.name}) > 0`);
  if (filter.type_name) conditions.push(eq(fileShares.typeName, filter.type_name));
  const page = views(db)
    .where(and(...conditions))
    .orderBy(asc(fileShares.createdAt), asc(fileShares.id))
    .limit(filter.limit ?? 1000)
    .offset(filter.offset ?? 0);
  const filtered = filter.name || filter.type_name;
  const counted = filtered ? db.$count(fileShares, and(...conditions)) : countAll(db, where);
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

export async function update(tx: Tx, id: string, changes: Partial<FileShareRow>): Promise<void> {
  await tx.update(fileShares).set(changes).where(eq(fileShares.id, id));
}

/** Removes the row with its access rules, and counts it out. */
export async function remove(tx: Tx, share: FileShareRow): Promise<void> {
  await tx.delete(fileShares).where(eq(fileShares.id, share.id));
  await tx
    .update(rowCounts)
    .set({ count: sql`${rowCounts.count} - 1` })
    .where(
      and(
        eq(rowCounts.resource, resource),
        eq(rowCounts.projectId, share.projectId),
        eq(rowCounts.regionId, share.regionId),
      ),
    );
}

export async function insertAccessRules(tx: Tx, rules: AccessRuleRow[]): Promise<void> {
  if (rules.length > 0) await tx.insert(fileShareAccessRules).values(rules);
}

/** In the order in which they were made. */
export async function accessRules(on: Db | Tx, fileShareId: string): Promise<AccessRuleRow[]> {
  return on
    .select()
    .from(fileShareAccessRules)
    .where(eq(fileShareAccessRules.fileShareId, fileShareId))
    .orderBy(asc(fileShareAccessRules.createdAt), asc(fileShareAccessRules.id));
}

export async function setAccessRuleState(on: Db | Tx, id: string, from: AccessRuleState[], to: AccessRuleState) {
  await on
    .update(fileShareAccessRules)
    .set({ state: to })
    .where(and(eq(fileShareAccessRules.id, id), sql`${fileShareAccessRules.state} in ${from}`));
}

export async function denyAccessRule(tx: Tx, id: string, deletedAt: Date): Promise<void> {
  await tx
    .update(fileShareAccessRules)
    .set({ state: 'queued_to_deny', deletedAt })
    .where(eq(fileShareAccessRules.id, id));
}

export async function removeAccessRule(tx: Tx, id: string): Promise<void> {
  await tx.delete(fileShareAccessRules).where(eq(fileShareAccessRules.id, id));
}

/** Shares whose desired state the host has not been seen to have. */
export async function unconverged(db: Db, regionIds: number[]): Promise<Placed[]> {
  return db
    .select({ id: fileShares.id, regionId: fileShares.regionId, clientId: fileShares.clientId })
    .from(fileShares)
    .where(and(inArray(fileShares.regionId, regionIds), lt(fileShares.observedGeneration, fileShares.generation)))
    .limit(1000);
}

/** Shares that work, so that their regions' host should have them. */
export async function available(db: Db, regionIds: number[]): Promise<Placed[]> {
  return db
    .select({ id: fileShares.id, regionId: fileShares.regionId, clientId: fileShares.clientId })
    .from(fileShares)
    .where(and(inArray(fileShares.regionId, regionIds), eq(fileShares.status, 'available')));
}

/** Those of the given ids that have a row, in whatever region and state. */
export async function known(db: Db, ids: string[]): Promise<Set<string>> {
  const rows = await db.select({ id: fileShares.id }).from(fileShares).where(inArray(fileShares.id, ids));
  return new Set(rows.map((row) => row.id));
}

const readUsesOfProject = prepared<Uses>(
  'file_share_uses_of_project',
  `select 'file share' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from file_shares where project_id = $1 having count(*) > 0`,
);

/** What of file shares stands in a project. */
export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select client_id, region_id, 'sfs_count', count(*) from file_shares group by 1, 2
  union all select client_id, region_id, 'sfs_size', sum(size) from file_shares group by 1, 2`;
