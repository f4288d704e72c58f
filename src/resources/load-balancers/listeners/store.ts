/** SQL of listeners. Writers hold the lock of the load balancer's row. */
import { eq, getTableColumns, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../../platform/db.ts';
import * as kit from '../../store-kit.ts';
import type { ProjectRegion } from '../../store-kit.ts';
import { lockPart, ofLoadBalancer } from '../store.ts';
import { lbListeners, type ListenerRow } from '../table.ts';
import type { ListListeners } from './schema.ts';

export const { find, update } = kit.singleRows(lbListeners);
export const lockListener = lockPart<kit.Locked<ListenerRow>>(lbListeners);
export const insert = kit.insertRow(lbListeners);

/** With the number of its pools and the task that locks its load balancer. */
export type ListenerView = ListenerRow & { poolCount: number; taskId: string | null };

/** The default pool and the pools of L7 policies, each once. */
const poolCount = sql<number>`(
  select count(*)::int from (
    select lb_listeners.default_pool_id as id where lb_listeners.default_pool_id is not null
    union
    select p.redirect_pool_id from lb_l7_policies p
    where p.listener_id = lb_listeners.id and p.redirect_pool_id is not null and p.deleted_at is null) as pools)`;

const viewColumns = {
  ...getTableColumns(lbListeners),
  poolCount,
  taskId: kit.activeTask(lbListeners.loadBalancerId),
};

export const view = kit.viewOf<ListenerView>(lbListeners, { columns: viewColumns });
const readPage = kit.pagesOf<ListenerView>(lbListeners, { columns: viewColumns });

export const list = (db: Db, scope: ProjectRegion, filter: ListListeners) =>
  readPage(db, scope, filter, [...ofLoadBalancer(lbListeners, filter), kit.contains(lbListeners.name, filter.name)]);

export async function findByLoadBalancer(on: Db | Tx, loadBalancerId: string): Promise<ListenerRow[]> {
  return on
    .select()
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(...kit.oldestFirst(lbListeners));
}
