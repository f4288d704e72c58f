/** SQL of the users of registries. */
import { and, asc, eq } from 'drizzle-orm';
import type { Db, Tx } from '../../../platform/db.ts';
import { firstRow, type PageQuery, pageReader } from '../../store-kit.ts';
import { registryUsers } from '../table.ts';

export type UserRow = typeof registryUsers.$inferSelect;

export async function insert(tx: Tx, users: Omit<UserRow, 'id'>[]): Promise<UserRow[]> {
  return tx.insert(registryUsers).values(users).returning();
}

const readPage = pageReader<UserRow>(registryUsers);

export const list = (db: Db, registryId: number, page: PageQuery) =>
  readPage(db, { where: eq(registryUsers.registryId, registryId), order: [asc(registryUsers.id)], page });

export async function names(tx: Tx, registryId: number): Promise<Set<string>> {
  const rows = await tx
    .select({ name: registryUsers.name })
    .from(registryUsers)
    .where(eq(registryUsers.registryId, registryId));
  return new Set(rows.map(({ name }) => name));
}

const isUser = (registryId: number, id: number) =>
  and(eq(registryUsers.registryId, registryId), eq(registryUsers.id, id));

export const find = (tx: Tx, registryId: number, id: number) =>
  firstRow(tx.select().from(registryUsers).where(isUser(registryId, id)));

export const update = (tx: Tx, registryId: number, id: number, changes: Partial<UserRow>) =>
  firstRow(tx.update(registryUsers).set(changes).where(isUser(registryId, id)).returning());

/** False if the user does not exist. */
export async function remove(tx: Tx, registryId: number, id: number): Promise<boolean> {
  const { rowCount } = await tx.delete(registryUsers).where(isUser(registryId, id));
  return rowCount === 1;
}
