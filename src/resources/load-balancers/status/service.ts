/** The statuses of load balancers as trees: listeners, their pools, monitors and members, L7 policies and rules. */
import type { Scope } from '../../../authz/actor.ts';
import { notFound } from '../../../errors/catalogue.ts';
import type { Db } from '../../../platform/db.ts';
import { type Groups, isLarge, type PageInGroups, readInGroups, type SizedRow } from '../../../platform/large-rows.ts';
import { toTagList } from '../../../tags/tags.ts';
import { statusesOf } from '../l7-policies/response.ts';
import { find } from '../store.ts';
import type { ListenerRow, LoadBalancerRow } from '../table.ts';
import type { LoadBalancerStatus } from './schema.ts';
import * as store from './store.ts';
import type { ListenerWithParts, LoadBalancerPart, LoadBalancerWithParts, MemberPart, PoolPart } from './store.ts';

type Listener = LoadBalancerStatus['listeners'][number];
/** A status whose listeners are read while it is sent. */
type InGroups = Omit<LoadBalancerStatus, 'listeners'> & { listeners: Groups<Listener> };

export function createLoadBalancerStatuses({ db }: { db: Db }) {
  const inGroups = async (loadBalancer: LoadBalancerRow): Promise<InGroups> => {
    const rows = await store.listenerSizes(db, loadBalancer.id);
    const read = (ids: string[]) => store.listeners(db, ids);
    return toStatus(loadBalancer, readInGroups(rows, read, listenerToStatus));
  };

  /** Null if it was deleted meanwhile. */
  const read = async (scope: Scope, size: SizedRow<string>): Promise<LoadBalancerStatus | InGroups | null> => {
    if (isLarge(size)) {
      const loadBalancer = await find(db, scope, size.id);
      return loadBalancer && inGroups(loadBalancer);
    }
    const whole = await store.withParts(db, size.id);
    return whole && wholeToStatus(whole);
  };

  return {
    async get(scope: Scope, id: string): Promise<LoadBalancerStatus | InGroups> {
      const size = await store.size(db, scope, id);
      const status = size && (await read(scope, size));
      if (!status) throw notFound('load balancer', id);
      return status;
    },

    async list(scope: Scope): Promise<PageInGroups<LoadBalancerStatus | InGroups>> {
      const rows = await store.sizes(db, scope);
      const sizes = new Map(rows.map((size) => [size.id, size]));
      // A large load balancer is the only one of its group. The others of a group share a statement.
      const readGroup = async (ids: string[]) => {
        const statuses = await Promise.all(ids.map((id) => read(scope, sizes.get(id)!)));
        return statuses.filter((status) => status !== null);
      };
      return { count: rows.length, results: readInGroups(rows, readGroup, (status) => status) };
    },
  };
}

function wholeToStatus(whole: LoadBalancerWithParts): LoadBalancerStatus {
  const policiesOf = Map.groupBy(whole.l7Policies, (policy) => policy.listenerId);
  const rulesOf = Map.groupBy(whole.l7Rules, (rule) => rule.policyId);
  const poolsOf = Map.groupBy(whole.pools, (pool): string | null => pool.id);
  const membersOf = Map.groupBy(whole.members, (member): string | null => member.poolId);
  return toStatus(
    whole,
    whole.listeners.map((listener) => {
      const l7Policies = policiesOf.get(listener.id) ?? [];
      return listenerToStatus({
        ...listener,
        pools: poolsOf.get(listener.defaultPoolId) ?? [],
        members: membersOf.get(listener.defaultPoolId) ?? [],
        l7Policies,
        l7Rules: l7Policies.flatMap((policy) => rulesOf.get(policy.id) ?? []),
      });
    }),
  );
}

function toStatus<Listeners>(loadBalancer: LoadBalancerPart, listeners: Listeners) {
  return { ...namedStatuses(loadBalancer), listeners, tags: toTagList(loadBalancer.tags) };
}

function listenerToStatus({ pools, members, l7Policies, l7Rules, ...listener }: ListenerWithParts): Listener {
  const rulesOf = Map.groupBy(l7Rules, (rule) => rule.policyId);
  return {
    ...namedStatuses(listener),
    pools: pools.map((pool) => poolToStatus(pool, members)),
    l7policies: l7Policies.map((policy) => ({
      id: policy.id,
      name: policy.name,
      action: policy.action,
      position: policy.position,
      ...statusesOf(policy, listener.operatingStatus),
      rules: (rulesOf.get(policy.id) ?? []).map((rule) => ({
        id: rule.id,
        type: rule.type,
        ...statusesOf(rule, listener.operatingStatus),
      })),
    })),
  };
}

function namedStatuses(row: Pick<ListenerRow, 'id' | 'name' | 'operatingStatus' | 'provisioningStatus'>) {
  const { id, name, operatingStatus, provisioningStatus } = row;
  return { id, name, operating_status: operatingStatus, provisioning_status: provisioningStatus };
}

/** Monitors and members are provisioned with their pool. */
function poolToStatus(pool: PoolPart, members: MemberPart[]): Listener['pools'][number] {
  const { healthMonitor: monitor, provisioningStatus: provisioning_status } = pool;
  return {
    ...namedStatuses(pool),
    health_monitor: monitor && {
      id: monitor.id,
      operating_status: monitor.admin_state_up ? 'ONLINE' : 'OFFLINE',
      provisioning_status,
      type: monitor.type,
    },
    members: members.map((member) => ({
      id: member.id,
      address: member.address,
      protocol_port: member.protocolPort,
      operating_status: member.operatingStatus,
      provisioning_status,
    })),
  };
}
