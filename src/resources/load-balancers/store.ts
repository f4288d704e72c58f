/**
 * SQL of load balancers, and of everything that a host configuration is made of. Writes of single listeners, pools and
 * members are in their folders.
 */
import { and, getTableColumns, getTableName, inArray, sql, type SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Uses } from '../../errors/catalogue.ts';
import { columnsOf, type Db, deferred, type DeferredWrite, prepared, type Tx } from '../../platform/db.ts';
import { violatedConstraint } from '../../platform/db-errors.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { hasTags, type TagFilter } from '../../tags/filter.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { subnets } from '../subnets/table.ts';
import type { ListLoadBalancers } from './schema.ts';
import type { OperatingStatus, ProvisioningStatus, Stats } from './shapes.ts';
import {
  type L7PolicyRow,
  type L7RuleRow,
  lbL7Policies,
  lbL7Rules,
  lbListeners,
  lbMembers,
  lbPools,
  type ListenerRow,
  type LoadBalancerRow,
  loadBalancers,
  type MemberRow,
  type PoolRow,
} from './table.ts';

export const { find, lockById, update } = kit.singleRows(loadBalancers);
/** `remove` also removes all parts. */
export const { findPending, findKnown, findExpected, remove } = kit.reconciledRows(loadBalancers, {
  condition: `provisioning_status = 'ACTIVE'`,
});

export const limitListeners = kit.limitRows(loadBalancers, {
  of: 'listeners',
  most: 200,
  count: 'select count(*) from lb_listeners where load_balancer_id = $1',
});
export const limitPools = kit.limitRows(loadBalancers, {
  of: 'pools',
  most: 200,
  count: 'select count(*) from lb_pools where load_balancer_id = $1',
});
export const limitMembers = kit.limitRows(loadBalancers, {
  of: 'members',
  most: 10_000,
  count: 'select count(*) from lb_members m join lb_pools p on p.id = m.pool_id where p.load_balancer_id = $1',
});

/** A load balancer with all its parts, also those that are being deleted. */
export interface WholeLoadBalancer {
  loadBalancer: LoadBalancerRow;
  listeners: ListenerRow[];
  pools: PoolRow[];
  /** In the order of their pool. */
  members: MemberRow[];
  /** By position. */
  l7Policies: L7PolicyRow[];
  l7Rules: L7RuleRow[];
}

/** With the ids and counters of its listeners, and the task that locks it. */
export type LoadBalancerView = LoadBalancerRow & { listenerIds: string[]; stats: Stats | null; taskId: string | null };

const listenerIds = sql<string[]>`array(
  select l.id from lb_listeners l where l.load_balancer_id = load_balancers.id order by l.created_at, l.id)`;

const stats = sql<Stats>`(
  select json_build_object(
    'active_connections', coalesce(sum(c.active_connections), 0),
    'bytes_in', coalesce(sum(c.bytes_in), 0),
    'bytes_out', coalesce(sum(c.bytes_out), 0),
    'request_errors', coalesce(sum(c.request_errors), 0),
    'total_connections', coalesce(sum(c.total_connections), 0))
  from lb_listeners l join lb_listener_counters c on c.listener_id = l.id
  where l.load_balancer_id = load_balancers.id)`;

/** Parts that are provisioned, and removed when the host has been seen without them. */
type PartTable = typeof lbListeners | typeof lbPools | typeof lbL7Policies | typeof lbL7Rules;

/** The load balancer of a listener or pool, in the two spellings of a query. */
export const ofLoadBalancer = (
  { loadBalancerId }: typeof lbListeners | typeof lbPools,
  filter: { load_balancer_id?: string; loadbalancer_id?: string },
) => [kit.equals(loadBalancerId, filter.load_balancer_id), kit.equals(loadBalancerId, filter.loadbalancer_id)];

