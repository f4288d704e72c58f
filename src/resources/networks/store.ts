/**
 * SQL of networks. Writes touch this folder's table only, but for the subnet that a default network is born with; reads
 * may look at what networks refer to and at what refers to them.
 */
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import { prepared } from '../../platform/db.ts';
import type { Uses } from '../../errors/catalogue.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { hasTags } from '../../tags/filter.ts';
import type { TagFilter } from '../../tags/filter.ts';
import { subnets } from '../subnets/table.ts';
import type { ListNetworks } from './schema.ts';
import { networks } from './table.ts';

export type NetworkRow = typeof networks.$inferSelect;

/** A network with the ids of its subnets, oldest first. */
export type NetworkView = NetworkRow & { subnetIds: string[] };

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const subnetIds = sql<string[]>`array(
  select s.id from subnets s where s.network_id = networks.id order by s.created_at, s.id)`;

const views = (on: Db | Tx) => on.select({ network: networks, subnetIds }).from(networks);

const asView = (row: { network: NetworkRow; subnetIds: string[] }): NetworkView => ({
  ...row.network,
  subnetIds: row.subnetIds,
});

const at = (where: Where, id: string) =>
  and(eq(networks.id, id), eq(networks.projectId, where.projectId), eq(networks.regionId, where.regionId));

export async function view(on: Db | Tx, where: Where, id: string): Promise<NetworkView | null> {
  const [row] = await views(on).where(at(where, id));
  return row ? asView(row) : null;
}

/**
 * Takes the row's lock: whoever changes a network holds it from reading to commit. `no key update` lets others go on to
 * refer to the row; `update` does not.
 */
export async function lock(
  tx: Tx,
  where: Where,
  id: string,
  strength: 'update' | 'no key update',
): Promise<NetworkView | null> {
  const [row] = await views(tx).where(at(where, id)).for(strength, { of: networks });
  return row ? asView(row) : null;
}

// Byte order, so that a list has the same order whatever the locale of the database.
const byName = sql`${networks.name} collate "C"`;
const newestFirst = [desc(networks.createdAt), desc(networks.id)];
const orders = {
  'created_at.asc': [asc(networks.createdAt), asc(networks.id)],
  'created_at.desc': newestFirst,
  'name.asc': [asc(byName), asc(networks.id)],
  'name.desc': [desc(byName), desc(networks.id)],
  'priority.desc': newestFirst,
};

export async function list(
  db: Db,
  where: Where,
  filter: ListNetworks,
  tags: TagFilter,
): Promise<{ count: number; rows: NetworkView[] }> {
  const conditions = [eq(networks.projectId, where.projectId), eq(networks.regionId, where.regionId)];
  if (filter.name) conditions.push(sql`strpos(${networks.name}, ${filter.name}) > 0`);
  if (filter.network_type) conditions.push(eq(networks.type, filter.network_type));
  conditions.push(...hasTags(networks.tags, tags));
  const [rows, count] = await Promise.all([
    views(db)
      .where(and(...conditions))
      .orderBy(...orders[filter.order_by ?? 'created_at.desc'])
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(networks, and(...conditions)),
  ]);
  return { count, rows: rows.map(asView) };
}

const holdClient = prepared<{ client_id: number }>(
  'network_hold_project',
  'select client_id from projects where id = $1 and deleted_at is null for key share',
);

/**
 * Keeps the project from being deleted until this transaction ends. The foreign key would not: it holds the row, and the
 * row of a deleted project stays. False when the project is deleted already.
 */
export async function holdProject(tx: Tx, projectId: number): Promise<boolean> {
  return (await holdClient(tx, projectId)).length > 0;
}

export async function insert(tx: Tx, network: NetworkRow): Promise<void> {
  await tx.insert(networks).values(network);
}

/** The subnet of a default network. */
export async function insertFirstSubnet(tx: Tx, subnet: typeof subnets.$inferInsert): Promise<void> {
  await tx.insert(subnets).values(subnet);
}

export async function update(tx: Tx, id: string, changes: Partial<NetworkRow>): Promise<void> {
  await tx.update(networks).set(changes).where(eq(networks.id, id));
}

export async function remove(tx: Tx, id: string): Promise<void> {
  await tx.delete(networks).where(eq(networks.id, id));
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
     order by s.created_at, s.id limit 1 for key share) as subnet on true`,
);

/**
 * The network and subnet where a new resource goes: those given; for a network without a subnet, its oldest; without
 * either, those of the default network, or else of the oldest one. The subnet, and with it the network, cannot be
 * deleted until this transaction ends.
 */
export async function chooseForNewResource(
  tx: Tx,
  where: Where,
  networkId: string | null,
  subnetId: string | null,
): Promise<{ networkId: string; subnetId: string | null } | null> {
  const [row] = await choose(tx, where.projectId, where.regionId, networkId, subnetId);
  return row ? { networkId: row.network_id, subnetId: row.subnet_id } : null;
}

const readUses = prepared<Uses>(
  'network_uses',
  `select 'subnet' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from subnets where network_id = $1 having count(*) > 0
   union all
   select 'file share', count(*), (array_agg(id order by created_at, id))[1:3]
   from file_shares where network_id = $1 having count(*) > 0
   union all
   select 'load balancer', count(*), (array_agg(id order by created_at, id))[1:3]
   from load_balancers where vip_network_id = $1 having count(*) > 0`,
);

/** What refers to a network: a line for each table that does. */
export async function uses(tx: Tx, networkId: string): Promise<Uses[]> {
  return readUses(tx, networkId);
}

const readUsesOfProject = prepared<Uses>(
  'network_uses_of_project',
  `select 'network' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from networks where project_id = $1 having count(*) > 0`,
);

export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select p.client_id, n.region_id, 'network_count', count(*)
  from networks n join projects p on p.id = n.project_id group by 1, 2`;
