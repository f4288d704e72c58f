/** SQL of listeners. Writers hold the lock of the load balancer's row. */
import { eq, getTableColumns, sql } from 'drizzle-orm';
import { prepared } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import * as kit from '../../store-kit.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { byAge, ofLoadBalancer } from '../store.ts';
import { lbListeners } from '../table.ts';
import type { ListenerRow } from '../table.ts';
import type { ListListeners } from './schema.ts';

export const { find, update } = kit.singleRows(lbListeners);
export const insert = kit.insertRow(lbListeners);

/** With the number of its pools and the task that locks its load balancer. */
export type ListenerView = ListenerRow & { poolCount: number; taskId: string | null };

/** The default pool and the pools of L7 policies. */
const poolCountSql = sql<number>`(
  select count(*)::int from (
    select lb_listeners.default_pool_id as id where lb_listeners.default_pool_id is not null
    union
    select p.redirect_pool_id from lb_l7_policies p
    where p.listener_id = lb_listeners.id and p.redirect_pool_id is not null and p.deleted_at is null) as pools)`;

const viewColumns = {
  ...getTableColumns(lbListeners),
  poolCount: poolCountSql,
  taskId: kit.activeTask(lbListeners.loadBalancerId),
};

const viewById = prepared<ListenerView>(
  'lb_listener_view',
  kit.textOf(sql`select ${kit.selectList(viewColumns)} from ${lbListeners}`) +
    ' where id = $1 and project_id = $2 and region_id = $3',
);

export async function view(db: Db, { projectId, regionId }: ProjectRegion, id: string): Promise<ListenerView | null> {
  return (await viewById(db, id, projectId, regionId))[0] ?? null;
}

export async function poolCount(tx: Tx, id: string): Promise<number> {
  const rows = await tx.select({ count: poolCountSql }).from(lbListeners).where(eq(lbListeners.id, id));
  return rows[0]?.count ?? 0;
}

/** Oldest first. */
export async function list(
  db: Db,
  scope: ProjectRegion,
  filter: ListListeners,
): Promise<{ count: number; rows: ListenerView[] }> {
  return kit.readPage<ListenerView>(db, db.select(viewColumns).from(lbListeners), {
    table: lbListeners,
    scope,
    filters: [...ofLoadBalancer(lbListeners, filter), kit.contains(lbListeners.name, filter.name)],
    order: byAge(lbListeners),
    page: filter,
  });
}

export async function findByLoadBalancer(tx: Tx, loadBalancerId: string): Promise<ListenerRow[]> {
  return tx
    .select()
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(...byAge(lbListeners));
}