const selectionWith = (statsColumn: SQL) => ({
  columns: {
    ...getTableColumns(loadBalancers),
    listenerIds,
    stats: statsColumn,
    taskId: kit.activeTask(loadBalancers.id),
  },
});
const [withoutStats, withStats] = [selectionWith(sql`null`), selectionWith(stats)];
const viewWithoutStats = kit.viewOf<LoadBalancerView>(loadBalancers, withoutStats);
const viewWithStats = kit.viewOf<LoadBalancerView>(loadBalancers, withStats, 'load_balancer_with_stats');

export const view = (db: Db, scope: ProjectRegion, id: string, showStats?: boolean) =>
  (showStats ? viewWithStats : viewWithoutStats)(db, scope, id);

const orders = kit.ordersOf(loadBalancers.id, {
  created_at: loadBalancers.createdAt,
  flavor: kit.bytewise(loadBalancers.flavor),
  name: kit.bytewise(loadBalancers.name),
  operating_status: kit.bytewise(loadBalancers.operatingStatus),
  provisioning_status: kit.bytewise(loadBalancers.provisioningStatus),
  updated_at: loadBalancers.updatedAt,
  vip_address: sql`${loadBalancers.vipAddress}::inet`,
  vip_ip_family: kit.bytewise(loadBalancers.vipIpFamily),
});

const bytes = sql<number>`(select count(*) * 64 from lb_listeners l where l.load_balancer_id = load_balancers.id)
  + pg_column_size(${loadBalancers.tags})`;

const readSizes = kit.pagesOf<SizedRow<string>>(loadBalancers, { columns: { id: loadBalancers.id, bytes } });

/** Load balancers may have many listeners and tags, so the rows themselves are read in groups. */
export async function list(db: Db, scope: ProjectRegion, filter: ListLoadBalancers, tags: TagFilter) {
  const { logging_enabled: logging } = filter;
  const filters = [
    ...hasTags(loadBalancers.tags, tags),
    kit.contains(loadBalancers.name, filter.name),
    kit.equals(loadBalancers.operatingStatus, filter.operating_status),
    kit.equals(loadBalancers.provisioningStatus, filter.provisioning_status),
    logging === undefined
      ? undefined
      : sql`coalesce((${loadBalancers.logging} ->> 'enabled')::boolean, false) = ${logging}`,
  ];
  return readSizes(db, scope, filter, filters, orders[filter.order_by ?? 'created_at.desc']);
}

const rowsWithoutStats = kit.rowsByIds<LoadBalancerView>(loadBalancers, withoutStats);
const rowsWithStats = kit.rowsByIds<LoadBalancerView>(loadBalancers, withStats, 'load_balancers_with_stats');

export const viewsById = (db: Db, ids: string[], showStats?: boolean) =>
  (showStats ? rowsWithStats : rowsWithoutStats)(db, ids);

export const insert = kit.insertRow(loadBalancers);

/** Whether an insert failed because another load balancer of the region has one of the addresses. */
export function isAddressTaken(error: unknown): boolean {
  const constraint = violatedConstraint(error);
  return constraint === 'load_balancers_vip' || constraint === 'load_balancers_vip_v6';
}

/** Active tasks of the types `concurrent` do not lock. */
export const lock = kit.lockWithTask(loadBalancers);

/** Locks the load balancer of a part, and reads the part. Active tasks of the types `concurrent` do not lock. */
export function lockPart<Row extends kit.Locked<{ id: string }>>(table: PartTable, more: Record<string, SQL> = {}) {
  const name = getTableName(table);
  const columns = { ...getTableColumns(table as PgTable), ...more, lockedBy: kit.lockingTask(table.loadBalancerId) };
  const lockIt = kit.lockThenRead<LoadBalancerRow & { under_lock: Row | null }>(`${name}_locked`, {
    parameters: kit.lockParameters,
    row: `${kit.selectOf(loadBalancers)} where id = (select load_balancer_id from ${name} where ${kit.lockCondition})`,
    json: `select row_to_json(part) from (${kit.selectOf(table, { columns })} where ${kit.lockCondition}) as part`,
  });
  return async (tx: Tx, { projectId, regionId }: ProjectRegion, id: string, concurrent: readonly string[] = []) => {
    const [row] = await lockIt(tx, id, projectId, regionId, concurrent);
    if (!row?.under_lock) return null;
    const { under_lock: part, ...loadBalancer } = row;
    return { loadBalancer, part: kit.withDates(table, [part])[0]! };
  };
}

