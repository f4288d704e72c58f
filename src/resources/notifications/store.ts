/** SQL of notifications and their deliveries, and of the jobs that send them. */
import { and, asc, eq, getTableColumns, inArray, or, sql, type SQL } from 'drizzle-orm';
import { type Db, type DeferredWrite, prepared, preparedColumn, preparedExists, type Tx } from '../../platform/db.ts';
import { announce, hasJob, insertJobs, notificationQueue } from '../../tasks/jobs.ts';
import { priorityAt } from '../../tasks/priority.ts';
import { seenRecently } from '../../tasks/table.ts';
import { clients } from '../clients/table.ts';
import * as kit from '../store-kit.ts';
import { webhooks } from '../webhooks/table.ts';
import type { ListNotifications } from './schema.ts';
import { notificationDeliveries as deliveries, notifications } from './table.ts';

export type NotificationRow = typeof notifications.$inferSelect;
export type DeliveryRow = typeof deliveries.$inferSelect;

/** The kind of the job that makes an attempt; its id is the delivery's. */
export const deliverJob = 'deliver';

export const insert = kit.insertRow(notifications);

const lockType = prepared('notification_lock_type', 'select pg_advisory_xact_lock(hashtext($2), $1::int)');
const findIssued = preparedExists(
  'notification_issued',
  'select 1 from notifications where client_id = $1 and type = $2 and created_at > $3 limit 1',
);

/** Whether the client has a message of the type that was created after `since`. None is created until this transaction ends. */
export async function wasIssued(
  tx: Tx,
  { clientId, type }: Pick<NotificationRow, 'clientId' | 'type'>,
  since: Date,
): Promise<boolean> {
  await lockType(tx, clientId, type);
  return findIssued(tx, clientId, type, since);
}
const insertRows = kit.insertRows(deliveries);

const initial = {
  state: 'pending',
  attempts: [],
  attemptCount: 0,
  failures: 0,
  endedAt: null,
} satisfies Partial<DeliveryRow>;
type NewDelivery = Omit<DeliveryRow, keyof typeof initial>;

export const insertDeliveries: DeferredWrite<[rows: NewDelivery[]]> = (tx, rows) =>
  insertRows(
    tx,
    rows.map((row) => ({ ...row, ...initial })),
  );

/** The receivers of a client's messages. Its webhooks cannot be deleted before this transaction ends. */
export async function findReceivers(
  tx: Tx,
  clientId: number,
): Promise<{ emails: string[]; webhooks: { id: string; url: string }[] }> {
  const [client] = await tx.select({ emails: clients.emails }).from(clients).where(eq(clients.id, clientId));
  const found = await tx
    .select({ id: webhooks.id, url: webhooks.url })
    .from(webhooks)
    .where(eq(webhooks.clientId, clientId))
    .orderBy(asc(webhooks.createdAt), asc(webhooks.id))
    .for('key share');
  return { emails: client?.emails ?? [], webhooks: found };
}

/** Whether the client still has the address. Its case does not distinguish mailboxes. */
export const hasAddress = preparedExists<[clientId: number, address: string], Db | Tx>(
  'notification_has_address',
  'select from clients c, unnest(c.emails) address where c.id = $1 and lower(address) = lower($2)',
);

const queue = `'${notificationQueue}'`;
/** SQL: the place of a delivery behind those of its client, so that receivers that hang do not delay other clients. */
const place = `(coalesce(ready.jobs, 0) + row_number() over (partition by client_id order by due.id) - 1)::int`;

const enqueueDelivery = prepared(
  'delivery_enqueue',
  `with due as (
     select d.id, n.client_id from notification_deliveries d join notifications n on n.id = d.notification_id
     where d.id = any($1::uuid[])),
   ready as (
     select client_id, count(*) as jobs from jobs
     where queue = ${queue} and locked_by is null and run_at <= now() and client_id in (select client_id from due)
     group by client_id),
   job as (${insertJobs(
     `select '${deliverJob}', due.id::text, ${queue}, client_id, ${priorityAt(queue, place)},
       now() + $2::float8 * interval '1 second'
     from due left join ready using (client_id) order by due.id`,
   )}) select ${announce(notificationQueue)}`,
);

