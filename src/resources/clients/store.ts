/** SQL of clients. */
import { asc, eq } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import { firstRow, type PageQuery, pageReader, rowById } from '../store-kit.ts';
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

const readPage = pageReader<ClientRow>(clients);

export const page = (db: Db, page: PageQuery) => readPage(db, { where: undefined, order: [asc(clients.id)], page });

/** Undefined values keep the column. */
export async function update(
  tx: Tx,
  id: number,
  changes: { name: string | undefined; emails: string[] | undefined },
): Promise<void> {
  await tx.update(clients).set(changes).where(eq(clients.id, id));
}

export async function setWeight(tx: Tx, id: number, weight: number): Promise<void> {
  await tx.update(clients).set({ weight }).where(eq(clients.id, id));
}

export function findOperator(db: Db | Tx): Promise<ClientRow | null> {
  return firstRow(db.select().from(clients).where(eq(clients.operator, true)).orderBy(asc(clients.id)).limit(1));
}
