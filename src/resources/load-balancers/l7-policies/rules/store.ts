/** SQL of L7 rules. Writers hold the lock of the load balancer's row. */
import { eq, getTableColumns, sql } from 'drizzle-orm';
import type { Db } from '../../../../platform/db.ts';
import * as kit from '../../../store-kit.ts';
import type { ProjectRegion } from '../../../store-kit.ts';
import type { OperatingStatus } from '../../shapes.ts';
import { lockPart } from '../../store.ts';
import { type L7RuleRow, lbL7Rules } from '../../table.ts';

export const update = kit.updateRow(lbL7Rules);
export const lockL7Rule = lockPart<kit.Locked<L7RuleRow>>(lbL7Rules);
export const insert = kit.insertRow(lbL7Rules);

export type { L7RuleRow };

/** With the status of its listener and the task that locks its load balancer. */
export type L7RuleView = L7RuleRow & { listenerStatus: OperatingStatus; taskId: string | null };

const viewColumns = {
  ...getTableColumns(lbL7Rules),
  listenerStatus: sql<OperatingStatus>`(
    select l.operating_status from lb_l7_policies p join lb_listeners l on l.id = p.listener_id
    where p.id = lb_l7_rules.policy_id)`,
  taskId: kit.activeTask(lbL7Rules.loadBalancerId),
};

export const view = kit.viewOf<L7RuleView>(lbL7Rules, { columns: viewColumns });
const readPage = kit.pagesOf<L7RuleView>(lbL7Rules, { columns: viewColumns });

export const list = (db: Db, scope: ProjectRegion, policyId: string, page: kit.PageQuery) =>
  readPage(db, scope, page, [eq(lbL7Rules.policyId, policyId)]);
