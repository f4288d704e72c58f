/** SQL of registries, their removals, and where they are served. */
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { Placed } from '../../tasks/tasks.ts';
import { registries, registryHosts, registryPushes, registryRemovals } from './table.ts';

export type RegistryRow = typeof registries.$inferSelect;
export type RemovalRow = typeof registryRemovals.$inferSelect;
export type RegistryView = RegistryRow & { repoCount: number; address: string };

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

/** What stands between host and repository in the name of an image: unique for ever, because ids are. */
export function prefixOf({ name, id }: Pick<RegistryRow, 'name' | 'id'>): string {
  return `${name}-${id}`;
}

/** The id in a prefix; null: it is none. */
export function idIn(prefix: string): number | null {
  const id = Number(/-(\d{1,10})$/.exec(prefix)?.[1]);
  return Number.isSafeInteger(id) && id <= 2_147_483_647 ? id : null;
}

const holdLiveProject = prepared(
  'registry_project',
  'select 1 from projects where id = $1 and deleted_at is null for share',
);

/** Keeps the project from being deleted meanwhile. */
export async function holdProject(tx: Tx, projectId: number): Promise<boolean> {
  return (await holdLiveProject(tx, projectId)).length > 0;
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

const inScope = (where: Where) =>
  and(eq(registries.projectId, where.projectId), eq(registries.regionId, where.regionId));

/** Takes the row's lock; also of one that is leaving. */
export async function lock(tx: Tx, id: number, where?: Where): Promise<RegistryRow | null> {
  const [row] = await tx
    .select()
    .from(registries)
    .where(and(eq(registries.id, id), where && inScope(where)))
    .for('update');
  return row ?? null;
}

export async function load(on: Db | Tx, id: number, where?: Where): Promise<RegistryRow | null> {
  const [row] = await on
    .select()
    .from(registries)
    .where(and(eq(registries.id, id), where && inScope(where)));
  return row ?? null;
}

const views = (on: Db | Tx) =>
  on
    .select({
      registry: registries,
      repoCount: sql<number>`(select count(*) from registry_repositories p where p.registry_id = registries.id)`,
      address: registryHosts.address,
    })
    .from(registries)
    .innerJoin(registryHosts, eq(registryHosts.regionId, registries.regionId));

export async function view(on: Db | Tx, where: Where, id: number): Promise<RegistryView | null> {
  const [row] = await views(on).where(and(inScope(where), eq(registries.id, id), isNull(registries.deletedAt)));
  return row ? { ...row.registry, repoCount: row.repoCount, address: row.address } : null;
}

export async function list(db: Db, where: Where): Promise<RegistryView[]> {
  const rows = await views(db)
    .where(and(inScope(where), isNull(registries.deletedAt)))
    .orderBy(asc(registries.id));
  return rows.map(({ registry, ...rest }) => ({ ...registry, ...rest }));
}

export async function update(tx: Tx, id: number, changes: Partial<RegistryRow>): Promise<void> {
  await tx.update(registries).set(changes).where(eq(registries.id, id));
}

export async function remove(tx: Tx, id: number): Promise<void> {
  await tx.delete(registries).where(eq(registries.id, id));
}

export async function insertRemoval(tx: Tx, removal: RemovalRow): Promise<void> {
  await tx.insert(registryRemovals).values(removal);
}

export async function removals(db: Db, registryId: number): Promise<RemovalRow[]> {
  return db.select().from(registryRemovals).where(eq(registryRemovals.registryId, registryId));
}

export async function hasRemoval(db: Db, id: string): Promise<boolean> {
  return (await db.$count(registryRemovals, eq(registryRemovals.id, id))) > 0;
}

export async function endRemoval(tx: Tx, id: string): Promise<void> {
  await tx.delete(registryRemovals).where(eq(registryRemovals.id, id));
}

/** Registries that are leaving, or of which something is to be removed. */
export async function unconverged(db: Db, regionIds: number[]): Promise<Placed[]> {
  const pending = sql`exists (select from registry_removals m where m.registry_id = registries.id)`;
  const rows = await db
    .select({ id: registries.id, regionId: registries.regionId, clientId: registries.clientId })
    .from(registries)
    .where(and(inArray(registries.regionId, regionIds), sql`(${registries.deletedAt} is not null or ${pending})`))
    .limit(1000);
  return rows.map(({ id, ...placed }) => ({ id: String(id), ...placed }));
}

/** The prefixes among those given that belong to a row, in whatever region and state, with its id. */
export async function known(db: Db, prefixes: string[]): Promise<Map<string, number>> {
  const ids = prefixes.map(idIn).filter((id) => id !== null);
  const rows = await db
    .select({ id: registries.id, name: registries.name })
    .from(registries)
    .where(inArray(registries.id, ids));
  const all = new Map(rows.map((row) => [prefixOf(row), row.id]));
  return new Map(prefixes.flatMap((prefix) => (all.has(prefix) ? [[prefix, all.get(prefix)!] as const] : [])));
}

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

export async function hasHost(on: Db | Tx, regionId: number): Promise<boolean> {
  return (await on.$count(registryHosts, eq(registryHosts.regionId, regionId))) > 0;
}

/** Whether images of some region are served at host:port. */
export async function isHost(db: Db, address: string): Promise<boolean> {
  return (await db.$count(registryHosts, eq(registryHosts.address, address))) > 0;
}

const grantPush = prepared(
  'registry_push_grant',
  `insert into registry_pushes as p (registry_id, repository, granted_at)
   select $1, $2, now() where exists (select from registry_pushes where registry_id = $1 and repository = $2)
     or (select count(*) from (select from registry_pushes where registry_id = $1 limit $3) noted) < $3
   on conflict (registry_id, repository) do update set granted_at = now(), held_until = null
   where p.held_until is null or p.held_until < now() returning 1`,
);

const hold = prepared(
  'registry_push_hold',
  `insert into registry_pushes as p (registry_id, repository, granted_at, held_until)
   values ($1, $2, '-infinity', now() + $4 * interval '1 second')
   on conflict (registry_id, repository) do update set held_until = excluded.held_until
   where p.granted_at < now() - $3 * interval '1 second' returning 1`,
);

/** Repositories of a registry that somebody is noted to push to; rows are kept for two days. */
export const maxPushes = 10_000;

/** Notes that somebody may push from now on; not while garbage collection holds the repository, nor past `maxPushes`. */
export async function notePush(
  db: Db,
  registryId: number,
  repository: string,
): Promise<'granted' | 'held' | 'too many'> {
  if ((await grantPush(db, registryId, repository, maxPushes)).length > 0) return 'granted';
  const isNoted = and(eq(registryPushes.registryId, registryId), eq(registryPushes.repository, repository));
  return (await db.$count(registryPushes, isNoted)) > 0 ? 'held' : 'too many';
}

/** Keeps everybody out for so many seconds, unless somebody was let in within the last `patience` seconds. */
export async function holdPushes(
  db: Db,
  registryId: number,
  repository: string,
  patience: number,
  seconds: number,
): Promise<boolean> {
  return (await hold(db, registryId, repository, patience, seconds)).length > 0;
}

export async function letPush(db: Db, registryId: number, repository: string): Promise<void> {
  await db
    .update(registryPushes)
    .set({ heldUntil: null })
    .where(and(eq(registryPushes.registryId, registryId), eq(registryPushes.repository, repository)));
}

/** What is long past; no patience is longer. */
export async function forgetPushes(db: Db): Promise<void> {
  await db.delete(registryPushes).where(sql`${registryPushes.grantedAt} < now() - interval '2 days'`);
}

/** What the rows use of the quota. */
export const usageOfRows = `
  select client_id, region_id, 'registry_count', count(*) from registries group by 1, 2
  union all select client_id, region_id, 'registry_storage', sum(storage_limit) from registries group by 1, 2`;

const readUsesOfProject = prepared<Uses>(
  'registry_uses_of_project',
  `select 'registry' as kind, count(*) as count, (array_agg(id::text order by id))[1:3] as ids
   from registries where project_id = $1 having count(*) > 0`,
);

/** What of registries stands in a project. */
export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}
