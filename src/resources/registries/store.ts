/** SQL of registries, their removals, and where they are served. */
import { and, asc, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import { type Db, preparedExists, type Tx } from '../../platform/db.ts';
import type { Placed } from '../../tasks/tasks.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { registries, registryHosts, registryPushes, registryRemovals } from './table.ts';

export type RegistryRow = typeof registries.$inferSelect;
type RemovalRow = typeof registryRemovals.$inferSelect;
export type RegistryView = RegistryRow & { repoCount: number; address: string };

/** `find` and `lock` return registries that are not being deleted. */
export const { find, lock, lockById, update, remove } = kit.singleRows(registries, { condition: 'deleted_at is null' });
/** A registry that is being deleted, too, as `lockById`. */
export const findById = kit.rowById<RegistryRow>(registries);
export const insertRemoval = kit.insertRow(registryRemovals);

/** The part of an image name between host and repository. It is never reused, because ids are not. */
export function prefixOf({ name, id }: Pick<RegistryRow, 'name' | 'id'>): string {
  return `${name}-${id}`;
}

/** The id in a prefix; null when the text is not a prefix. */
export function idIn(prefix: string): number | null {
  const id = Number(/-(\d{1,10})$/.exec(prefix)?.[1]);
  return Number.isSafeInteger(id) && id <= 2_147_483_647 ? id : null;
}

export async function insert(
  tx: Tx,
  registry: Pick<RegistryRow, 'clientId' | 'projectId' | 'regionId' | 'name' | 'storageLimit' | 'createdAt'>,
): Promise<RegistryRow> {
  const [row] = await tx
    .insert(registries)
    .values({ ...registry, updatedAt: registry.createdAt })
    .returning();
  return row!;
}

/** A registry that is being deleted, too. */
export async function lockWithDeleted(tx: Tx, scope: ProjectRegion, id: number): Promise<RegistryRow | null> {
  const row = await lockById(tx, id);
  return row?.projectId === scope.projectId && row.regionId === scope.regionId ? row : null;
}

const repoCount = sql<number>`(select count(*) from registry_repositories p where p.registry_id = registries.id)`;
const selection = {
  columns: { ...getTableColumns(registries), repoCount, address: registryHosts.address },
  joins: sql`join ${registryHosts} on ${registryHosts.regionId} = ${registries.regionId}`,
  condition: isNull(registries.deletedAt),
};
export const view = kit.viewOf<RegistryView>(registries, selection);
export const list = kit.pagesOf<RegistryView>(registries, { ...selection, order: [asc(registries.id)] });

export async function findRemovals(db: Db, registryId: number): Promise<RemovalRow[]> {
  return db.select().from(registryRemovals).where(eq(registryRemovals.registryId, registryId));
}

export async function hasRemoval(db: Db, id: string): Promise<boolean> {
  return (await db.$count(registryRemovals, eq(registryRemovals.id, id))) > 0;
}

/** Whether a removal of the same contents is pending. */
export const hasRemovalOf = preparedExists<
  [registryId: number, repository: string, digest: string | null, tag: string | null],
  Tx
>(
  'registry_removal_of',
  `select from registry_removals where registry_id = $1 and repository = $2
   and digest is not distinct from $3 and tag is not distinct from $4 limit 1`,
);

export async function removeRemoval(tx: Tx, id: string): Promise<void> {
  await tx.delete(registryRemovals).where(eq(registryRemovals.id, id));
}

/** Registries that are being deleted or have pending removals. */
export async function findPending(db: Db, regionIds: number[]): Promise<Placed[]> {
  const pending = sql`exists (select from registry_removals m where m.registry_id = registries.id)`;
  const rows = await db
    .select({ id: registries.id, regionId: registries.regionId, clientId: registries.clientId })
    .from(registries)
    .where(and(inArray(registries.regionId, regionIds), sql`(${registries.deletedAt} is not null or ${pending})`))
    .limit(1000);
  return rows.map(({ id, ...placed }) => ({ id: String(id), ...placed }));
}

/** The ids of the registries, in any region and state, whose prefix is among these. */
export async function findKnown(db: Db, prefixes: string[]): Promise<Map<string, number>> {
  const ids = prefixes.map(idIn).filter((id) => id !== null);
  const rows = await db
    .select({ id: registries.id, name: registries.name })
    .from(registries)
    .where(inArray(registries.id, ids));
  const all = new Map(rows.map((row) => [prefixOf(row), row.id]));
  return new Map(prefixes.flatMap((prefix) => (all.has(prefix) ? [[prefix, all.get(prefix)!] as const] : [])));
}

/** Records the host:port at which a worker serves the images of these regions. */
export async function setHosts(db: Db, regionIds: number[], address: string): Promise<void> {
  await db
    .insert(registryHosts)
    .values(regionIds.map((regionId) => ({ regionId, address })))
    .onConflictDoUpdate({
      target: registryHosts.regionId,
      set: { address },
      setWhere: sql`${registryHosts.address} <> ${address}`,
    });
}

/** Whether a worker has ever served the region. */
export async function hasHost(on: Db | Tx, regionId: number): Promise<boolean> {
  return (await on.$count(registryHosts, eq(registryHosts.regionId, regionId))) > 0;
}

/** Whether images of any region are served at this host:port. */
export async function isHost(db: Db, address: string): Promise<boolean> {
  return (await db.$count(registryHosts, eq(registryHosts.address, address))) > 0;
}

const grantPush = preparedExists(
  'registry_push_grant',
  `insert into registry_pushes as p (registry_id, repository, granted_at)
   select $1, $2, now() where exists (select from registry_pushes where registry_id = $1 and repository = $2)
     or (select count(*) from (select from registry_pushes where registry_id = $1 limit $3) noted) < $3
   on conflict (registry_id, repository) do update set granted_at = now(), held_until = null
   where p.held_until is null or p.held_until < now() returning 1`,
);

/** Blocks pushes for some seconds, unless a push was allowed within the last `quietSeconds`. */
export const holdPushes = preparedExists<
  [registryId: number, repository: string, quietSeconds: number, seconds: number],
  Db
>(
  'registry_push_hold',
  `insert into registry_pushes as p (registry_id, repository, granted_at, held_until)
   values ($1, $2, '-infinity', now() + $4 * interval '1 second')
   on conflict (registry_id, repository) do update set held_until = excluded.held_until
   where p.granted_at < now() - $3 * interval '1 second' returning 1`,
);

/** The maximum number of repositories of a registry with recorded pushes. A row is kept for two days. */
export const maxPushes = 10_000;

/** Records that a client may push from now on. Refused while garbage collection holds the repository, and above `maxPushes`. */
export async function notePush(
  db: Db,
  registryId: number,
  repository: string,
): Promise<'granted' | 'held' | 'too many'> {
  if (await grantPush(db, registryId, repository, maxPushes)) return 'granted';
  const isNoted = and(eq(registryPushes.registryId, registryId), eq(registryPushes.repository, repository));
  return (await db.$count(registryPushes, isNoted)) > 0 ? 'held' : 'too many';
}

/** Ends the block of `holdPushes`. */
export async function releasePushes(db: Db, registryId: number, repository: string): Promise<void> {
  await db
    .update(registryPushes)
    .set({ heldUntil: null })
    .where(and(eq(registryPushes.registryId, registryId), eq(registryPushes.repository, repository)));
}

/** Deletes records that are older than any quiet period. */
export async function deleteOldPushes(db: Db): Promise<void> {
  await db.delete(registryPushes).where(sql`${registryPushes.grantedAt} < now() - interval '2 days'`);
}

export const usageOfRows = kit.usageOfRows(registries, {
  registry_count: 'count(*)',
  registry_storage: 'sum(storage_limit)',
});

export const usesOfProject = kit.usesOfProject('registry', registries, { order: 'id' });
