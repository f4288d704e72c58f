/**
 * The readings of the load balancers of a region, from those of its hosts: counters are summed, the health of a member is the
 * best that a host reports: a member that one host reaches can serve requests.
 *
 * Invariant: a sum never decreases while the worker runs, although hosts come and go: it adds what each host has counted since
 * the worker first read it. After a restart of the worker it begins at zero, like the counters of a new proxy.
 */
import {
  type ListenerCounters,
  type LoadBalancerReading,
  type MemberHealth,
  zeroCounters,
} from '../drivers/load-balancer.ts';

/** A reading as JSON: maps as lists of pairs. */
export interface ReportedReading {
  id: string;
  members: [string, MemberHealth][];
  listeners: [string, ListenerCounters][];
}

/** The reading in the form that `createReadingMerger` reads. */
export const reportReading = ({ id, members, listeners }: LoadBalancerReading): ReportedReading => {
  return { id, members: [...members], listeners: [...listeners] };
};

const best: MemberHealth[] = ['UP', 'UNCHECKED', 'DRAIN', 'MAINT', 'DOWN'];
const sums = ['totalConnections', 'requests', 'bytesIn', 'bytesOut', 'requestErrors', 'serverErrors'] as const;

interface Counted {
  /** The last reading of each host. */
  last: Map<string, ListenerCounters>;
  total: ListenerCounters;
}

/** Returns a function that merges the readings of all hosts. Call it with each reading, because it adds up differences. */
export function createReadingMerger(): (byHost: Map<string, ReportedReading[]>) => LoadBalancerReading[] {
  const listeners = new Map<string, Counted>();
  const knownHosts = new Set<string>();

  const count = (host: string, id: string, counters: ListenerCounters) => {
    if (!listeners.has(id)) listeners.set(id, { last: new Map(), total: { ...zeroCounters } });
    const { last, total } = listeners.get(id)!;
    // What a host counted before this worker read it was added by an earlier worker.
    const before = last.get(host) ?? (knownHosts.has(host) ? zeroCounters : counters);
    const restarted = counters.totalConnections < before.totalConnections || counters.bytesIn < before.bytesIn;
    for (const name of sums) total[name] += Math.max(0, counters[name] - (restarted ? 0 : before[name]));
    total.activeConnections += counters.activeConnections;
    last.set(host, counters);
  };

  return (byHost) => {
    const merged = new Map<string, LoadBalancerReading>();
    for (const { total } of listeners.values()) total.activeConnections = 0;
    const present = new Set<string>();
    for (const [host, readings] of byHost) {
      for (const { id, members, listeners: counted } of readings) {
        if (!merged.has(id)) merged.set(id, { id, members: new Map(), listeners: new Map() });
        const reading = merged.get(id)!;
        for (const [member, health] of members) {
          reading.members.set(member, better(reading.members.get(member), health));
        }
        for (const [listener, counters] of counted) {
          count(host, listener, counters);
          present.add(listener);
          reading.listeners.set(listener, listeners.get(listener)!.total);
        }
      }
      knownHosts.add(host);
    }
    for (const id of listeners.keys()) if (!present.has(id) && byHost.size > 0) listeners.delete(id);
    return [...merged.values()].map((reading) => ({
      ...reading,
      listeners: new Map([...reading.listeners].map(([id, total]) => [id, { ...total }])),
    }));
  };
}

function better(one: MemberHealth | undefined, other: MemberHealth): MemberHealth {
  return one === undefined || best.indexOf(other) < best.indexOf(one) ? other : one;
}
