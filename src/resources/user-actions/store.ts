/** SQL of user actions (reads of the audit log), of subscriptions, and of their deliveries. */
import { and, asc, desc, eq, getTableColumns, gt, gte, inArray, lte, ne, sql, type SQL } from 'drizzle-orm';
import { auditEntries } from '../../audit/table.ts';
import { columnsOf, type Db, prepared, preparedExists, preparedValue, type Tx } from '../../platform/db.ts';
import type { SizedRow } from '../../platform/large-rows.ts';
import { changedRows, type EntryRow, isAmong } from '../audit/store.ts';
import { maxDelayMs } from '../notifications/desired.ts';
import type { Attempt } from '../notifications/schema.ts';
import * as kit from '../store-kit.ts';
import { officialOperations } from './actions.ts';
import type { ListUserActions } from './schema.ts';
import {
  userActionDeliveries as deliveries,
  type UserActionDeliveryState,
  userActionSubscriptions as subscriptions,
} from './table.ts';

export { isRealElsewhere } from '../notifications/store.ts';

/** An entry of the audit log, as a user action shows it. */
export interface ActionEntry extends Omit<EntryRow, 'tokenName'> {
  /** The task that the request started, if it is still kept. */
  taskId: string | null;
  /** Whether a subscriber has received it. */
  acknowledged: boolean;
}

/** The tables whose ids are the resources of tasks. */
const tablesOfTasks = [
  'file_shares',
  'load_balancers',
  'networks',
  'projects',
  'secrets',
  'snapshots',
  'subnets',
  'volumes',
];

const taskId = sql.raw(`(
  select t.id from jsonb_array_elements(audit_entries.changes) as change
    join tasks t on t.resource_id = change ->> 'id' and t.request_id = audit_entries.request_id
  where change ->> 'table' in ('${tablesOfTasks.join("', '")}') limit 1)`);
const acknowledged = sql.raw(`exists (
  select from user_action_deliveries d where d.entry_id = audit_entries.id and d.state = 'delivered')`);

export const findEntries = kit.rowsByIds<ActionEntry>(
  auditEntries,
  { columns: { ...getTableColumns(auditEntries), taskId, acknowledged } },
  'user_action_entries',
);

interface UserActionFilter extends ListUserActions {
  /** The entries visible to the caller; null: all. */
  visible: kit.Visible | null;
  /** Of the actions and groups; undefined: all that are user actions. */
  operations: string[] | undefined;
  from: Date | undefined;
  to: Date | undefined;
  ascending: boolean;
}

const readSizes = kit.pageReader<SizedRow<number>>(auditEntries, {
  columns: { id: auditEntries.id, bytes: sql`pg_column_size(${auditEntries.changes})` },
});

/** SQL: the operations that are user actions. */
const userActions = sql.raw(`'{${officialOperations().join(', ')}}'::text[]`);

/** Entries may be large, so they are read separately. */
export async function list(db: Db, filter: UserActionFilter): Promise<kit.Found<SizedRow<number>>> {
  const { id, operation } = auditEntries;
  const { visible, operations, ascending } = filter;
  const filters = filtersOf(filter);
  const where = and(
    kit.isVisible(auditEntries, visible),
    sql`${operation} = any(${operations ? sql`${sql.param(operations)}::text[]` : userActions})`,
    ...filters,
  );
  const isFiltered = [visible?.projectIds, operations, ...filters].some((one) => one !== undefined && one !== null);
  return readSizes(db, { where, order: [ascending ? asc(id) : desc(id)], page: filter, isPrepared: !isFiltered });
}

function filtersOf({ resource_id: ids, search_field: name, ...filter }: UserActionFilter): (SQL | undefined)[] {
  const e = auditEntries;
  const within = (column: SQL, values: string[] | undefined) =>
    values && sql`${column} = any(${sql.param(values)}::text[])`;
  return [
    kit.isAnyOf(e.projectId, filter.project_id),
    kit.isAnyOf(e.regionId, filter.region_id),
    filter.from && gte(e.at, filter.from),
    filter.to && lte(e.at, filter.to),
    ids && isAmong(changedRows(undefined, ids), changedMembers(ids)),
    within(sql`${e.origin} ->> 'address'`, filter.source_user_ips),
    within(sql`${e.origin} ->> 'user_agent'`, filter.user_agents),
    name === undefined
      ? undefined
      : sql`jsonb_path_exists(${e.changes}, '$[*].*.name ? (@ == $name)', jsonb_build_object('name', ${name}::text))`,
  ];
}

/** Entries that added one of the volumes to a policy or removed it: these rows have no id, and are shown with the volume's. */
function changedMembers(volumeIds: string[]): SQL {
  const table = 'lifecycle_policy_volumes';
  const isVolume = (state: string) => sql`change -> ${state} ->> 'volume_id' = any(${sql.param(volumeIds)}::text[])`;
  return and(
    changedRows(table, undefined),
    sql`exists (select from jsonb_array_elements(${auditEntries.changes}) as change
      where change ->> 'table' = ${table} and (${isVolume('before')} or ${isVolume('after')}))`,
  )!;
}

export type SubscriptionRow = typeof subscriptions.$inferSelect;

/** The id is known before the insert, because the header value is encrypted for it. */
export const reserveId = preparedValue<number, [], Db>(
  'user_action_subscriptions_next_id',
  `select nextval('user_action_subscriptions_id_seq')::int as id`,
);

