/**
 * SQL of subnets. Writes touch this folder's table only; reads may look at the network that a subnet is in and at what
 * refers to subnets.
 */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { prepared } from '../../platform/db.ts';
import type { Uses } from '../../errors/catalogue.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { hasTags } from '../../tags/filter.ts';
import type { TagFilter } from '../../tags/filter.ts';
import type { Where } from '../networks/store.ts';
import { networks } from '../networks/table.ts';
import type { ListSubnets, SubnetOrder } from './schema.ts';
import { subnets } from './table.ts';

export type SubnetRow = typeof subnets.$inferSelect;

/** A subnet with how many hosts it has room for: the network and broadcast addresses are none. Null for IPv6. */
export type SubnetView = SubnetRow & { totalIps: number | null; availableIps: number | null };

const totalIps = sql<number | null>`
  case when family(${subnets.cidr}) = 4 then (1::bigint << (32 - masklen(${subnets.cidr}))) - 2 end`;
const availableIps = sql<number | null>`(${totalIps}) - (${subnets.gatewayIp} is not null)::int`;

const views = (on: Db | Tx) => on.select({ subnet: subnets, totalIps, availableIps }).from(subnets);

const asView = (row: { subnet: SubnetRow; totalIps: number | null; availableIps: number | null }): SubnetView => {
  const { subnet, ...rest } = row;
  return { ...subnet, ...rest };
};

const at = (where: Where, id: string) =>
  and(eq(subnets.id, id), eq(subnets.projectId, where.projectId), eq(subnets.regionId, where.regionId));

export async function view(on: Db | Tx, where: Where, id: string): Promise<SubnetView | null> {
  const [row] = await views(on).where(at(where, id));
  return row ? asView(row) : null;
}

/**
 * Takes the row's lock: whoever changes a subnet holds it from reading to commit. `no key update` lets others go on to
 * refer to the row; `update` does not.
 */
export async function lock(
  tx: Tx,
  where: Where,
  id: string,
  strength: 'update' | 'no key update',
): Promise<SubnetRow | null> {
  const [row] = await tx.select().from(subnets).where(at(where, id)).for(strength);
  return row ?? null;
}

/** Takes the lock of the network's row, so that its subnets are made one after the other. False when it is not there. */
export async function lockNetwork(tx: Tx, where: Where, networkId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: networks.id })
    .from(networks)
    .where(
      and(eq(networks.id, networkId), eq(networks.projectId, where.projectId), eq(networks.regionId, where.regionId)),
    )
    .for('no key update');
  return rows.length > 0;
}

/** A subnet of the network that shares addresses with `cidr`. */
export async function overlapping(tx: Tx, networkId: string, cidr: string): Promise<SubnetRow | null> {
  const [row] = await tx
    .select()
    .from(subnets)
    .where(and(eq(subnets.networkId, networkId), sql`${subnets.cidr} && ${cidr}::cidr`))
    .orderBy(asc(subnets.cidr))
    .limit(1);
  return row ?? null;
}

// Byte order, so that a list has the same order whatever the locale of the database.
const byName = sql`${subnets.name} collate "C"`;
const columns: Record<string, SQL | PgColumn> = {
  available_ips: availableIps,
  cidr: subnets.cidr,
  created_at: subnets.createdAt,
  name: byName,
  total_ips: totalIps,
  updated_at: subnets.updatedAt,
};

/** What has no number (IPv6) comes last either way; equals come in the order in which they were made. */
function orderOf(order: SubnetOrder): SQL[] {
  const [column, direction] = order.split('.') as [string, 'asc' | 'desc'];
  const way = sql.raw(direction);
  return [sql`${columns[column]} ${way} nulls last`, sql`${subnets.createdAt} ${way}`, sql`${subnets.id} ${way}`];
}

export async function list(
  db: Db,
  where: Where,
  filter: ListSubnets,
  tags: TagFilter,
): Promise<{ count: number; rows: SubnetView[] }> {
  const conditions = [eq(subnets.projectId, where.projectId), eq(subnets.regionId, where.regionId)];
  if (filter.network_id) conditions.push(eq(subnets.networkId, filter.network_id));
  conditions.push(...hasTags(subnets.tags, tags));
  const [rows, count] = await Promise.all([
    views(db)
      .where(and(...conditions))
      .orderBy(...orderOf(filter.order_by ?? 'created_at.asc'))
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(subnets, and(...conditions)),
  ]);
  return { count, rows: rows.map(asView) };
}

export async function insert(tx: Tx, subnet: SubnetRow): Promise<void> {
  await tx.insert(subnets).values(subnet);
}

export async function update(tx: Tx, id: string, changes: Partial<SubnetRow>): Promise<void> {
  await tx.update(subnets).set(changes).where(eq(subnets.id, id));
}

export async function remove(tx: Tx, id: string): Promise<void> {
  await tx.delete(subnets).where(eq(subnets.id, id));
}

const readUses = prepared<Uses>(
  'subnet_uses',
  `select 'file share' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from file_shares where subnet_id = $1 having count(*) > 0
   union all
   select 'load balancer', count(*), (array_agg(id order by created_at, id))[1:3]
   from load_balancers where vip_subnet_id = $1 having count(*) > 0`,
);

/** What refers to a subnet: a line for each table that does. */
export async function uses(tx: Tx, subnetId: string): Promise<Uses[]> {
  return readUses(tx, subnetId);
}

const readUsesOfProject = prepared<Uses>(
  'subnet_uses_of_project',
  `select 'subnet' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from subnets where project_id = $1 having count(*) > 0`,
);

export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select p.client_id, s.region_id, 'subnet_count', count(*)
  from subnets s join projects p on p.id = s.project_id group by 1, 2`;
