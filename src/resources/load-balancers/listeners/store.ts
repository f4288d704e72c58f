/** SQL of listeners. Writes touch this folder's table only, and hold the lock of the load balancer's row. */
import { and, asc, eq, sql } from 'drizzle-orm';
import { preparedQuery } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { PoolRow, Where } from '../pools/store.ts';
import { lbPools } from '../pools/table.ts';
import type { ListListeners } from './schema.ts';
import { lbListeners } from './table.ts';

export type ListenerRow = typeof lbListeners.$inferSelect;

/** A listener with the task that locks its load balancer. */
export type ListenerView = ListenerRow & { taskId: string | null };

const lockingTask = sql<string | null>`(
  select t.id from tasks t where t.resource_id = lb_listeners.load_balancer_id::text and t.state in ('NEW', 'RUNNING')
  order by t.created_on limit 1)`;

const views = (on: Db | Tx) => on.select({ listener: lbListeners, taskId: lockingTask }).from(lbListeners);

const asView = ({ listener, taskId }: { listener: ListenerRow; taskId: string | null }): ListenerView => ({
  ...listener,
  taskId,
});

const inside = (where: Where) =>
  and(eq(lbListeners.projectId, where.projectId), eq(lbListeners.regionId, where.regionId));

const viewById = preparedQuery((db) =>
  views(db)
    .where(
      and(
        eq(lbListeners.id, sql.placeholder('id')),
        eq(lbListeners.projectId, sql.placeholder('projectId')),
        eq(lbListeners.regionId, sql.placeholder('regionId')),
      ),
    )
    .prepare('lb_listener_view'),
);

export async function view(db: Db, where: Where, id: string): Promise<ListenerView | null> {
  const [row] = await viewById(db).execute({ id, projectId: where.projectId, regionId: where.regionId });
  return row ? asView(row) : null;
}

/** Oldest first. */
export async function list(
  db: Db,
  where: Where,
  filter: ListListeners,
): Promise<{ count: number; rows: ListenerView[] }> {
  const conditions = [inside(where)];
  for (const id of [filter.load_balancer_id, filter.loadbalancer_id]) {
    if (id) conditions.push(eq(lbListeners.loadBalancerId, id));
  }
  if (filter.name) conditions.push(sql`strpos(${lbListeners.name}, ${filter.name}) > 0`);
  const [rows, count] = await Promise.all([
    views(db)
      .where(and(...conditions))
      .orderBy(asc(lbListeners.createdAt), asc(lbListeners.id))
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(lbListeners, and(...conditions)),
  ]);
  return { count, rows: rows.map(asView) };
}

export async function find(on: Db | Tx, where: Where, id: string): Promise<ListenerRow | null> {
  const [row] = await on
    .select()
    .from(lbListeners)
    .where(and(eq(lbListeners.id, id), inside(where)));
  return row ?? null;
}

export async function ofLoadBalancer(tx: Tx, loadBalancerId: string): Promise<ListenerRow[]> {
  return tx
    .select()
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(asc(lbListeners.createdAt), asc(lbListeners.id));
}

export async function insert(tx: Tx, listener: ListenerRow): Promise<void> {
  await tx.insert(lbListeners).values(listener);
}

export async function update(tx: Tx, id: string, changes: Partial<ListenerRow>): Promise<void> {
  await tx.update(lbListeners).set(changes).where(eq(lbListeners.id, id));
}

/** A pool that a listener names. */
export async function findPool(tx: Tx, where: Where, id: string): Promise<PoolRow | null> {
  const [row] = await tx
    .select()
    .from(lbPools)
    .where(and(eq(lbPools.id, id), eq(lbPools.projectId, where.projectId), eq(lbPools.regionId, where.regionId)));
  return row ?? null;
}
