/**
 * Reads the state of all load balancers from HAProxy with `show servers state` and the frontends of `show stat`. This runs
 * once a second; a complete `show stat` would cost HAProxy six times as much (240 instead of 40 ms with 10,000 members).
 *
 * A reload starts a new worker with new counters while the old worker still counts its connections. The counters of all
 * workers are added; a worker that has ended keeps its last reading.
 */
import type { ListenerCounters, LoadBalancerReading, MemberHealth } from '../load-balancer.ts';
import { zeroCounters } from '../load-balancer.ts';
import { isProbedByDriver } from './monitor-lines.ts';
import { serverName } from './configuration.ts';
import type { Host } from './host.ts';
import type { HaproxyProcess } from './process.ts';
import { type ObservedServer, parseServersState } from './servers.ts';
import type { Spec } from './specs.ts';

const FRONTENDS = 'show stat -1 1 -1';
const LISTENER = 'listener_';

type Counters = Map<string, ListenerCounters>;

export interface TrafficCounters {
  /** By listener id, the sum over all workers. */
  read(frontends: string): Promise<Counters>;
  /** Reads the counters of the worker that the reload will replace. */
  beforeReload(): Promise<void>;
}

export function createTrafficCounters(process: HaproxyProcess): TrafficCounters {
  /** The last reading of each worker by pid. */
  const workers = new Map<number, Counters>();
  const ended: Counters = new Map();

  async function read(frontends: string): Promise<Counters> {
    const { worker } = await process.running();
    workers.set(worker, parseFrontends(frontends));
    const others = [...workers.keys()].filter((pid) => pid !== worker);
    const alive = new Set(others.length > 0 ? await process.oldWorkers() : []);
    for (const pid of others) {
      if (alive.has(pid)) {
        const found = parseFrontends(await process.askOldWorker(pid, [FRONTENDS]));
        if (found.size > 0) workers.set(pid, found);
        continue;
      }
      for (const [id, counters] of workers.get(pid) ?? []) add(ended, id, { ...counters, activeConnections: 0 });
      workers.delete(pid);
    }
    const sum: Counters = new Map();
    for (const counters of [ended, ...workers.values()]) for (const [id, each] of counters) add(sum, id, each);
    return sum;
  }

  return {
    read,
    async beforeReload() {
      await read(await process.ask([FRONTENDS]));
    },
  };
}

export function parseFrontends(text: string): Counters {
  const counters: Counters = new Map();
  let column: Map<string, number> | null = null;
  for (const line of text.split('\n')) {
    const field = line.split(',');
    if (line.startsWith('# pxname')) column = new Map(field.map((name, at) => [name.replace('# ', ''), at]));
    if (!column || !line.startsWith(LISTENER)) continue;
    const number = (name: string) => Number(field[column?.get(name) ?? -1] ?? 0);
    counters.set((field[0] ?? '').slice(LISTENER.length), {
      activeConnections: number('scur'),
      totalConnections: number('stot'),
      bytesIn: number('bin'),
      bytesOut: number('bout'),
      requestErrors: number('ereq') + number('dreq'),
    });
  }
  return counters;
}

function add(sum: Counters, id: string, more: ListenerCounters): void {
  const total = sum.get(id);
  if (!total) {
    sum.set(id, { ...more });
    return;
  }
  for (const key of Object.keys(more) as (keyof ListenerCounters)[]) total[key] += more[key];
}

export async function readAll(host: Host, traffic: TrafficCounters, udp: Counters): Promise<LoadBalancerReading[]> {
  const servers = new Map<string, ObservedServer>();
  const state = await host.process.ask(['show servers state']);
  for (const server of parseServersState(state)) servers.set(`${server.backend}/${server.name}`, server);
  const frontends = await host.process.ask([FRONTENDS]);
  const current = parseFrontends(frontends);
  const counters = await traffic.read(frontends);
  return [...host.specs.values()].map((spec) => {
    const listens = (id: string) => current.has(id) || udp.has(id);
    const own = spec.listeners.filter(({ id }) => listens(id));
    return {
      id: spec.id,
      members: membersOf(host, spec, servers),
      listeners: new Map(own.map(({ id }) => [id, udp.get(id) ?? counters.get(id) ?? { ...zeroCounters }])),
    };
  });
}

function membersOf(host: Host, spec: Spec, servers: Map<string, ObservedServer>): Map<string, MemberHealth> {
  const members = new Map<string, MemberHealth>();
  const refused = host.admitted.get(spec.id)?.refused;
  for (const pool of spec.pools) {
    const monitored = pool.monitor?.enabled === true;
    for (const member of pool.members) {
      const runs = spec.enabled && pool.enabled && member.enabled;
      const server = servers.get(`pool_${pool.id}/${serverName(member)}`);
      const up = isProbedByDriver(pool) ? host.probes.verdict(member.id) : server?.up;
      if (runs && refused?.has(member.id)) members.set(member.id, 'DOWN');
      else if (!runs || server?.maint || (!server && pool.protocol !== 'UDP')) members.set(member.id, 'MAINT');
      else if (monitored && up === false) members.set(member.id, 'DOWN');
      else if (member.weight === 0) members.set(member.id, 'DRAIN');
      else members.set(member.id, monitored && up !== undefined ? 'UP' : 'UNCHECKED');
    }
  }
  return members;
}
