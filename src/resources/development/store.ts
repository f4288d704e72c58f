/** SQL of injected faults, and of the regions that workers serve. */
import { asc, eq } from 'drizzle-orm';
import { type Db, preparedColumn, preparedExists, preparedRow, type Tx } from '../../platform/db.ts';
import { seenRecently } from '../../tasks/table.ts';
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
  const { rowCount } = await tx.delete(developmentFaults).where(eq(developmentFaults.id, id));
  return rowCount === 1;
}

/** Uses up one occurrence of the oldest remaining fault of an operation. */
export const take = preparedRow<FaultRow, [resource: string, operation: string], Db>(
  'development_fault_take',
  `update development_faults set remaining = remaining - 1
   where id = (select id from development_faults where resource = $1 and operation = $2 and remaining > 0
               order by id limit 1 for update)
   returning *`,
);

export const exists = preparedExists<[id: number], Db>(
  'development_fault_find',
  'select from development_faults where id = $1',
);

/** Advisory lock: all servers of the database together move the clock once at a time. */
const moving = 0x636c6f75_6d76;

/** Null, without a call of `work`, while another request holds the lock. */
export async function withMoveLock<T>({ $client }: Db, work: () => Promise<T>): Promise<T | null> {
  const client = await $client.connect();
  try {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [moving]);
    if (!rows[0]!.taken) return null;
    try {
      return await work();
    } finally {
      await client.query('select pg_advisory_unlock($1)', [moving]);
    }
  } finally {
    client.release();
  }
}

/** The regions that live workers serve. */
export const findServedRegions = preparedColumn<number, [], Db>(
  'development_served_regions',
  `select distinct unnest(region_ids) as id from workers where ${seenRecently}`,
);
