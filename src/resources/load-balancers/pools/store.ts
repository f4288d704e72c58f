/** SQL of pools. Writers hold the lock of the load balancer's row. */
import { and, eq, inArray, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { preparedQuery } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { activeTask, byAge, inScope } from '../store.ts';
import type { Where } from '../store.ts';
import { lbListeners, lbPools } from '../table.ts';
import type { ListenerRow, PoolRow } from '../table.ts';
import type { ListPools, Member } from './schema.ts';

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

const views = <Member>(on: Db | Tx, members: SQL<Member[]>) =>
  on.select({ pool: lbPools, members, listenerIds, taskId: activeTask('lb_pools.load_balancer_id') }).from(lbPools);

const asView = <Member>(row: { pool: PoolRow } & Omit<PoolView<Member>, keyof PoolRow>): PoolView<Member> => {
  const { pool, ...rest } = row;
  return { ...pool, ...rest };
};

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

export async function view(db: Db, { projectId, regionId }: Where, id: string): Promise<PoolView | null> {
  const [row] = await viewById(db).execute({ id, projectId, regionId });
  return row ? asView(row) : null;
}

const memberCount = sql<number>`(select count(*) from lb_members m where m.pool_id = lb_pools.id)`;

/** Oldest first. A thousand pools may have a million members, so the rows themselves are read in groups. */
export async function list(
  db: Db,
  where: Where,
  filter: ListPools,
): Promise<{ count: number; rows: SizedRow<string>[] }> {
  const conditions = [inScope(lbPools, where)];
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
      .orderBy(...byAge(lbPools))
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(lbPools, and(...conditions)),
  ]);
  return { count, rows };
}

/** Without `details` members have only their ids. */
export async function viewsById(
  db: Db,
  ids: string[],
  details: boolean | undefined,
): Promise<PoolView<MemberView | { id: string }>[]> {
  const members: SQL<(MemberView | { id: string })[]> = details ? detailed : idsOnly;
  return (await views(db, members).where(inArray(lbPools.id, ids))).map(asView);
}

export async function find(on: Db | Tx, where: Where, id: string): Promise<PoolRow | null> {
  const [row] = await on
    .select()
    .from(lbPools)
    .where(and(eq(lbPools.id, id), inScope(lbPools, where)));
  return row ?? null;
}

export async function insert(tx: Tx, pool: PoolRow): Promise<void> {
  await tx.insert(lbPools).values(pool);
}

export async function update(tx: Tx, id: string, changes: Partial<PoolRow>): Promise<void> {
  await tx.update(lbPools).set(changes).where(eq(lbPools.id, id));
}

/** The protocols of the listeners that use the pool. */
export async function listenerProtocols(tx: Tx, poolId: string): Promise<ListenerRow['protocol'][]> {
  const { protocol, defaultPoolId } = lbListeners;
  const rows = await tx.select({ protocol }).from(lbListeners).where(eq(defaultPoolId, poolId));
  return rows.map((row) => row.protocol);
}

/** Makes the pool the default pool of the listener. */
export async function attach(tx: Tx, listenerId: string, poolId: string): Promise<void> {
  await tx
    .update(lbListeners)
    .set({ defaultPoolId: poolId, provisioningStatus: 'PENDING_UPDATE' })
    .where(eq(lbListeners.id, listenerId));
}
