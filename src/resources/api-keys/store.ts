/** SQL of API keys. */
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import type pg from 'pg';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import type { ListApiKeys } from './schema.ts';
import { apiKeys } from './table.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

/** Servers listen on it for changes of keys. */
export const channel = 'cloudyard_api_keys';

const inside = (where: Where) =>
  and(eq(apiKeys.projectId, where.projectId), eq(apiKeys.regionId, where.regionId), isNull(apiKeys.deletedAt));

export async function view(db: Db, where: Where, name: string): Promise<ApiKeyRow | null> {
  const [row] = await db
    .select()
    .from(apiKeys)
    .where(and(inside(where), eq(apiKeys.name, name)));
  return row ?? null;
}

/** The keys of a page by name. They may be large, and are read apart. */
export async function list(
  db: Db,
  where: Where,
  page: ListApiKeys,
): Promise<{ count: number; rows: SizedRow<string>[] }> {
  const [rows, count] = await Promise.all([
    db
      .select({ id: apiKeys.id, bytes: sql<number>`pg_column_size(${apiKeys.containers})` })
      .from(apiKeys)
      .where(inside(where))
      .orderBy(asc(apiKeys.name))
      .limit(page.limit ?? 1000)
      .offset(page.offset ?? 0),
    db.$count(apiKeys, inside(where)),
  ]);
  return { count, rows };
}

export async function rows(db: Db, ids: string[]): Promise<ApiKeyRow[]> {
  return db.select().from(apiKeys).where(inArray(apiKeys.id, ids));
}

const holdClient = prepared<{ client_id: number }>(
  'api_key_hold_project',
  'select client_id from projects where id = $1 and deleted_at is null for key share',
);

/** Keeps the project from being deleted until this transaction ends. False when it is deleted already. */
export async function holdProject(tx: Tx, projectId: number): Promise<boolean> {
  return (await holdClient(tx, projectId)).length > 0;
}

export async function lock(tx: Tx, where: Where, name: string): Promise<ApiKeyRow | null> {
  const [row] = await tx
    .select()
    .from(apiKeys)
    .where(and(inside(where), eq(apiKeys.name, name)))
    .for('update');
  return row ?? null;
}

const bump = prepared<{ value: number }>(
  'api_key_version',
  `insert into revisions (name, value) values ('api_keys', 1)
   on conflict (name) do update set value = revisions.value + 1 returning value`,
);
const notify = prepared('api_key_notify', `select pg_notify('${channel}', '')`);

/**
 * The version of the next change. Until this transaction ends no other one gets one, so versions show in their order:
 * take it last.
 */
export async function nextVersion(tx: Tx): Promise<number> {
  await notify(tx);
  return (await bump(tx))[0]!.value;
}

// The rows are not read back: their containers may be megabytes.

export async function insert(tx: Tx, key: ApiKeyRow): Promise<void> {
  await tx.insert(apiKeys).values(key);
}

export async function update(tx: Tx, id: string, changes: Partial<ApiKeyRow>): Promise<void> {
  await tx.update(apiKeys).set(changes).where(eq(apiKeys.id, id));
}

const readUsesOfProject = prepared<Uses>(
  'api_key_uses_of_project',
  `select 'API key' as kind, count(*) as count, (array_agg(name order by name))[1:3] as ids
   from api_keys where project_id = $1 and deleted_at is null having count(*) > 0`,
);

export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

const removeOld = prepared('api_key_remove_old', 'delete from api_keys where deleted_at < $1');

/** Removes what is left of keys that were deleted before. */
export async function forget(db: Db, before: Date): Promise<void> {
  await removeOld(db, before);
}

/** What the gate needs of a key. */
export type GateRow = Pick<
  ApiKeyRow,
  | 'projectId'
  | 'regionId'
  | 'containers'
  | 'expire'
  | 'isDisabled'
  | 'keyId'
  | 'secretHash'
  | 'createdAt'
  | 'deletedAt'
  | 'version'
>;

/** No answer within this: the connection is as good as gone. */
const query_timeout = 10_000;

/** The version of the last change. */
export async function currentVersion(client: pg.ClientBase): Promise<number> {
  const text = `select value from revisions where name = 'api_keys'`;
  const { rows } = await client.query({ name: 'api_key_current', text, query_timeout } as pg.QueryConfig);
  return rows[0]?.value ?? 0;
}

export async function changedAfter(client: pg.ClientBase, version: number, limit: number): Promise<GateRow[]> {
  const text = `select project_id as "projectId", region_id as "regionId", containers, expire,
      is_disabled as "isDisabled", key_id as "keyId", secret_hash as "secretHash", created_at as "createdAt",
      deleted_at as "deletedAt", version
    from api_keys where version > $1 order by version limit $2`;
  const query = { name: 'api_key_changed', text, values: [version, limit], query_timeout };
  return (await client.query<GateRow>(query as pg.QueryConfig)).rows;
}