/** SQL: parts of a load balancer as JSON, in which times are texts. Members and policies are by position, others oldest first. */
const parts = (table: PartTable | typeof lbMembers, condition: string) => {
  const order = 'position' in table ? ['r.position', 'r.id'] : undefined;
  return kit.jsonRows(table, getTableColumns(table), condition, order);
};
const ofIt = 'load_balancer_id = load_balancers.id';

const wholeColumns = {
  ...getTableColumns(loadBalancers),
  listeners: parts(lbListeners, ofIt),
  pools: parts(lbPools, ofIt),
  members: parts(lbMembers, 'pool_id in (select id from lb_pools where load_balancer_id = load_balancers.id)'),
  l7Policies: parts(lbL7Policies, ofIt),
  l7Rules: parts(lbL7Rules, ofIt),
};
const readWhole = kit.rowById<LoadBalancerRow & Omit<WholeLoadBalancer, 'loadBalancer'>>(
  loadBalancers,
  { columns: wholeColumns },
  'load_balancers_whole',
);

/** A load balancer with all its parts, as of one instant. Concurrent calls share a statement. */
export async function loadWhole(db: Db, id: string): Promise<WholeLoadBalancer | null> {
  const row = await readWhole(db, id);
  if (!row) return null;
  const { listeners, pools, members, l7Policies, l7Rules, ...loadBalancer } = row;
  const membersOf = Map.groupBy(members, (member) => member.poolId);
  return {
    loadBalancer,
    listeners: kit.withDates(lbListeners, listeners),
    pools: kit.withDates(lbPools, pools),
    members: pools.flatMap((pool) => membersOf.get(pool.id) ?? []),
    l7Policies: kit.withDates(lbL7Policies, l7Policies),
    l7Rules: kit.withDates(lbL7Rules, l7Rules),
  };
}

/** Those of the ids that exist, in the order of the ids. */
export async function wholesById(db: Db, ids: string[]): Promise<WholeLoadBalancer[]> {
  return (await Promise.all(ids.map((id) => loadWhole(db, id)))).filter((whole) => whole !== null);
}

