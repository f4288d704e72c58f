/**
 * Reads the state of all load balancers from HAProxy with `show servers state` and the frontends and backends of `show stat`.
 * This runs once a second; a complete `show stat` would cost HAProxy six times as much (240 instead of 40 ms with 10,000
 * members).
 *
 * A reload starts a new worker with new counters while the old worker still counts its connections. The counters of all
 * workers are added; a worker that has ended keeps its last reading.
 *
 * Failure modes: the readings of ended workers end with this process. The next process that adopts HAProxy therefore counts
 * from there, and the traffic between the last reading of this one and the first of that one is not counted.
 */
import { listenerMode } from '../load-balancer-rules.ts';
import {
  addressesOf,
  zeroCounters,
  type ListenerCounters,
  type LoadBalancerReading,
  type MemberHealth,
} from '../load-balancer.ts';
import { isProbedByDriver } from './monitor-lines.ts';
import { LISTENER, listenerName, POOL, poolName, serverName } from './configuration.ts';
import type { Host } from './host.ts';
import type { HaproxyProcess } from './process.ts';
import { type ObservedServer, parseServersState } from './servers.ts';
import type { Spec } from './specs.ts';
import { rowsOf } from './statistics.ts';

const FRONTENDS_AND_BACKENDS = 'show stat -1 3 -1';

type Counters = Map<string, ListenerCounters>;
/** The pool of each TCP listener: frontends do not count failed connections to members. */
type TcpPools = Map<string, string>;

/** `specs`: those of the host, which decide what listeners exist. */
export function createTrafficCounters(process: HaproxyProcess, specs: ReadonlyMap<string, Spec>) {
  /** The last reading of each worker by pid. */
  const workers = new Map<number, Counters>();
  /** Of listeners that exist. Its keys are their ids, because a part of a text of HAProxy keeps the whole text in memory. */
  const ended: Counters = new Map();

  /** The pool of a listener may change before the worker that serves it, and counters must not fall. */
  function record(worker: number, found: Counters): void {
    const before = workers.get(worker);
    for (const [id, counters] of found) {
      counters.serverErrors = Math.max(counters.serverErrors, before?.get(id)?.serverErrors ?? 0);
    }
    workers.set(worker, found);
  }

  /** By listener id, the sum over all workers. */
  async function read(statistics: string): Promise<Counters> {
    const { worker } = await process.running();
    const pools = tcpPools(specs.values());
    const listeners = new Set([...specs.values()].flatMap((spec) => spec.listeners.map(({ id }) => id)));
    record(worker, parseCounters(statistics, pools));
    const others = [...workers.keys()].filter((pid) => pid !== worker);
    const alive = new Set(others.length > 0 ? await process.oldWorkers() : []);
    for (const pid of others) {
      if (alive.has(pid)) {
        const found = parseCounters(await process.askOldWorker(pid, [FRONTENDS_AND_BACKENDS]), pools);
        if (found.size > 0) record(pid, found);
        continue;
      }
      for (const id of listeners) {
        const counters = workers.get(pid)?.get(id);
        if (counters) add(ended, id, { ...counters, activeConnections: 0 });
      }
      workers.delete(pid);
    }
    for (const id of ended.keys()) if (!listeners.has(id)) ended.delete(id);
    const sum: Counters = new Map();
    for (const counters of [ended, ...workers.values()]) for (const [id, each] of counters) add(sum, id, each);
    return sum;
  }

  return {
    read,
    /** Reads the counters of the worker that the reload will replace. */
    async beforeReload(): Promise<void> {
      await read(await process.ask([FRONTENDS_AND_BACKENDS]));
    },
    /** Call it at the start. If a previous process reloaded HAProxy, what its worker has counted was part of larger sums. */
    async countFromHere(): Promise<void> {
      if ((await process.reloads()) === 0) return;
      for (const [id, counters] of await read(await process.ask([FRONTENDS_AND_BACKENDS]))) {
        add(ended, id, negated(counters));
      }
    },
  };
}

type TrafficCounters = ReturnType<typeof createTrafficCounters>;

function tcpPools(specs: Iterable<Spec>): TcpPools {
  const pools: TcpPools = new Map();
  for (const { listeners } of specs) {
    for (const { id, protocol, defaultPoolId } of listeners) {
      if (defaultPoolId !== null && listenerMode(protocol) === 'tcp') pools.set(id, defaultPoolId);
    }
  }
  return pools;
}

/** The counters of the listeners in the CSV of `show stat`. */
export function parseCounters(text: string, pools: TcpPools): Counters {
  const counters: Counters = new Map();
  const failedConnections = new Map<string, number>();
  for (const value of rowsOf(text)) {
    const name = value('pxname');
    const number = (column: string) => Number(value(column));
    if (name.startsWith(POOL) && value('svname') === 'BACKEND') {
      failedConnections.set(name.slice(POOL.length), number('econ'));
    }
    if (!name.startsWith(LISTENER)) continue;
    counters.set(name.slice(LISTENER.length), {
      activeConnections: number('scur'),
      totalConnections: number('stot'),
      requests: number('req_tot'),
      bytesIn: number('bin'),
      bytesOut: number('bout'),
      requestErrors: number('ereq') + number('dreq') + number('dcon'),
      serverErrors: number('hrsp_5xx'),
    });
  }
  for (const [listener, pool] of pools) {
    const found = counters.get(listener);
    if (found) found.serverErrors += failedConnections.get(pool) ?? 0;
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

/** Without open connections, which are not added up. */
function negated(counters: ListenerCounters): ListenerCounters {
  const found = { ...counters, activeConnections: 0 };
  for (const key of Object.keys(found) as (keyof ListenerCounters)[]) found[key] = -found[key];
  return found;
}

/** `udp`: the counters of nginx. @throws DriverError while HAProxy is down */
export async function readAll(host: Host, traffic: TrafficCounters, udp: Counters): Promise<LoadBalancerReading[]> {
  const servers = new Map<string, ObservedServer>();
  const state = await host.process.ask(['show servers state']);
  for (const server of parseServersState(state)) servers.set(`${server.backend}/${server.name}`, server);
  const statistics = await host.process.ask([FRONTENDS_AND_BACKENDS]);
  const listening = new Set(statistics.split('\n').map((line) => line.slice(0, line.indexOf(','))));
  const counters = await traffic.read(statistics);
  return [...host.specs.values()].map((spec) => {
    const listens = (id: string) => listening.has(`${LISTENER}${id}`) || udp.has(id);
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
      const server = servers.get(`${poolName(pool.id)}/${serverName(member)}`);
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

/**
 * The number of requests in progress at these addresses, from `show sess` of all workers: HTTP connections are listed while they
 * have a request, TCP connections always.
 */
export async function activeRequests({ specs, process }: Host, addresses: ReadonlySet<string>): Promise<number> {
  const frontends = new Set(
    [...specs.values()]
      .filter((spec) => addressesOf(spec).some((address) => addresses.has(address)))
      .flatMap(({ listeners }) => listeners.map(({ id }) => listenerName(id))),
  );
  const old = await process.oldWorkers();
  const answers = await Promise.all([
    process.ask(['show sess']),
    ...old.map((pid) => process.askOldWorker(pid, ['show sess'])),
  ]);
  const found = answers.flatMap((text) => [...text.matchAll(/^0x\w+: proto=\S+ src=\S+ fe=(\S+) /gm)]);
  return found.filter(([, frontend = '']) => frontends.has(frontend)).length;
}
