/** SQL of secrets. Payloads are ciphertext, and only `findPayloads` and `ciphertexts` read them. */
import { and, asc, getTableColumns, inArray } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { secrets } from './table.ts';

export type NewSecret = typeof secrets.$inferSelect;
/** A secret without its payload. */
export type SecretRow = Omit<NewSecret, 'payload'>;

const { payload: _payload, ...columns } = getTableColumns(secrets);

/** `lock` is for a deletion: it waits for transactions that hold the secret for use. */
export const { find, lock, remove } = kit.singleRows(secrets, { columns });
export const insert = kit.insertRow(secrets);
export const ciphertexts = kit.ciphertextsOf(secrets, secrets.payload);

export const list = kit.pagesOf<SecretRow>(secrets, { columns });

export type HeldSecret = Pick<SecretRow, 'id' | 'secretType' | 'kind' | 'expiration' | 'notAfter'>;

/** The secrets of the project and region among the ids. They cannot be deleted until this transaction ends. */
export async function hold(tx: Tx, scope: ProjectRegion, ids: string[]): Promise<HeldSecret[]> {
  const { id, secretType, kind, expiration, notAfter } = secrets;
  return tx
    .select({ id, secretType, kind, expiration, notAfter })
    .from(secrets)
    .where(and(inArray(secrets.id, ids), kit.inScope(secrets, scope)))
    .orderBy(asc(secrets.id))
    .for('key share');
}

export async function findPayloads(on: Db | Tx, ids: string[]): Promise<Pick<NewSecret, 'id' | 'kind' | 'payload'>[]> {
  const { id, kind, payload } = secrets;
  return on.select({ id, kind, payload }).from(secrets).where(inArray(id, ids));
}

export const usesOfProject = kit.usesOfProject('secret', secrets);

export const usageOfRows = kit.usageOfRows(secrets, { secret_count: 'count(*)' });
