/** SQL of the users of registries. */
import { and, asc, eq } from 'drizzle-orm';
import type { Db, Tx } from '../../../platform/db.ts';
import { pageReader } from '../../store-kit.ts';
import type { Page } from '../schema.ts';
import { registryUsers } from '../table.ts';

export type UserRow = typeof registryUsers.$inferSelect;

export async function insert(tx: Tx, users: Omit<UserRow, 'id'>[]): Promise<UserRow[]> {
  return tx.insert(registryUsers).values(users).returning();
}

const readPage = pageReader<UserRow>(registryUsers);

export const list = (db: Db, registryId: number, page: Page) =>
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

export async function find(tx: Tx, registryId: number, id: number): Promise<UserRow | null> {
  const [row] = await tx.select().from(registryUsers).where(isUser(registryId, id));
  return row ?? null;
}

export async function update(
  tx: Tx,
  registryId: number,
  id: number,
  changes: Partial<UserRow>,
): Promise<UserRow | null> {
  const [row] = await tx.update(registryUsers).set(changes).where(isUser(registryId, id)).returning();
  return row ?? null;
}

/** False if the user does not exist. */
export async function remove(tx: Tx, registryId: number, id: number): Promise<boolean> {
  return (await tx.delete(registryUsers).where(isUser(registryId, id)).returning({ id: registryUsers.id })).length > 0;
}
