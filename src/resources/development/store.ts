/** SQL of injected faults, and of the regions that workers serve. */
import { asc, eq } from 'drizzle-orm';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { developmentFaults } from './table.ts';

type FaultRow = typeof developmentFaults.$inferSelect;

export async function insert(tx: Tx, fault: Omit<FaultRow, 'id'>): Promise<FaultRow> {
  const [row] = await tx.insert(developmentFaults).values(fault).returning();
  return row!;
}

export async function list(db: Db): Promise<FaultRow[]> {
  return db.select().from(developmentFaults).orderBy(asc(developmentFaults.id));
}

export async function clear(tx: Tx): Promise<void> {
  await tx.delete(developmentFaults);
}

/** False if the fault does not exist. */
export async function remove(tx: Tx, id: number): Promise<boolean> {
  const removed = await tx
    .delete(developmentFaults)
    .where(eq(developmentFaults.id, id))
    .returning({ id: developmentFaults.id });
  return removed.length > 0;
}

const takeOne = prepared<FaultRow>(
  'development_fault_take',
  `update development_faults set remaining = remaining - 1
   where id = (select id from development_faults where resource = $1 and operation = $2 and remaining > 0
               order by id limit 1 for update)
   returning *`,
);

/** Uses up one occurrence of the oldest remaining fault of an operation. */
export async function take(db: Db, resource: string, operation: string): Promise<FaultRow | null> {
  return (await takeOne(db, resource, operation))[0] ?? null;
}

const find = prepared('development_fault_find', 'select from development_faults where id = $1');

export async function exists(db: Db, id: number): Promise<boolean> {
  return (await find(db, id)).length > 0;
}

const readServed = prepared<{ id: number }>(
  'development_served_regions',
  `select distinct unnest(region_ids) as id from workers where seen_at > now() - interval '10 seconds'`,
);

/** The regions that live workers serve. */
export async function findServedRegions(db: Db): Promise<number[]> {
  return (await readServed(db)).map((row) => row.id);
}
