/** SQL of pull secrets. Passwords are ciphertext, and lists omit them. */
import { asc, getTableColumns } from 'drizzle-orm';
import * as kit from '../store-kit.ts';
import { projects } from '../projects/table.ts';
import { pullSecrets } from './table.ts';

export type WholeRow = typeof pullSecrets.$inferSelect;
/** A pull secret without its password. */
export type PullSecretRow = Omit<WholeRow, 'password'>;

const { password: _password, ...columns } = getTableColumns(pullSecrets);

/** A project names its pull secrets, so requests refer to them by name. */
export const { find, lock, update, remove } = kit.singleRows(pullSecrets, { key: pullSecrets.name });
/** By name. */
export const list = kit.pagesOf<PullSecretRow>(pullSecrets, { columns, order: [asc(pullSecrets.name)] });
export const insert = kit.insertRow(pullSecrets);
export const limitOfProject = kit.limitRows(projects, {
  of: 'pull secrets',
  most: 1000,
  count: 'select count(*) from pull_secrets where project_id = $1',
});
export const ciphertexts = kit.ciphertextsOf(pullSecrets, pullSecrets.password);

export const usesOfProject = kit.usesOfProject('pull secret', pullSecrets, { shown: 'name', order: 'name' });
