/** SQL of injected faults, and of the regions that workers serve. */
import { asc } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import { selectExists, selectRow, selectValues } from '../../platform/statements.ts';
import { developmentFaults } from './table.ts';

export type FaultRow = typeof developmentFaults.$inferSelect;

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

/** Uses up one occurrence of the oldest remaining fault of an operation. */
export const take = selectRow<[resource: string, operation: string], FaultRow>(
  'development_fault_take',
  `update development_faults set remaining = remaining - 1
   where id = (select id from development_faults where resource = $1 and operation = $2 and remaining > 0
               order by id limit 1 for update)
   returning *`,
);

export const exists = selectExists<[id: number]>(
  'development_fault_find',
  'select from development_faults where id = $1',
);

/** The regions that live workers serve. */
export const findServedRegions = selectValues<[], number>(
  'development_served_regions',
  `select distinct unnest(region_ids) as id from workers where seen_at > now() - interval '10 seconds'`,
);
