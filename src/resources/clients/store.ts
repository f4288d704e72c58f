/** SQL of clients. */
import { asc, eq } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import { pageOf, rowById } from '../store-kit.ts';
import { clients } from './table.ts';

export type ClientRow = typeof clients.$inferSelect;

export async function insert(tx: Tx, name: string, operator: boolean, createdAt: Date): Promise<number> {
  const [row] = await tx.insert(clients).values({ name, operator, createdAt }).returning({ id: clients.id });
  return row!.id;
}

export async function list(db: Db | Tx): Promise<ClientRow[]> {
  return db.select().from(clients).orderBy(asc(clients.id));
}

export const find = rowById<ClientRow>(clients);

export async function page(
  db: Db,
  page: { limit?: number; offset?: number },
): Promise<{ count: number; rows: ClientRow[] }> {
  const order = [asc(clients.id)];
  return pageOf<ClientRow>(db.select().from(clients), {
    where: undefined,
    order,
    page,
    count: () => db.$count(clients),
  });
}

/** Undefined values keep the column. */
export async function update(
  tx: Tx,
  id: number,
  changes: { name: string | undefined; emails: string[] | undefined },
): Promise<void> {
  await tx.update(clients).set(changes).where(eq(clients.id, id));
}

/** False when the client does not exist. */
export async function setWeight(tx: Tx, id: number, weight: number): Promise<boolean> {
  const changed = await tx.update(clients).set({ weight }).where(eq(clients.id, id)).returning({ id: clients.id });
  return changed.length > 0;
}

export async function findOperator(db: Db | Tx): Promise<ClientRow | null> {
  const [row] = await db.select().from(clients).where(eq(clients.operator, true)).orderBy(asc(clients.id)).limit(1);
  return row ?? null;
}
