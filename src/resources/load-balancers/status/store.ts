/** SQL of statuses. They are read in groups: a load balancer may have many listeners, and each pool a thousand members. */
import { sql } from 'drizzle-orm';
import { type Db, prepared } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import {
  jsonRows,
  oldestFirst,
  orderText,
  type ProjectRegion,
  rowById,
  rowsByIds,
  selectOf,
  viewOf,
} from '../../store-kit.ts';
import {
  type L7PolicyRow,
  type L7RuleRow,
  lbL7Policies,
  lbL7Rules,
  lbListeners,
  lbMembers,
  lbPools,
  type ListenerRow,
  type LoadBalancerRow,
  loadBalancers,
  type MemberRow,
  type PoolRow,
} from '../table.ts';

type NamedTable = typeof loadBalancers | typeof lbListeners | typeof lbPools;
const namedColumns = ({ id, name, operatingStatus, provisioningStatus }: NamedTable) => {
  return { id, name, operatingStatus, provisioningStatus };
};
const loadBalancerColumns = { ...namedColumns(loadBalancers), tags: loadBalancers.tags };
const listenerColumns = { ...namedColumns(lbListeners), defaultPoolId: lbListeners.defaultPoolId };
const poolColumns = { ...namedColumns(lbPools), healthMonitor: lbPools.healthMonitor };
const memberColumns = {
  ...{ id: lbMembers.id, poolId: lbMembers.poolId, address: lbMembers.address, protocolPort: lbMembers.protocolPort },
  operatingStatus: lbMembers.operatingStatus,
};
const l7PolicyColumns = {
  ...{ id: lbL7Policies.id, listenerId: lbL7Policies.listenerId, name: lbL7Policies.name },
  ...{ action: lbL7Policies.action, position: lbL7Policies.position },
  provisioningStatus: lbL7Policies.provisioningStatus,
};
const l7RuleColumns = {
  ...{ id: lbL7Rules.id, policyId: lbL7Rules.policyId, type: lbL7Rules.type },
  provisioningStatus: lbL7Rules.provisioningStatus,
};

/** The columns of rows that statuses show. */
export type LoadBalancerPart = Pick<LoadBalancerRow, keyof typeof loadBalancerColumns>;
type ListenerPart = Pick<ListenerRow, keyof typeof listenerColumns>;
export type PoolPart = Pick<PoolRow, keyof typeof poolColumns>;
export type MemberPart = Pick<MemberRow, keyof typeof memberColumns>;
type L7PolicyPart = Pick<L7PolicyRow, keyof typeof l7PolicyColumns>;
type L7RulePart = Pick<L7RuleRow, keyof typeof l7RuleColumns>;

interface Parts {
  pools: PoolPart[];
  members: MemberPart[];
  l7Policies: L7PolicyPart[];
  l7Rules: L7RulePart[];
}

/** A listener with its default pool, if any, and L7 policies. */
export type ListenerWithParts = ListenerPart & Parts;

/** A load balancer with all parts. */
export type LoadBalancerWithParts = LoadBalancerPart & Parts & { listeners: ListenerPart[] };

const byPosition = ['r.position', 'r.id'];
/** SQL: the parts of the rows that a statement reads, by conditions on the columns of the parts. */
const partsWhere = (of: { pool: string; member: string; l7Policy: string; l7Rule: string }) => ({
  pools: jsonRows(lbPools, poolColumns, of.pool),
  members: jsonRows(lbMembers, memberColumns, of.member, byPosition),
  l7Policies: jsonRows(lbL7Policies, l7PolicyColumns, of.l7Policy, byPosition),
  l7Rules: jsonRows(lbL7Rules, l7RuleColumns, of.l7Rule),
});

const ofIt = 'load_balancer_id = load_balancers.id';
/** Concurrent reads share a statement. */
export const withParts = rowById<LoadBalancerWithParts>(
  loadBalancers,
  {
    columns: {
      ...loadBalancerColumns,
      listeners: jsonRows(lbListeners, listenerColumns, ofIt),
      ...partsWhere({
        ...{ pool: ofIt, l7Policy: ofIt, l7Rule: ofIt },
        member: 'pool_id in (select id from lb_pools where load_balancer_id = load_balancers.id)',
      }),
    },
  },
  'load_balancer_with_parts',
);

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

const readSizes = prepared<SizedRow<string>, [projectId: number, regionId: number], Db>(
  'load_balancer_sizes',
  `${selectOf(loadBalancers, { columns: { id: loadBalancers.id, bytes: bytesOfParts } })}
   where project_id = $1 and region_id = $2 order by ${orderText(oldestFirst(loadBalancers))}`,
);

/** Oldest first, with the size of all parts. */
export const sizes = (db: Db, { projectId, regionId }: ProjectRegion): Promise<SizedRow<string>[]> =>
  readSizes(db, projectId, regionId);

const bytesOfListener = sql<number>`128 + 64 * (
  select count(*) from lb_members m where m.pool_id = lb_listeners.default_pool_id) + (
  select count(*) * 128 from lb_l7_policies y where y.listener_id = lb_listeners.id) + (
  select count(*) * 64 from lb_l7_rules r join lb_l7_policies y on y.id = r.policy_id
  where y.listener_id = lb_listeners.id)`;

/** Oldest first, with the size of their members, policies and rules. */
export const listenerSizes = prepared<SizedRow<string>, [loadBalancerId: string], Db>(
  'lb_listener_sizes',
  `${selectOf(lbListeners, { columns: { id: lbListeners.id, bytes: bytesOfListener } })}
   where load_balancer_id = $1 order by ${orderText(oldestFirst(lbListeners))}`,
);

export const listeners = rowsByIds<ListenerWithParts>(
  lbListeners,
  {
    columns: {
      ...listenerColumns,
      ...partsWhere({
        pool: 'id = lb_listeners.default_pool_id',
        member: 'pool_id = lb_listeners.default_pool_id',
        l7Policy: 'listener_id = lb_listeners.id',
        l7Rule: 'policy_id in (select id from lb_l7_policies where listener_id = lb_listeners.id)',
      }),
    },
  },
  'lb_listeners_with_parts',
);
