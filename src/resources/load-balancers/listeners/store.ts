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

/** With the task that locks its load balancer. */
export type ListenerView = ListenerRow & { taskId: string | null };

const viewColumns = { ...getTableColumns(lbListeners), taskId: kit.activeTask(lbListeners.loadBalancerId) };

const viewById = prepared<ListenerView>(
  'lb_listener_view',
  kit.textOf(sql`select ${kit.selectList(viewColumns)} from ${lbListeners}`) +
    ' where id = $1 and project_id = $2 and region_id = $3',
);

export async function view(db: Db, { projectId, regionId }: ProjectRegion, id: string): Promise<ListenerView | null> {
  return (await viewById(db, id, projectId, regionId))[0] ?? null;
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