function idsOf(rows: { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

/** The tables of parts, in an order in which their rows can be deleted. */
const partTables = ['lb_l7_rules', 'lb_l7_policies', 'lb_listeners', 'lb_pools'];

/** PL/pgSQL: sets the status of the parts of the load balancer `$1` that meet the condition. */
const markParts = (status: ProvisioningStatus, condition: string) =>
  partTables
    .toReversed()
    .map(
      (table) => `update ${table} set provisioning_status = '${status}' where load_balancer_id = $1 and ${condition};`,
    )
    .join('\n  ');

const writeObserved = deferred('load_balancer_observed', {
  parameters: 'uuid, bigint, uuid[]',
  declare: 'v_converged boolean;',
  body: `
  update load_balancers set observed_generation = $2,
    provisioning_status = case when generation = $2 then 'ACTIVE' else provisioning_status end
  where id = $1 returning generation = $2 into v_converged;
  if cardinality($3) > 0 then
    ${partTables.map((table) => `delete from ${table} where load_balancer_id = $1 and id = any($3);`).join('\n    ')}
  end if;
  if v_converged then
  ${markParts('ACTIVE', `deleted_at is null and provisioning_status <> 'ACTIVE'`)}
  end if;`,
});

/**
 * Records that the host has a generation: removes the parts that were deleted and marks the others active. A concurrent
 * change has set pending statuses, which its own job will end.
 */
export const recordObserved: DeferredWrite<[whole: WholeLoadBalancer]> = (tx, whole) => {
  const { loadBalancer, listeners, pools, l7Policies, l7Rules } = whole;
  const deleted = [...listeners, ...pools, ...l7Policies, ...l7Rules].filter((row) => row.deletedAt);
  return writeObserved(tx, loadBalancer.id, loadBalancer.generation, idsOf(deleted));
};

export const markFailed = deferred<[id: string]>('load_balancer_failed', {
  parameters: 'uuid',
  body: markParts('ERROR', `provisioning_status <> 'ACTIVE'`),
});

export const markDeleting = deferred<[id: string]>('load_balancer_deleting', {
  parameters: 'uuid',
  body: markParts('PENDING_DELETE', 'true'),
});

const readVersions = prepared<{ id: string; version: string }>(
  'load_balancer_versions',
  `select id, generation || '/' || observed_generation as version from load_balancers where region_id = any($1)`,
);

/** Load balancers of the regions, each with a version that changes with every write of it or its parts. */
export async function versions(db: Db, regionIds: number[]): Promise<Map<string, string>> {
  return new Map((await readVersions(db, regionIds)).map((row) => [row.id, row.version]));
}

/** The tables with operating statuses, in the order in which reconciles mark their rows; deletions use another one. */
const statusTables = ['load_balancers', 'lb_pools', 'lb_listeners', 'lb_members'] as const;

/** The new operating status of a row. */
export interface StatusChange {
  table: (typeof statusTables)[number];
  id: string;
  status: OperatingStatus;
}

export async function writeStatuses(tx: Tx, changes: StatusChange[]): Promise<void> {
  for (const table of statusTables) {
    const [ids, statuses] = columnsOf(
      changes.filter((change) => change.table === table),
      'id',
      'status',
    );
    if (ids.length === 0) continue;
    await tx.execute(
      sql`update ${sql.identifier(table)} t set operating_status = c.status
          from unnest(${sql.param(ids)}::uuid[], ${sql.param(statuses)}::text[]) as c (id, status)
          where t.id = c.id`,
    );
  }
}

export const usesOfProject = kit.usesOfProject('load balancer', loadBalancers);

/** Listeners and pools that use this secret. */
export const usesOfSecret = prepared<Uses, [secretId: string], Tx>(
  'load_balancer_uses_of_secret',
  `select kind, count(*) as count, (array_agg(id order by id))[1:3] as ids from (
     select 'listener' as kind, id from lb_listeners where secret_id = $1 or $1 = any(sni_secret_ids)
     union all
     select 'pool', id from lb_pools where $1 in (secret_id, ca_secret_id, crl_secret_id)) as users
   group by kind order by kind`,
);

const readAddresses = prepared<{ address: string; addressV6: string | null }, [regionId: number]>(
  'load_balancer_addresses',
  'select vip_address as address, vip_address_v6 as "addressV6" from load_balancers where region_id = $1',
);

/** The VIP addresses of the region. */
export async function usedAddresses(db: Db, regionId: number): Promise<Set<string>> {
  const rows = await readAddresses(db, regionId);
  return new Set(rows.flatMap((row) => [row.address, ...(row.addressV6 === null ? [] : [row.addressV6])]));
}

/** The ids that are subnets of the project and region. They cannot be deleted until the transaction ends. */
export async function knownSubnets(tx: Tx, scope: ProjectRegion, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await tx
    .select({ id: subnets.id })
    .from(subnets)
    .where(and(inArray(subnets.id, ids), kit.inScope(subnets, scope)))
    .orderBy(subnets.id)
    .for('key share');
  return new Set(idsOf(rows));
}

export const usageOfRows = kit.usageOfRows(loadBalancers, { loadbalancer_count: 'count(*)' });
