/** SQL of statuses. They are read in groups: a load balancer may have many listeners, and each pool a thousand members. */
import { asc, eq, inArray, sql } from 'drizzle-orm';
import type { Db } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { inScope, oldestFirst, viewOf } from '../../store-kit.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { readL7Policies } from '../store.ts';
import { lbListeners, lbMembers, lbPools, loadBalancers } from '../table.ts';
import type { L7PolicyRow, L7RuleRow, ListenerRow, MemberRow, PoolRow } from '../table.ts';

/** A listener with its default pool and L7 policies. */
export interface ListenerWithParts extends ListenerRow {
  pool: PoolRow | null;
  members: MemberRow[];
  l7Policies: L7PolicyRow[];
  /** Of its policies, and perhaps of others. */
  l7Rules: L7RuleRow[];
}

const bytesOfParts = sql<number>`(
  select count(*) * 128 from lb_listeners l where l.load_balancer_id = load_balancers.id) + (
  select count(*) * 64 from lb_pools p join lb_members m on m.pool_id = p.id where p.load_balancer_id = load_balancers.id) + (
  select count(*) * 128 from lb_l7_policies y where y.load_balancer_id = load_balancers.id) + (
  select count(*) * 64 from lb_l7_rules r where r.load_balancer_id = load_balancers.id)`;

/** A load balancer with the size of all parts. */
export const size = viewOf<SizedRow<string> & ProjectRegion>(
  loadBalancers,
  {
    columns: {
      id: loadBalancers.id,
      projectId: loadBalancers.projectId,
      regionId: loadBalancers.regionId,
      bytes: bytesOfParts,
    },
  },
  'load_balancer_size',
);

/** Oldest first, with the size of all parts. */
export async function sizes(db: Db, scope: ProjectRegion): Promise<SizedRow<string>[]> {
  return db
    .select({ id: loadBalancers.id, bytes: bytesOfParts })
    .from(loadBalancers)
    .where(inScope(loadBalancers, scope))
    .orderBy(...oldestFirst(loadBalancers));
}

/** Oldest first, with the size of their members, policies and rules. */
export async function listenerSizes(db: Db, loadBalancerId: string): Promise<SizedRow<string>[]> {
  const bytes = sql<number>`128 + 64 * (
    select count(*) from lb_members m where m.pool_id = ${lbListeners.defaultPoolId}) + (
    select count(*) * 128 from lb_l7_policies y where y.listener_id = lb_listeners.id) + (
    select count(*) * 64 from lb_l7_rules r join lb_l7_policies y on y.id = r.policy_id
    where y.listener_id = lb_listeners.id)`;
  return db
    .select({ id: lbListeners.id, bytes })
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(...oldestFirst(lbListeners));
}

export async function listeners(db: Db, ids: string[]): Promise<ListenerWithParts[]> {
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
  const { l7Policies, l7Rules } = await readL7Policies(db, ids);
  const policiesOf = Map.groupBy(l7Policies, (policy) => policy.listenerId);
  return rows.map(({ listener, pool }) => ({
    ...listener,
    pool,
    members: (pool && membersOf.get(pool.id)) ?? [],
    l7Policies: policiesOf.get(listener.id) ?? [],
    l7Rules,
  }));
}
