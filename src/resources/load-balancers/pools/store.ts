/**
 * SQL of pools and members. Writes touch this folder's tables, and the one column by which a listener names its pool.
 * Whoever writes holds the lock of the load balancer's row.
 */
import { and, asc, eq, getTableColumns, inArray, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { preparedQuery } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { lbListeners } from '../listeners/table.ts';
import { loadBalancers } from '../table.ts';
import { subnets } from '../../subnets/table.ts';
import type { Member, ListPools } from './schema.ts';
import { lbMembers, lbPools } from './table.ts';

export type PoolRow = typeof lbPools.$inferSelect;
export type MemberRow = typeof lbMembers.$inferSelect;

export type ListenerProtocol = (typeof lbListeners.$inferSelect)['protocol'];

/** A member as a pool shows it, but for the status that it shares with its pool. */
export type ShownMember = Omit<Member, 'provisioning_status'>;

/** A pool with its members, the listeners that it serves, and the task that locks its load balancer. */
export type PoolView<Member = ShownMember> = PoolRow & {
  members: Member[];
  listenerIds: string[];
  taskId: string | null;
};

/** What reading and writing a member costs, in the measure of `SizedRow`. */
const bytesOfMember = 64;

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

// One statement a view, so that a pool and its members are of one moment.
const membersAs = (shown: SQL) => sql`(
  select coalesce(json_agg(${shown} order by m.position), '[]') from lb_members m where m.pool_id = lb_pools.id)`;
const detailed = membersAs(sql`json_build_object(
  'id', m.id, 'address', m.address, 'protocol_port', m.protocol_port, 'weight', m.weight, 'backup', m.backup,
  'admin_state_up', m.admin_state_up, 'monitor_address', m.monitor_address, 'monitor_port', m.monitor_port,
  'subnet_id', m.subnet_id, 'operating_status', m.operating_status)`) as SQL<ShownMember[]>;
const idsOnly = membersAs(sql`json_build_object('id', m.id)`) as SQL<{ id: string }[]>;
const listenerIds = sql<string[]>`array(
  select l.id from lb_listeners l where l.default_pool_id = lb_pools.id order by l.created_at, l.id)`;
const lockingTask = sql<string | null>`(
  select t.id from tasks t where t.resource_id = lb_pools.load_balancer_id::text and t.state in ('NEW', 'RUNNING')
  order by t.created_on limit 1)`;

const views = <Member>(on: Db | Tx, members: SQL<Member[]>) =>
  on.select({ pool: lbPools, members, listenerIds, taskId: lockingTask }).from(lbPools);

const asView = <Member>(row: { pool: PoolRow } & Omit<PoolView<Member>, keyof PoolRow>): PoolView<Member> => {
  const { pool, ...rest } = row;
  return { ...pool, ...rest };
};

const inside = (where: Where) => and(eq(lbPools.projectId, where.projectId), eq(lbPools.regionId, where.regionId));

const viewById = preparedQuery((db) =>
  views(db, detailed)
    .where(
      and(
        eq(lbPools.id, sql.placeholder('id')),
        eq(lbPools.projectId, sql.placeholder('projectId')),
        eq(lbPools.regionId, sql.placeholder('regionId')),
      ),
    )
    .prepare('lb_pool_view'),
);

export async function view(db: Db, where: Where, id: string): Promise<PoolView | null> {
  const [row] = await viewById(db).execute({ id, projectId: where.projectId, regionId: where.regionId });
  return row ? asView(row) : null;
}

const memberCount = sql<number>`(select count(*) from lb_members m where m.pool_id = lb_pools.id)`;

/** Oldest first. A thousand pools may have a million members, so they are read apart. */
export async function list(
  db: Db,
  where: Where,
  filter: ListPools,
): Promise<{ count: number; rows: SizedRow<string>[] }> {
  const conditions = [inside(where)];
  for (const id of [filter.load_balancer_id, filter.loadbalancer_id]) {
    if (id) conditions.push(eq(lbPools.loadBalancerId, id));
  }
  if (filter.listener_id) {
    conditions.push(sql`${filter.listener_id} in (
      select l.id from lb_listeners l where l.default_pool_id = lb_pools.id)`);
  }
  if (filter.name) conditions.push(sql`strpos(${lbPools.name}, ${filter.name}) > 0`);
  const [rows, count] = await Promise.all([
    db
      .select({ id: lbPools.id, bytes: sql<number>`${memberCount} * ${bytesOfMember}` })
      .from(lbPools)
      .where(and(...conditions))
      .orderBy(asc(lbPools.createdAt), asc(lbPools.id))
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(lbPools, and(...conditions)),
  ]);
  return { count, rows };
}

/** Without `details` members have their ids alone. */
export async function viewsById(
  db: Db,
  ids: string[],
  details: boolean | undefined,
): Promise<PoolView<ShownMember | { id: string }>[]> {
  const members: SQL<(ShownMember | { id: string })[]> = details ? detailed : idsOnly;
  return (await views(db, members).where(inArray(lbPools.id, ids))).map(asView);
}

export async function find(on: Db | Tx, where: Where, id: string): Promise<PoolRow | null> {
  const [row] = await on
    .select()
    .from(lbPools)
    .where(and(eq(lbPools.id, id), inside(where)));
  return row ?? null;
}

/** In the order in which the client gave them. */
export async function members(on: Db | Tx, poolId: string): Promise<MemberRow[]> {
  return on.select().from(lbMembers).where(eq(lbMembers.poolId, poolId)).orderBy(asc(lbMembers.position));
}

export async function insert(tx: Tx, pool: PoolRow): Promise<void> {
  await tx.insert(lbPools).values(pool);
}

export async function update(tx: Tx, id: string, changes: Partial<PoolRow>): Promise<void> {
  await tx.update(lbPools).set(changes).where(eq(lbPools.id, id));
}

const settings = {
  position: sql`excluded.position`,
  weight: sql`excluded.weight`,
  backup: sql`excluded.backup`,
  adminStateUp: sql`excluded.admin_state_up`,
  monitorAddress: sql`excluded.monitor_address`,
  monitorPort: sql`excluded.monitor_port`,
  subnetId: sql`excluded.subnet_id`,
  instanceId: sql`excluded.instance_id`,
};

const memberColumns = Object.entries(getTableColumns(lbMembers)).map(
  ([field, { name }]) => [field as keyof MemberRow, name] as const,
);
const byColumn = (row: MemberRow) => Object.fromEntries(memberColumns.map(([field, name]) => [name, row[field]]));

/** Inserts new members; of those that are there it writes what a client decides, and leaves their status alone. */
export async function writeMembers(tx: Tx, rows: MemberRow[]): Promise<void> {
  if (rows.length === 0) return;
  // There may be 1,000: as one parameter, because 16,000 would take longer to write down than to insert.
  const given = JSON.stringify(rows.map(byColumn));
  await tx
    .insert(lbMembers)
    .select(sql`select * from jsonb_populate_recordset(null::${lbMembers}, ${given}::jsonb)`)
    .onConflictDoUpdate({ target: lbMembers.id, set: settings });
}

export async function removeMembers(tx: Tx, ids: string[]): Promise<void> {
  if (ids.length > 0) await tx.delete(lbMembers).where(inArray(lbMembers.id, ids));
}

/** Those of the listeners that the pool serves. */
export async function listenerProtocols(tx: Tx, poolId: string): Promise<ListenerProtocol[]> {
  const rows = await tx
    .select({ protocol: lbListeners.protocol })
    .from(lbListeners)
    .where(eq(lbListeners.defaultPoolId, poolId));
  return rows.map((row) => row.protocol);
}

export type ListenerOfPool = Pick<
  typeof lbListeners.$inferSelect,
  'id' | 'loadBalancerId' | 'protocol' | 'defaultPoolId' | 'deletedAt'
>;

export async function findListener(tx: Tx, where: Where, id: string): Promise<ListenerOfPool | null> {
  const { projectId, regionId } = lbListeners;
  const [row] = await tx
    .select({
      id: lbListeners.id,
      loadBalancerId: lbListeners.loadBalancerId,
      protocol: lbListeners.protocol,
      defaultPoolId: lbListeners.defaultPoolId,
      deletedAt: lbListeners.deletedAt,
    })
    .from(lbListeners)
    .where(and(eq(lbListeners.id, id), eq(projectId, where.projectId), eq(regionId, where.regionId)));
  return row ?? null;
}

/** Makes the pool the listener's default one. */
export async function attach(tx: Tx, listenerId: string, poolId: string): Promise<void> {
  await tx
    .update(lbListeners)
    .set({ defaultPoolId: poolId, provisioningStatus: 'PENDING_UPDATE' })
    .where(eq(lbListeners.id, listenerId));
}

export async function hasLoadBalancer(tx: Tx, where: Where, id: string): Promise<boolean> {
  const { projectId, regionId } = loadBalancers;
  const rows = await tx
    .select({ id: loadBalancers.id })
    .from(loadBalancers)
    .where(and(eq(loadBalancers.id, id), eq(projectId, where.projectId), eq(regionId, where.regionId)));
  return rows.length > 0;
}

/** Those of the ids that are subnets of the project and region. */
export async function knownSubnets(tx: Tx, where: Where, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { projectId, regionId } = subnets;
  const rows = await tx
    .select({ id: subnets.id })
    .from(subnets)
    .where(and(inArray(subnets.id, ids), eq(projectId, where.projectId), eq(regionId, where.regionId)));
  return new Set(rows.map((row) => row.id));
}
