/** SQL of listeners. Writers hold the lock of the load balancer's row. */
import { and, eq, sql } from 'drizzle-orm';
import { preparedQuery } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { activeTask, byAge, inScope } from '../store.ts';
import type { Where } from '../store.ts';
import { lbListeners } from '../table.ts';
import type { ListenerRow } from '../table.ts';
import type { ListListeners } from './schema.ts';

/** With the task that locks its load balancer. */
export type ListenerView = ListenerRow & { taskId: string | null };

const views = (on: Db | Tx) =>
  on.select({ listener: lbListeners, taskId: activeTask('lb_listeners.load_balancer_id') }).from(lbListeners);

const asView = ({ listener, taskId }: { listener: ListenerRow; taskId: string | null }): ListenerView => ({
  ...listener,
  taskId,
});

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

export async function view(db: Db, { projectId, regionId }: Where, id: string): Promise<ListenerView | null> {
  const [row] = await viewById(db).execute({ id, projectId, regionId });
  return row ? asView(row) : null;
}

/** Oldest first. */
export async function list(
  db: Db,
  where: Where,
  filter: ListListeners,
): Promise<{ count: number; rows: ListenerView[] }> {
  const conditions = [inScope(lbListeners, where)];
  for (const id of [filter.load_balancer_id, filter.loadbalancer_id]) {
    if (id) conditions.push(eq(lbListeners.loadBalancerId, id));
  }
  if (filter.name) conditions.push(sql`strpos(${lbListeners.name}, ${filter.name}) > 0`);
  const [rows, count] = await Promise.all([
    views(db)
      .where(and(...conditions))
      .orderBy(...byAge(lbListeners))
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
    .where(and(eq(lbListeners.id, id), inScope(lbListeners, where)));
  return row ?? null;
}

export async function ofLoadBalancer(tx: Tx, loadBalancerId: string): Promise<ListenerRow[]> {
  return tx
    .select()
    .from(lbListeners)
    .where(eq(lbListeners.loadBalancerId, loadBalancerId))
    .orderBy(...byAge(lbListeners));
}

export async function insert(tx: Tx, listener: ListenerRow): Promise<void> {
  await tx.insert(lbListeners).values(listener);
}

export async function update(tx: Tx, id: string, changes: Partial<ListenerRow>): Promise<void> {
  await tx.update(lbListeners).set(changes).where(eq(lbListeners.id, id));
}
