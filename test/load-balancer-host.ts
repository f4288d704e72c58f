/**
 * An in-memory host of load balancers that a test can inspect, block, fail and change. The test sets the health of members
 * and the counters of listeners.
 */
import {
  type DesiredLoadBalancer,
  type ListenerCounters,
  type LoadBalancerDriver,
  type LoadBalancerReading,
  type MemberHealth,
  zeroCounters,
} from '../src/drivers/load-balancer.ts';
import { DriverError } from '../src/errors/driver-error.ts';
import { createSteering, type Steering } from './drivers.ts';

export interface LoadBalancerCall {
  method: 'apply' | 'remove';
  id: string;
  /** The desired state of an `apply`. */
  desired?: DesiredLoadBalancer;
}

interface TestLoadBalancerHost extends LoadBalancerDriver, Steering<LoadBalancerCall> {
  /** Load balancers on the host and in quarantine. A test may add and remove them. */
  readonly balancers: Map<string, DesiredLoadBalancer>;
  readonly quarantined: Map<string, DesiredLoadBalancer>;
  /** Every completed `apply`, oldest first. */
  readonly log: DesiredLoadBalancer[];
  /** By member id. Default: UP with a monitor, UNCHECKED without. */
  readonly health: Map<string, MemberHealth>;
  /** By listener id. Default: zero. */
  readonly traffic: Map<string, Partial<ListenerCounters>>;
  /** If false, the proxy does not respond. */
  answers: boolean;
}

export function createTestLoadBalancerHost(): TestLoadBalancerHost {
  const balancers = new Map<string, DesiredLoadBalancer>();
  const quarantined = new Map<string, DesiredLoadBalancer>();
  const log: DesiredLoadBalancer[] = [];
  const steering = createSteering<LoadBalancerCall>();
  const host: Omit<TestLoadBalancerHost, keyof Steering<LoadBalancerCall>> = {
    name: 'test',
    real: false,
    balancers,
    quarantined,
    log,
    health: new Map(),
    traffic: new Map(),
    answers: true,
    status: () => ({ driver: 'test', real: false, healthy: true, detail: 'a host in memory' }),
    start: async () => undefined,
    stop: async () => undefined,
    async apply(desired, signal) {
      await steering.call({ method: 'apply', id: desired.id, desired }, signal, () => {
        balancers.set(desired.id, structuredClone(desired));
        log.push(structuredClone(desired));
      });
    },
    async remove(id, signal) {
      await steering.call({ method: 'remove', id }, signal, () => balancers.delete(id));
    },
    list: async () => [...balancers.keys()],
    async quarantine(id) {
      const balancer = balancers.get(id);
      if (balancer) quarantined.set(id, balancer);
      balancers.delete(id);
    },
    async read() {
      if (!host.answers) {
        throw new DriverError('no response, for a test', { customerMessage: 'the proxy is busy', retryable: true });
      }
      return [...balancers.values()].map((balancer) => reading(balancer, host));
    },
    recheckMembers: async () => undefined,
    counters: () => ({ reloads: 0, runtimeChanges: 0 }),
  };
  return Object.defineProperties(host, Object.getOwnPropertyDescriptors(steering)) as TestLoadBalancerHost;
}

function reading(
  { id, listeners, pools }: DesiredLoadBalancer,
  { health, traffic }: Pick<TestLoadBalancerHost, 'health' | 'traffic'>,
): LoadBalancerReading {
  const members = pools.flatMap((pool) =>
    pool.members.map((member) => {
      const found = member.enabled ? (pool.monitor ? 'UP' : 'UNCHECKED') : 'MAINT';
      return [member.id, health.get(member.id) ?? found] as const;
    }),
  );
  const listening = listeners.filter((listener) => listener.enabled);
  return {
    id,
    members: new Map(members),
    listeners: new Map(listening.map((listener) => [listener.id, { ...zeroCounters, ...traffic.get(listener.id) }])),
  };
}