/** Requests an attempt, now or after some seconds. Replaces an earlier request. */
export async function requestAttempts(on: Db | Tx, ids: string[], afterSeconds = 0): Promise<void> {
  if (ids.length > 0) await enqueueDelivery(on, ids, afterSeconds);
}

/** Pending deliveries that were due before this time and have no job. */
export const findWithoutJob = preparedColumn<string, [before: Date], Db>(
  'delivery_lost',
  `select id from notification_deliveries d where state = 'pending' and next_attempt_at < $1
     and not ${hasJob(`'${deliverJob}'`, 'd.id::text')}`,
);

/** Whether a live process has the real driver of this name. */
export const isRealElsewhere = preparedExists<[driver: string], Db>(
  'delivery_real_elsewhere',
  `select from workers w, jsonb_array_elements(w.drivers) d
   where w.${seenRecently} and (d ->> 'real')::boolean and d ->> 'driver' = $1 limit 1`,
);

/** A message with its deliveries. */
export interface NotificationView extends NotificationRow {
  deliveries: DeliveryRow[];
}

const columns = {
  ...getTableColumns(notifications),
  deliveries: kit.jsonRows(deliveries, getTableColumns(deliveries), 'notification_id = notifications.id', [
    'r.channel',
    'r.target',
    'r.id',
  ]),
};
const toView = (row: NotificationView): NotificationView => ({
  ...row,
  deliveries: kit.withDates(deliveries, row.deliveries),
});
const readPage = kit.pageReader<NotificationView>(notifications, { columns });
const orders = kit.ordersOf(notifications.id, { created_at: notifications.createdAt });

export async function list(
  db: Db,
  visible: kit.Visible,
  filter: ListNotifications,
): Promise<kit.Found<NotificationView>> {
  const { count, rows } = await readPage(db, {
    where: and(
      eq(notifications.clientId, visible.clientId),
      ofProjects(visible),
      kit.equals(notifications.type, filter.type),
      deliveredAs(filter),
    ),
    order: orders[filter.order_by ?? 'created_at.desc'],
    page: filter,
  });
  return { count, rows: rows.map(toView) };
}

/** Whether a message is of one of the projects, or of no project. */
function ofProjects({ projectIds }: kit.Visible): SQL | undefined {
  if (projectIds === null) return undefined;
  const projectId = sql`(${notifications.data} ->> 'project_id')::int`;
  return or(sql`${projectId} is null`, inArray(projectId, projectIds));
}

/** Whether one delivery has both the webhook and the state of the filter. */
function deliveredAs({ webhook_id, delivery_state }: ListNotifications): SQL | undefined {
  if (webhook_id === undefined && delivery_state === undefined) return undefined;
  return sql`exists (select from ${deliveries} where ${and(
    eq(deliveries.notificationId, notifications.id),
    kit.equals(deliveries.webhookId, webhook_id),
    kit.equals(deliveries.state, delivery_state),
  )})`;
}

const readRow = kit.rowById<NotificationView>(notifications, { columns });

export async function find(db: Db | Tx, visible: kit.Visible, id: string): Promise<NotificationView | null> {
  const notification = await readRow(db, id);
  if (notification?.clientId !== visible.clientId) return null;
  const projectId = notification.data['project_id'] as number | undefined;
  const isVisible = visible.projectIds === null || projectId === undefined || visible.projectIds.includes(projectId);
  return isVisible ? toView(notification) : null;
}

/** A delivery with its message. */
export const findWithNotification = (db: Db, id: string) =>
  kit.firstRow(
    db
      .select({ delivery: deliveries, notification: notifications })
      .from(deliveries)
      .innerJoin(notifications, eq(notifications.id, deliveries.notificationId))
      .where(eq(deliveries.id, id)),
  );

export function lock(tx: Tx, id: string): Promise<DeliveryRow | null> {
  return kit.firstRow(tx.select().from(deliveries).where(eq(deliveries.id, id)).for('update'));
}

export const update = kit.updateRow(deliveries);
