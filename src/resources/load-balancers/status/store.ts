/** SQL of statuses, which is read in groups: a load balancer may have many listeners, and each pool a thousand members. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { Db } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { lbMembers, lbPools } from '../pools/table.ts';
import { lbListeners } from '../listeners/table.ts';
import type { ListenerRow, LoadBalancerRow, MemberRow, PoolRow, Where } from '../store.ts';
import { loadBalancers } from '../table.ts';

/** A listener with the pool that it sends to. */
export interface ListenerOfStatus extends ListenerRow {
  pool: PoolRow | null;
  members: MemberRow[];
}

const inside = (where: Where) =>
  and(eq(loadBalancers.projectId, where.projectId), eq(loadBalancers.regionId, where.regionId));

const bytesOfAll = sql<number>`(
  select count(*) * 128 from lb_listeners l where l.load_balancer_id = load_balancers.id) + (
  select count(*) * 64 from lb_pools p join lb_members m on m.pool_id = p.id where p.load_balancer_id = load_balancers.id)`;

/** Oldest first; the size is that of all their parts. */
export async function sizes(db: Db, where: Where): Promise<SizedRow<string>[]> {
  return db
    .select({ id: loadBalancers.id, bytes: bytesOfAll })
    .from(loadBalancers)
    .where(inside(where))
    .orderBy(asc(loadBalancers.createdAt), asc(loadBalancers.id));
}

export async function find(db: Db, where: Where, id: string): Promise<LoadBalancerRow | null> {
  const [row] = await db
    .select()
    .from(loadBalancers)
    .where(and(eq(loadBalancers.id, id), inside(where)));
  return row ?? null;
}

/** Oldest first; the size is that of their members. */
export async function listenerSizes(db: Db, loadBalancerId: string): Promise<SizedRow<string>[]> {
  const bytes = sql<number>`128 + 64 * (
    select count(*) from lb_members m where m.pool_id = ${lbListeners.defaultPoolId})`;
  return db
    .select({ id: lbListeners.id, bytes })
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(asc(lbListeners.createdAt), asc(lbListeners.id));
}

export async function listeners(db: Db, ids: string[]): Promise<ListenerOfStatus[]> {
  const rows = await db
    .select({ listener: lbListeners, pool: lbPools })
    .from(lbListeners)
    .leftJoin(lbPools, eq(lbPools.id, lbListeners.defaultPoolId))
    .where(inArray(lbListeners.id, ids));
  const poolIds = rows.flatMap(({ pool }) => (pool ? [pool.id] : []));
  const members =
    poolIds.length === 0
      ? []
      : await db.select().from(lbMembers).where(inArray(lbMembers.poolId, poolIds)).orderBy(asc(lbMembers.position));
  const membersOf = Map.groupBy(members, (member) => member.poolId);
  return rows.map(({ listener, pool }) => ({ ...listener, pool, members: (pool && membersOf.get(pool.id)) ?? [] }));
}
