/**
 * SQL of networks. Writes touch this folder's table, and insert the subnet of a default network; reads also see the rows
 * that refer to networks.
 */
import { getTableColumns, sql } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { batchedRead, type Key } from '../../platform/batched-read.ts';
import { type Db, prepared, type Tx } from '../../platform/db.ts';
import { hasTags, type TagFilter } from '../../tags/filter.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import type { ListNetworks } from './schema.ts';
import { networks } from './table.ts';

export type NetworkRow = typeof networks.$inferSelect;
/** The filters of all lists of networks. */
export type NetworkFilter = ListNetworks & { network_id?: string; shared?: boolean };

/** A network with the ids of its subnets, oldest first. */
export type NetworkView = NetworkRow & { subnetIds: string[] };

export const { lock, lockAllowingReferences, update, remove } = kit.singleRows(networks);
export const insert = kit.insertRow(networks);
export { insert as insertFirstSubnet } from '../subnets/store.ts';

const subnetIds = sql<string[]>`array(
  select s.id from subnets s where s.network_id = networks.id order by s.created_at, s.id)`;
const columns = { ...getTableColumns(networks), subnetIds };
export const view = kit.viewOf<NetworkView>(networks, { columns });
const readPage = kit.pagesOf<NetworkView>(networks, { columns });

const byField = kit.ordersOf(networks.id, { created_at: networks.createdAt, name: kit.bytewise(networks.name) });
/** Networks have no priority. */
const orders = { ...byField, 'priority.desc': byField['created_at.desc'] };

export async function list(db: Db, scope: ProjectRegion, filter: NetworkFilter, tags: TagFilter) {
  const filters = [
    kit.contains(networks.name, filter.name),
    kit.equals(networks.id, filter.network_id),
    kit.equals(networks.type, filter.network_type),
    ...hasTags(networks.tags, tags),
  ];
  return readPage(db, scope, filter, filters, orders[filter.order_by ?? 'created_at.desc']);
}

const choose = prepared<{ network_id: string; subnet_id: string | null }>(
  'network_for_new_resource',
  `select network.id as network_id, subnet.id as subnet_id
   from (
     select id from networks
     where project_id = $1 and region_id = $2 and ($3::uuid is null or id = $3)
     order by is_default desc, created_at, id limit 1) as network
   left join lateral (
     select s.id from subnets s
     where s.network_id = network.id and ($4::uuid is null or s.id = $4)
     order by s.created_at, s.id limit 1) as subnet on true`,
);

interface Chosen {
  networkId: string;
  subnetId: string | null;
}

/** Concurrent creates in one network share a statement. */
const chooseTogether = batchedRead<Chosen & { key: Key }>(
  async (db, keys) => {
    const chosen = keys.map(async (key) => {
      const [projectId, regionId, networkId, subnetId] = key;
      const [row] = await choose(db, projectId, regionId, networkId || null, subnetId || null);
      return row ? [{ key, networkId: row.network_id, subnetId: row.subnet_id }] : [];
    });
    return (await Promise.all(chosen)).flat();
  },
  ({ key }) => key,
);

/**
 * The network and subnet of a new resource. Without a subnet id it is the network's oldest subnet; without a network id,
 * the default network or else the oldest one. Foreign keys of the resource then keep both.
 */
export const chooseForNewResource = (
  db: Db,
  { projectId, regionId }: ProjectRegion,
  networkId: string | null,
  subnetId: string | null,
): Promise<Chosen | null> => chooseTogether(db, projectId, regionId, networkId ?? '', subnetId ?? '');

/** References to a network: one entry per table. */
export const findUses = prepared<Uses, [networkId: string], Tx>(
  'network_uses',
  [
    kit.usesSql('subnet', 'subnets', 'network_id = $1'),
    kit.usesSql('file share', 'file_shares', 'network_id = $1'),
    kit.usesSql('load balancer', 'load_balancers', 'vip_network_id = $1'),
  ].join(' union all '),
);

export const usesOfProject = kit.usesOfProject('network', networks);

export const usageOfRows = kit.usageOfRows(networks, { network_count: 'count(*)' });