/** False if the client has a subscription. */
export async function insert(tx: Tx, row: Omit<SubscriptionRow, 'failures' | 'busyUntil'>): Promise<boolean> {
  const { rowCount } = await tx
    .insert(subscriptions)
    .overridingSystemValue()
    .values(row)
    .onConflictDoNothing({ target: subscriptions.clientId });
  return rowCount === 1;
}

/** Removes the subscription of a client with its pending deliveries. False if it has none. */
export async function remove(tx: Tx, clientId: number): Promise<boolean> {
  const { rowCount } = await tx.delete(subscriptions).where(eq(subscriptions.clientId, clientId));
  return rowCount === 1;
}

const readSubscriptions = kit.pageReader<SubscriptionRow>(subscriptions);

export const listSubscriptions = (db: Db, clientId: number, page: kit.PageQuery) =>
  readSubscriptions(db, { where: eq(subscriptions.clientId, clientId), order: [asc(subscriptions.id)], page });

export const ciphertexts = kit.ciphertextsOf(subscriptions, subscriptions.authHeaderValue);

export type DeliveryRow = typeof deliveries.$inferSelect;

/** The delivery of an entry to the subscription of a client; entries that are not user actions have none. */
const isDelivery = (on: Db | Tx, clientId: number, entryId: number) =>
  and(
    eq(deliveries.entryId, entryId),
    inArray(
      deliveries.subscriptionId,
      on.select({ id: subscriptions.id }).from(subscriptions).where(eq(subscriptions.clientId, clientId)),
    ),
    ne(deliveries.state, 'skipped'),
  );

export const findDelivery = (db: Db, clientId: number, entryId: number) =>
  kit.firstRow(
    db
      .select()
      .from(deliveries)
      .where(isDelivery(db, clientId, entryId)),
  );

/**
 * Makes the delivery due now, in any state, also while the subscription is paused. Null if the client has no such delivery.
 */
export async function requestDelivery(tx: Tx, clientId: number, entryId: number): Promise<DeliveryRow | null> {
  const [row] = await tx
    .update(deliveries)
    .set({ state: 'pending', failures: 0, nextAttemptAt: sql`now()` })
    .where(isDelivery(tx, clientId, entryId))
    .returning();
  if (!row) return null;
  const { id, failures } = subscriptions;
  await tx
    .update(subscriptions)
    .set({ busyUntil: null, failures: 0 })
    .where(and(eq(id, row.subscriptionId), gt(failures, 0)));
  return row;
}

/**
 * Leases subscriptions with due deliveries that no other process is working on. The row of a leased subscription has no
 * failures, so that a replay ends a pause but not a lease. A lease or pause that is longer than one can be is of a time before the
 * clock of PostgreSQL was set back.
 */
export const claimDue = prepared<SubscriptionRow, [limit: number, leaseSeconds: number], Db>(
  'user_action_subscriptions_claim',
  `with claimed as materialized (
     select id, failures from user_action_subscriptions c
     where (c.busy_until is null or c.busy_until not between now() and now() + interval '${maxDelayMs} milliseconds') and exists (
       select from user_action_deliveries d
       where d.subscription_id = c.id and d.state = 'pending' and d.next_attempt_at <= now())
     order by c.busy_until nulls first limit $1 for update skip locked)
   update user_action_subscriptions s set busy_until = now() + $2::int * interval '1 second', failures = 0
   from claimed where s.id = claimed.id
   returning s.id, s.client_id as "clientId", s.url, s.auth_header_name as "authHeaderName",
     s.auth_header_value as "authHeaderValue", s.created_at as "createdAt", claimed.failures, s.busy_until as "busyUntil"`,
);

/** Extends the lease, or pauses the subscription. False if it was deleted. */
export const keepBusy = preparedExists<[id: number, seconds: number, failures: number]>(
  'user_action_subscriptions_busy',
  `update user_action_subscriptions set busy_until = now() + $2::float8 * interval '1 second', failures = $3
   where id = $1 returning id`,
);

/** The oldest due deliveries. */
export const findDue = prepared<{ entryId: number; failures: number }, [subscriptionId: number, limit: number], Db>(
  'user_action_deliveries_due',
  `select entry_id as "entryId", failures from user_action_deliveries
   where subscription_id = $1 and state = 'pending' and next_attempt_at <= now() order by entry_id limit $2`,
);

/** How an attempt ended. `pending`: it is repeated after `delaySeconds`. */
export interface Attempted {
  entryId: number;
  state: UserActionDeliveryState;
  failures: number;
  delaySeconds: number;
  /** The receiver asked for this wait; 0 if it did not. */
  askedSeconds: number;
  /** Null if no call was made. */
  attempt: Attempt | null;
}

const keptAttempts = 10;

const writeAttempts = prepared(
  'user_action_deliveries_attempted',
  `update user_action_deliveries d
   set state = a.state, failures = a.failures, next_attempt_at = now() + a.delay * interval '1 second',
     attempts = coalesce(jsonb_path_query_array(d.attempts || a.attempt, '$[last - ${keptAttempts - 1} to last]'), d.attempts)
   from unnest($2::bigint[], $3::text[], $4::int[], $5::float8[], $6::jsonb[])
     as a (entry_id, state, failures, delay, attempt)
   where d.subscription_id = $1 and d.entry_id = a.entry_id`,
);

export async function recordAttempts(on: Db | Tx, subscriptionId: number, all: Attempted[]): Promise<void> {
  await writeAttempts(
    on,
    subscriptionId,
    ...columnsOf(all, 'entryId', 'state', 'failures', 'delaySeconds'),
    all.map(({ attempt }) => attempt && JSON.stringify(attempt)),
  );
}
