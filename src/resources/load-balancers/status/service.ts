/** The statuses of load balancers as trees: listeners, their pools, monitors and members. */
import type { Scope } from '../../../authz/actor.ts';
import { notFound } from '../../../errors/catalogue.ts';
import type { Db } from '../../../platform/db.ts';
import { presentTags } from '../../../tags/tags.ts';
import type { LoadBalancerStatus, LoadBalancerStatusCollection } from '../schema.ts';
import * as store from '../store.ts';
import type { MemberRow, PoolRow, WholeLoadBalancer } from '../store.ts';

export function createLoadBalancerStatuses({ db }: { db: Db }) {
  return {
    async get(scope: Scope, id: string): Promise<LoadBalancerStatus> {
      const whole = await store.loadWhole(db, id, scope);
      if (!whole) throw notFound('load balancer', id);
      return present(whole);
    },

    async list(scope: Scope): Promise<LoadBalancerStatusCollection> {
      const results = (await store.wholesOfProject(db, scope)).map(present);
      return { count: results.length, results };
    },
  };
}

function present({ loadBalancer, listeners, pools, members }: WholeLoadBalancer): LoadBalancerStatus {
  const poolOf = new Map(pools.map((pool) => [pool.id, pool]));
  const membersOf = Map.groupBy(members, (member) => member.poolId);
  return {
    id: loadBalancer.id,
    name: loadBalancer.name,
    operating_status: loadBalancer.operatingStatus,
    provisioning_status: loadBalancer.provisioningStatus,
    listeners: listeners.map((listener) => {
      const pool = listener.defaultPoolId === null ? undefined : poolOf.get(listener.defaultPoolId);
      return {
        id: listener.id,
        name: listener.name,
        operating_status: listener.operatingStatus,
        provisioning_status: listener.provisioningStatus,
        pools: pool ? [presentPool(pool, membersOf.get(pool.id) ?? [])] : [],
      };
    }),
    tags: presentTags(loadBalancer.tags),
  };
}

/** Monitor and members are parts of a pool: they are provisioned with it. */
function presentPool(pool: PoolRow, members: MemberRow[]): LoadBalancerStatus['listeners'][number]['pools'][number] {
  const { healthMonitor: monitor, provisioningStatus: provisioning_status } = pool;
  return {
    id: pool.id,
    name: pool.name,
    operating_status: pool.operatingStatus,
    provisioning_status,
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
