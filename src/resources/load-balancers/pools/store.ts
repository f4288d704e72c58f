/** SQL of pools. Writers hold the lock of the load balancer's row. */
import { eq, getTableColumns, sql, type SQL } from 'drizzle-orm';
import type { Uses } from '../../../errors/catalogue.ts';
import { type Db, deferred, preparedColumn, type Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import * as kit from '../../store-kit.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { selectUsesOfPool } from '../l7-policies/store.ts';
import type { Member } from '../members/schema.ts';
import { lockPart, ofLoadBalancer } from '../store.ts';
import { lbMembers, lbPools, type ListenerRow, loadBalancers, type MemberRow, type PoolRow } from '../table.ts';
import type { ListPools } from './schema.ts';

export const { find, update } = kit.singleRows(lbPools);
export const insert = kit.insertRow(lbPools);

export const anyIpv4 = '0.0.0.0';

/** The address of the load balancer, by which the settings of a pool are checked. Read only if it matters to them. */
export async function addressFor(
  tx: Tx,
  loadBalancerId: string,
  { sessionPersistence }: Pick<PoolRow, 'sessionPersistence'>,
): Promise<string> {
  if (!sessionPersistence?.persistence_granularity) return anyIpv4;
  const rows = await tx
    .select({ address: loadBalancers.vipAddress })
    .from(loadBalancers)
    .where(eq(loadBalancers.id, loadBalancerId));
  return rows[0]?.address ?? anyIpv4;
}

/** A member without the status that it shares with its pool. */
export type MemberView = Omit<Member, 'provisioning_status'>;

/** With its members, the listeners that use it, and the task that locks its load balancer. */
export type PoolView<Member = MemberView> = PoolRow & {
  members: Member[];
  listenerIds: string[];
  taskId: string | null;
};

/** The cost of reading and writing a member, in the unit of `SizedRow`. */
const bytesOfMember = 64;

// One statement reads a pool and its members from the same snapshot.
const membersAs = (member: SQL) => sql`(
  select coalesce(json_agg(${member} order by m.position), '[]') from lb_members m where m.pool_id = lb_pools.id)`;
const detailed = membersAs(sql`json_build_object(
  'id', m.id, 'address', m.address, 'protocol_port', m.protocol_port, 'weight', m.weight, 'backup', m.backup,
  'admin_state_up', m.admin_state_up, 'monitor_address', m.monitor_address, 'monitor_port', m.monitor_port,
  'subnet_id', m.subnet_id, 'operating_status', m.operating_status)`) as SQL<MemberView[]>;
const idsOnly = membersAs(sql`json_build_object('id', m.id)`) as SQL<{ id: string }[]>;
const listenerIds = sql<string[]>`array(
  select l.id from lb_listeners l where l.default_pool_id = lb_pools.id order by l.created_at, l.id)`;

const viewColumns = <Member>(members: SQL<Member[]>) => ({
  ...getTableColumns(lbPools),
  members,
  listenerIds,
  taskId: kit.activeTask(lbPools.loadBalancerId),
});

const withDetails = { columns: viewColumns(detailed) };
export const view = kit.viewOf<PoolView>(lbPools, withDetails);

const memberCount = sql<number>`(select count(*) from lb_members m where m.pool_id = lb_pools.id)`;

const readSizes = kit.pagesOf<SizedRow<string>>(lbPools, {
  columns: { id: lbPools.id, bytes: sql`${memberCount} * ${sql.raw(String(bytesOfMember))}` },
});

/** A thousand pools may have a million members, so the rows themselves are read in groups. */
export const list = (db: Db, scope: ProjectRegion, filter: ListPools) =>
  readSizes(db, scope, filter, [
    ...ofLoadBalancer(lbPools, filter),
    filter.listener_id
      ? sql`${lbPools.id} = (select l.default_pool_id from lb_listeners l where l.id = ${filter.listener_id})`
      : undefined,
    kit.contains(lbPools.name, filter.name),
  ]);

const readDetailed = kit.rowsByIds<PoolView>(lbPools, withDetails, 'lb_pools_detailed');
const readWithIds = kit.rowsByIds<PoolView<{ id: string }>>(lbPools, { columns: viewColumns(idsOnly) });

/** Without `details` members have only their ids. */
export async function viewsById(
  db: Db,
  ids: string[],
  details: boolean | undefined,
): Promise<PoolView<MemberView | { id: string }>[]> {
  return details ? readDetailed(db, ids) : readWithIds(db, ids);
}

/** SQL: the protocols of the listeners that use a pool, as their default pool or in an L7 policy. */
const protocolsOf = (poolId: string) => `
  select l.protocol from lb_listeners l where l.default_pool_id = ${poolId} or l.id in (
    select p.listener_id from lb_l7_policies p where p.redirect_pool_id = ${poolId} and p.deleted_at is null)`;

export const listenerProtocols = preparedColumn<ListenerRow['protocol'], [poolId: string], Tx>(
  'lb_pool_protocols',
  protocolsOf('$1'),
);

/** A pool whose load balancer this transaction has locked. Members are in the order in which the client sent them. */
export type LockedPool = kit.Locked<PoolRow> & {
  members: MemberRow[];
  listenerProtocols: ListenerRow['protocol'][];
  /** L7 policies that redirect to it. */
  uses: Uses[];
};

const members = kit.jsonRows(lbMembers, getTableColumns(lbMembers), 'pool_id = lb_pools.id', ['r.position']);

export const lockPool = lockPart<LockedPool>(lbPools, {
  members,
  listenerProtocols: sql.raw(`array(${protocolsOf('lb_pools.id')})`),
  uses: sql.raw(`array(select row_to_json(uses) from (${selectUsesOfPool('lb_pools.id')}) as uses)`),
});

/** Makes the pool the default pool of the listener. */
export const attach = deferred<[listenerId: string, poolId: string]>('lb_pool_attach', {
  parameters: 'uuid, uuid',
  body: `update lb_listeners set default_pool_id = $2, provisioning_status = 'PENDING_UPDATE' where id = $1;`,
});
