/** SQL of L7 policies. Writers hold the lock of the load balancer's row. */
import { and, eq, getTableColumns, isNull, sql } from 'drizzle-orm';
import type { Uses } from '../../../errors/catalogue.ts';
import { deferred, prepared, preparedValue, type Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import * as kit from '../../store-kit.ts';
import type { OperatingStatus } from '../shapes.ts';
import { lockPart } from '../store.ts';
import { type L7PolicyRow, lbL7Policies, lbL7Rules } from '../table.ts';

export const { find, update } = kit.singleRows(lbL7Policies);
export const lockL7Policy = lockPart<kit.Locked<L7PolicyRow>>(lbL7Policies);
export const insert = kit.insertRow(lbL7Policies);

export type { L7PolicyRow };

/** With its rules, the status of its listener, and the task that locks its load balancer. */
export type L7PolicyView = L7PolicyRow & { ruleIds: string[]; listenerStatus: OperatingStatus; taskId: string | null };

const viewColumns = {
  ...getTableColumns(lbL7Policies),
  ruleIds: sql<string[]>`array(
    select r.id from lb_l7_rules r where r.policy_id = lb_l7_policies.id order by r.created_at, r.id)`,
  listenerStatus: sql<OperatingStatus>`(
    select l.operating_status from lb_listeners l where l.id = lb_l7_policies.listener_id)`,
  taskId: kit.activeTask(lbL7Policies.loadBalancerId),
};

export const view = kit.viewOf<L7PolicyView>(lbL7Policies, { columns: viewColumns });
export const viewsById = kit.rowsByIds<L7PolicyView>(lbL7Policies, { columns: viewColumns });

const bytes = sql<number>`200 + 64 * (select count(*) from lb_l7_rules r where r.policy_id = lb_l7_policies.id)`;
/** With the size of their references to rules. */
export const list = kit.pagesOf<SizedRow<string>>(lbL7Policies, { columns: { id: lbL7Policies.id, bytes } });

/** The policies of a listener that are not being deleted. */
export const count = preparedValue<number, [listenerId: string], Tx>(
  'lb_l7_policies_count',
  'select count(*)::int as count from lb_l7_policies where listener_id = $1 and deleted_at is null',
);

const shiftPositions = prepared(
  'lb_l7_policies_shift',
  `update lb_l7_policies set position = position + $4
   where listener_id = $1 and deleted_at is null and position between $2 and $3`,
);

/** Moves the policies of a listener at the positions `from` to `to`. */
export async function shift(tx: Tx, listenerId: string, from: number, to: number, by: 1 | -1): Promise<void> {
  if (from <= to) await shiftPositions(tx, listenerId, from, to, by);
}

/** Marks all policies of a listener as deleted. */
export const markDeletedOfListener = deferred<[listenerId: string, deletedAt: Date]>('lb_l7_policies_deleted', {
  parameters: 'uuid, timestamptz',
  body: `update lb_l7_policies set deleted_at = $2, provisioning_status = 'PENDING_DELETE'
    where listener_id = $1 and deleted_at is null;`,
});

/** SQL: the policies that redirect to a pool. */
export const selectUsesOfPool = (poolId: string) =>
  kit.usesSql('L7 policy', 'lb_l7_policies', `redirect_pool_id = ${poolId} and deleted_at is null`);

export const usesOfPool = prepared<Uses, [poolId: string], Tx>('lb_l7_policies_uses_of_pool', selectUsesOfPool('$1'));

/** The comparisons of all rules of a listener that are not being deleted, by policy. */
export async function comparisonsOf(tx: Tx, listenerId: string) {
  const { policyId, compareType, id } = lbL7Rules;
  return tx
    .select({ id, policyId, compareType })
    .from(lbL7Rules)
    .innerJoin(lbL7Policies, eq(lbL7Policies.id, policyId))
    .where(and(eq(lbL7Policies.listenerId, listenerId), isNull(lbL7Policies.deletedAt), isNull(lbL7Rules.deletedAt)));
}
