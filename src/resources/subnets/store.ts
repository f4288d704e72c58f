/** SQL of subnets. Writes touch this folder's table only; reads also see networks, and the rows that refer to subnets. */
import { and, asc, eq, getTableColumns, sql } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { type Db, prepared, type Tx } from '../../platform/db.ts';
import { hasTags, type TagFilter } from '../../tags/filter.ts';
import { networks } from '../networks/table.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import type { ListSubnets } from './schema.ts';
import { subnets } from './table.ts';

export type SubnetRow = typeof subnets.$inferSelect;

/** A subnet with its number of hosts, without the network and broadcast addresses. Null for IPv6. */
export type SubnetView = SubnetRow & { totalIps: number | null; availableIps: number | null };

export const { lock, lockAllowingReferences, update, remove } = kit.singleRows(subnets);
export const insert = kit.insertRow(subnets);

const totalIps = sql<number | null>`
  case when family(${subnets.cidr}) = 4 then (1::bigint << (32 - masklen(${subnets.cidr}))) - 2 end`;
const availableIps = sql<number | null>`(${totalIps}) - (${subnets.gatewayIp} is not null)::int`;

const viewColumns = { ...getTableColumns(subnets), totalIps, availableIps };
export const view = kit.viewOf<SubnetView>(subnets, { columns: viewColumns });
const readPage = kit.pagesOf<SubnetView>(subnets, { columns: viewColumns });

/** Locks the network, so that its subnets are created one after the other. False when it does not exist. */
export async function lockNetwork(tx: Tx, scope: ProjectRegion, networkId: string): Promise<boolean> {
  const rows = await tx
    .select({ id: networks.id })
    .from(networks)
    .where(and(eq(networks.id, networkId), kit.inScope(networks, scope)))
    .for('no key update');
  return rows.length > 0;
}

/** A subnet of the network that shares addresses with `cidr`. */
export function findOverlapping(tx: Tx, networkId: string, cidr: string): Promise<SubnetRow | null> {
  const isOverlapping = and(eq(subnets.networkId, networkId), sql`${subnets.cidr} && ${cidr}::cidr`);
  return kit.firstRow(tx.select().from(subnets).where(isOverlapping).orderBy(asc(subnets.cidr)).limit(1));
}

/** Nulls (IPv6) come last in both directions. */
const orders = kit.ordersOf(
  subnets.id,
  {
    available_ips: availableIps,
    cidr: subnets.cidr,
    created_at: subnets.createdAt,
    name: kit.bytewise(subnets.name),
    total_ips: totalIps,
    updated_at: subnets.updatedAt,
  },
  sql` nulls last`,
);

export async function list(db: Db, scope: ProjectRegion, filter: ListSubnets, tags: TagFilter) {
  const filters = [kit.equals(subnets.networkId, filter.network_id), ...hasTags(subnets.tags, tags)];
  return readPage(db, scope, filter, filters, orders[filter.order_by ?? 'cidr.asc']);
}

const ofSome = `network_id = ${kit.anyOf('$1', 'uuid')}`;

/** The subnets of several networks, by network and address range. */
export const ofNetworks = prepared<SubnetView, [networkIds: string[]], Db>(
  'subnets_of_networks',
  `${kit.selectOf(subnets, { columns: viewColumns })} where ${ofSome}
   order by network_id, ${kit.orderText(orders['cidr.asc'])}`,
);

const readBytes = prepared<{ id: string; bytes: number }>(
  'subnet_bytes_of_networks',
  `select network_id as id, sum(pg_column_size(s.*))::int8 as bytes from subnets s where ${ofSome} group by network_id`,
);

/** The stored size of the subnets of each network that has any. */
export async function bytesOfNetworks(db: Db, networkIds: string[]): Promise<Map<string, number>> {
  return new Map((await readBytes(db, networkIds)).map(({ id, bytes }) => [id, Number(bytes)]));
}

/** References to a subnet: one entry per table. */
export const findUses = prepared<Uses, [subnetId: string], Tx>(
  'subnet_uses',
  [
    kit.usesSql('file share', 'file_shares', 'subnet_id = $1'),
    kit.usesSql('load balancer', 'load_balancers', 'vip_subnet_id = $1'),
    kit.usesSql('pool member', 'lb_members', 'subnet_id = $1', { order: 'pool_id, position' }),
  ].join(' union all '),
);

export const usesOfProject = kit.usesOfProject('subnet', subnets);

export const usageOfRows = kit.usageOfRows(subnets, { subnet_count: 'count(*)' });
