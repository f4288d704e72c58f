/** SQL of pull secrets. Passwords are ciphertext, and only `findWithPassword`, `lock` and `ciphertexts` read them. */
import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import { preparedRow } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { pullSecrets } from './table.ts';

export type WholeRow = typeof pullSecrets.$inferSelect;
/** A pull secret without its password. */
export type PullSecretRow = Omit<WholeRow, 'password'>;

const { password: _password, ...columns } = getTableColumns(pullSecrets);

/** A project names its pull secrets, so requests refer to them by name. */
export const { find: findWithPassword, lock, update } = kit.singleRows(pullSecrets, { key: pullSecrets.name });
/** By name. */
export const list = kit.pagesOf<PullSecretRow>(pullSecrets, { columns, order: [asc(pullSecrets.name)] });
export const insert = kit.insertRow(pullSecrets);
export const ciphertexts = kit.ciphertextsOf(pullSecrets, pullSecrets.password);

const isNamed = (scope: ProjectRegion, name: string) =>
  and(kit.inScope(pullSecrets, scope), eq(pullSecrets.name, name));

const readNamed = preparedRow<PullSecretRow>(
  'pull_secret_without_password',
  kit.textOf(sql`select ${kit.selectList(columns)} from ${pullSecrets}
    where project_id = $1 and region_id = $2 and name = $3`),
);

export async function find(
  db: Db,
  { projectId, regionId }: ProjectRegion,
  name: string,
): Promise<PullSecretRow | null> {
  return readNamed(db, projectId, regionId, name);
}

/** False if the pull secret does not exist. */
export async function remove(tx: Tx, scope: ProjectRegion, name: string): Promise<boolean> {
  const removed = await tx.delete(pullSecrets).where(isNamed(scope, name)).returning({ id: pullSecrets.id });
  return removed.length > 0;
}

export const usesOfProject = kit.usesOfProject('pull secret', pullSecrets, { shown: 'name', order: 'name' });
