import type { Tx } from '../../platform/db.ts';
import { regions } from './table.ts';

/** An existing region gets the name, and keeps its creation time. */
export async function upsert(tx: Tx, id: number, name: string, createdAt: Date): Promise<void> {
  await tx.insert(regions).values({ id, name, createdAt }).onConflictDoUpdate({ target: regions.id, set: { name } });
}

/** By the id of the region. */
export async function createdAt(tx: Tx): Promise<Map<number, Date>> {
  const rows = await tx.select().from(regions);
  return new Map(rows.map((row) => [row.id, row.createdAt]));
}
