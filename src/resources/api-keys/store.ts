/** SQL of API keys. A deleted key stays as a row for a day, and only `findChanged` reads it. */
import { asc, isNull, sql } from 'drizzle-orm';
import type pg from 'pg';
import { type Db, prepared, preparedValue, type Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import * as kit from '../store-kit.ts';
import { projects } from '../projects/table.ts';
import { apiKeys } from './table.ts';

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** The channel on which servers listen for changes of keys. */
export const channel = 'cloudyard_api_keys';

/** A project names its keys, so requests refer to them by name. */
export const { find, lock, update } = kit.singleRows(apiKeys, {
  key: apiKeys.name,
  condition: 'deleted_at is null',
});
export const insert = kit.insertRow(apiKeys);
/** Every server has all keys in memory. The count includes the new key: check it before `nextVersion`. */
export const limitOfProject = kit.limitRows(projects, {
  of: 'API keys',
  most: 10_000,
  count: 'select count(*) + 1 from api_keys where project_id = $1 and deleted_at is null',
});

/** A page of keys, by name. Keys may be large, so their rows are read separately. */
export const list = kit.pagesOf<SizedRow<string>>(apiKeys, {
  columns: { id: apiKeys.id, bytes: sql<number>`pg_column_size(${apiKeys.containers})` },
  condition: isNull(apiKeys.deletedAt),
  order: [asc(apiKeys.name)],
});

export const findRows = kit.rowsByIds<ApiKeyRow>(apiKeys);

const bump = preparedValue<number>(
  'api_key_version',
  `insert into revisions (name, value) values ('api_keys', 1)
   on conflict (name) do update set value = revisions.value + 1 returning value`,
);
const notify = prepared('api_key_notify', `select pg_notify('${channel}', '')`);

/**
 * The version of the next change. No other transaction gets one until this one ends, so versions become visible in
 * order: take it last.
 */
export async function nextVersion(tx: Tx): Promise<number> {
  await notify(tx);
  return bump(tx);
}

const lockProject = prepared('api_key_lock_project', `select pg_advisory_xact_lock(hashtext('api_keys'), $1::int)`);
const sumContainers = preparedValue<number>(
  'api_key_containers',
  `select coalesce(sum(jsonb_array_length(containers)), 0)::int as count from api_keys
   where project_id = $1 and deleted_at is null and id <> $2`,
);

/** The containers that the other keys of the project name together. No other transaction changes them until this one ends. */
export async function countOtherContainers(tx: Tx, projectId: number, keyId: string): Promise<number> {
  await lockProject(tx, projectId);
  return sumContainers(tx, projectId, keyId);
}

export const usesOfProject = kit.usesOfProject('API key', apiKeys, { shown: 'name', order: 'name', live: true });

/** Removes the rows of keys that were deleted before this time. */
export const removeDeleted = prepared<object, [before: Date], Db>(
  'api_key_remove_old',
  'delete from api_keys where deleted_at < $1',
);

/** The columns that the cache of keys needs. */
export type CachedRow = Pick<
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

/** Without a response within this time the connection counts as broken. */
const query_timeout = 10_000;

/** The version of the last change. */
export async function currentVersion(client: pg.ClientBase): Promise<number> {
  const text = `select value from revisions where name = 'api_keys'`;
  const { rows } = await client.query({ name: 'api_key_current', text, query_timeout } as pg.QueryConfig);
  return rows[0]?.value ?? 0;
}

/** Keys that changed after a version, in the order of their changes, deleted ones included. */
export async function findChanged(client: pg.ClientBase, version: number, limit: number): Promise<CachedRow[]> {
  const text = `select project_id as "projectId", region_id as "regionId", containers, expire,
      is_disabled as "isDisabled", key_id as "keyId", secret_hash as "secretHash", created_at as "createdAt",
      deleted_at as "deletedAt", version
    from api_keys where version > $1 order by version limit $2`;
  const query = { name: 'api_key_changed', text, values: [version, limit], query_timeout };
  return (await client.query<CachedRow>(query as pg.QueryConfig)).rows;
}
