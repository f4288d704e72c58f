/** For tests: a region of several hosts with agents in this process, whose parts keep what they serve in memory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { inject, type TestContext, vi } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { connect } from '../platform/db.ts';
import { createKeyring } from '../platform/encryption.ts';
import { createListener } from '../platform/listener.ts';
import { silentLogger } from '../platform/log.ts';
import type { ShutdownMode } from '../platform/shutdown-mode.ts';
import { type Agent, type AgentOptions, startAgent } from './agent.ts';
import type { HostPart, RegionView } from './part.ts';
import { createPublishers, type Publishers } from './publisher.ts';
import { claimPublishing, listHosts } from './store.ts';

interface TestHost {
  name: string;
  dataDir: string;
  /** What it serves, by id. */
  world: Map<string, unknown>;
  /** Thrown by `apply` of this id, and by `start`, `serve` and `hostsChanged` (`hosts`). */
  failures: Map<string, Error>;
  /** Calls of the part that tests wait for. */
  calls: string[];
  views: RegionView[];
  /** `apply` waits for it. */
  gate: Promise<void>;
  /** Called before the part reports its status, with each statement that takes or renews the lease. */
  onStatus: () => void;
  agent: Agent;
  fatal: Error[];
}

interface TestRegionOptions {
  /** A migrated database; default: an empty one. */
  database?: Awaited<ReturnType<typeof cloneDatabase>>;
  leaseSeconds?: number;
}

export async function openRegion(t: TestContext, { database, leaseSeconds = 2 }: TestRegionOptions = {}) {
  const { connection, drop } = database ?? (await cloneDatabase(inject('postgres')));
  const db = connect({ ...connection, poolSize: 4, log: silentLogger });
  const keyring = createKeyring([{ id: 'test', key: randomBytes(32) }]);
  const listener = createListener({ db, log: silentLogger });
  const workers: Publishers[] = [];
  /** A worker of the region. `superseded`: how often it noticed that another one has claimed the region. */
  const startWorker = async (keys = keyring) => {
    const worker = { superseded: 0 };
    const publishers = createPublishers({
      ...{ db, keyring: keys, listener, log: silentLogger, regionId: 1, pollMs: 100 },
      epoch: await claimPublishing(db, 1),
      onSuperseded: () => (worker.superseded += 1),
    });
    workers.push(publishers);
    const publisher = publishers.of<unknown>('load_balancer');
    const publish = (id: string, state: unknown, signal = AbortSignal.timeout(30_000)) =>
      publisher.publish(id, state, signal);
    return Object.assign(worker, { publisher, publish });
  };
  const worker = await startWorker();
  const folder = mkdtempSync(join(tmpdir(), 'hosts-'));
  const stops: (() => Promise<unknown>)[] = [];
  t.onTestFinished(async () => {
    await Promise.all(stops.map((stop) => stop()));
    for (const each of workers) await each.stop();
    await db.$client.end();
    await drop();
    rmSync(folder, { recursive: true });
  });

  const addresses = new Map<string, string>();
  const addressOf = (name: string) => {
    if (!addresses.has(name)) addresses.set(name, `127.0.0.${addresses.size + 1}`);
    return addresses.get(name)!;
  };
  /** Starts an agent. `world`: what the host serves already; `now`: its clock. */
  const start = async (
    name: string,
    { world = new Map<string, unknown>(), now, address = addressOf(name), keys = keyring, ...more }: StartOptions = {},
  ) => {
    const own = connect({ ...connection, poolSize: 2, log: silentLogger });
    const host: TestHost = {
      ...{ name, world, dataDir: join(folder, name), failures: new Map(), calls: [], views: [] },
      ...{ gate: Promise.resolve(), onStatus: () => {}, fatal: [], agent: undefined as unknown as Agent, ...more },
    };
    host.agent = await startAgent({
      ...{ db: own, keyring: keys, listener: createListener({ db: own, log: silentLogger }), log: silentLogger },
      region: {
        ...{ regionId: 1, vipRange: null, vipRangeV6: null, storage: null },
        settings: {
          ...{ nfsAddresses: [], apiAddress: null, registryAddress: null, addressGroups: 1, virtualRouterId: 1 },
          leaseSeconds,
        },
      },
      ...{
        name,
        address,
        interface: null,
        dataDir: host.dataDir,
        version: 'test',
        parts: [memoryPart(host)],
      },
      onFatal: (error) => host.fatal.push(error),
      ...(now && { now }),
    });
    let stopped: Promise<void> | undefined;
    const stop = (mode: ShutdownMode) => (stopped ??= end(host.agent, mode));
    const end = async (agent: Agent, mode: ShutdownMode) => {
      await agent.stop(mode);
      await own.$client.end();
    };
    stops.push(() => stop('stop'));
    return Object.assign(host, { stop });
  };
  return {
    ...{ db, connection, start, keyring, worker, startWorker, leaseSeconds },
    ...{ publisher: worker.publisher, publish: worker.publish },
    hosts: () => listHosts(db, [1], null),
    /** Starts hosts and waits until they have converged. */
    async startAll(...names: string[]) {
      const started = await Promise.all(names.map((name) => start(name)));
      await Promise.all(started.map(({ agent }) => agent.converged));
      return started;
    },
    setState: (name: string, state: string) =>
      db.$client.query('update hosts set state = $2 where name = $1', [name, state]),
  };
}

interface StartOptions extends Partial<Pick<AgentOptions, 'now' | 'address'>> {
  keys?: AgentOptions['keyring'];
  world?: Map<string, unknown>;
  failures?: Map<string, Error>;
}

function memoryPart(host: TestHost): HostPart {
  const apply = async (id: string, state: unknown) => {
    const failure = host.failures.get(id);
    if (failure) throw failure;
    if (state === null) host.world.delete(id);
    else host.world.set(id, state);
  };
  const call = async (name: string) => {
    const failure = host.failures.get(name);
    if (failure) throw failure;
    host.calls.push(name);
  };
  return {
    ...{ kind: 'load_balancer', title: 'load balancers' },
    start: () => call('start'),
    async converge(states) {
      for (const id of [...host.world.keys()]) if (!states.has(id)) host.world.delete(id);
      const failed = new Map();
      for (const [id, state] of states) await apply(id, state).catch((error: unknown) => failed.set(id, error));
      host.calls.push('converge');
      return failed;
    },
    async apply(id, state) {
      await host.gate;
      await apply(id, state);
    },
    serve: () => call('serve'),
    async hostsChanged(view) {
      const failure = host.failures.get('hosts');
      if (!failure) return void host.views.push(view);
      host.calls.push(`missed ${view.hosts.filter(({ converged }) => converged).length} converged`);
      throw failure;
    },
    stopServing: async () => {
      host.world.clear();
      host.calls.push('stopServing');
    },
    release: () => call('release'),
    drain: () => call('drain'),
    status: () => {
      host.onStatus();
      return { driver: 'memory', real: false, healthy: true, detail: 'in memory' };
    },
    readings: async () => [...host.world.keys()],
  };
}

/** A clock that a test moves. */
export function movableClock() {
  const clock = { offset: 0, now: () => performance.now() / 1000 + clock.offset };
  return clock;
}

const soon = { timeout: 30_000, interval: 10 };
export const eventually = <T>(check: () => T | Promise<T>) => vi.waitFor(check, soon);
