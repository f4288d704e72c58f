/** SQL of members. Writers hold the lock of the load balancer's row. */
import { asc, eq, getTableColumns, inArray, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../../platform/db.ts';
import { lbMembers } from '../table.ts';
import type { MemberRow } from '../table.ts';

/** In the order in which the client sent them. */
export async function ofPool(on: Db | Tx, poolId: string): Promise<MemberRow[]> {
  return on.select().from(lbMembers).where(eq(lbMembers.poolId, poolId)).orderBy(asc(lbMembers.position));
}

const columns = Object.entries(getTableColumns(lbMembers));
const columnsOf = (row: MemberRow) =>
  Object.fromEntries(columns.map(([field, { name }]) => [name, row[field as keyof MemberRow]]));
// The status belongs to the reconciler, and the endpoint identifies the member.
const fixed = ['id', 'poolId', 'address', 'protocolPort', 'operatingStatus'];
const settings = Object.fromEntries(
  columns
    .filter(([field]) => !fixed.includes(field))
    .map(([field, { name }]) => [field, sql`excluded.${sql.identifier(name)}`]),
);

/** Inserts new members and updates the settings of existing ones. */
export async function write(tx: Tx, rows: MemberRow[]): Promise<void> {
  if (rows.length === 0) return;
  // One parameter: 16,000 parameters for 1,000 members would take longer to serialize than to insert.
  const given = JSON.stringify(rows.map(columnsOf));
  await tx
    .insert(lbMembers)
    .select(sql`select * from jsonb_populate_recordset(null::${lbMembers}, ${given}::jsonb)`)
    .onConflictDoUpdate({ target: lbMembers.id, set: settings });
}

export async function remove(tx: Tx, ids: string[]): Promise<void> {
  if (ids.length > 0) await tx.delete(lbMembers).where(inArray(lbMembers.id, ids));
}
