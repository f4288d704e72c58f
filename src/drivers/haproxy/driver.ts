/**
 * Load balancers on HAProxy, with nginx for UDP: puts the parts together. How a change is made is in batch.ts, what
 * is rendered in configuration.ts, what this host has in host.ts.
 *
 * Everything that changes HAProxy takes its turn in one lane; requests that wait there are taken together.
 */
import { rm, stat, truncate } from 'node:fs/promises';
import type { Logger } from 'pino';
import { hostError } from '../command.ts';
import type { MemberRules } from '../../platform/member-networks.ts';
import { runsAsRoot } from '../confined.ts';
import type { LoadBalancerDriver, ObservedLoadBalancer } from '../load-balancer.ts';
import type { DriverStatus } from '../driver.ts';
import { errorLog } from '../nginx/configuration.ts';
import { nginxFor } from '../nginx/server.ts';
import { oneAtATime, shared } from '../turns.ts';
import { resultOf, runBatch } from './batch.ts';
import { findHaproxy, type HaproxyFinding } from './detect.ts';
import { drainsFor } from './drains.ts';
import { exporterFor } from './exporter.ts';
import { bringBack, type Host, markRunning, prepareStart, servedSpecs } from './host.ts';
import { layoutOf } from './layout.ts';
import { maxConnections as affordableConnections } from './limits.ts';
import type { Change } from './prepare.ts';
import { probesFor } from './probes.ts';
import { haproxyProcess, logFile } from './process.ts';
import { countingFor, readAll } from './reading.ts';
import { recheckMembers } from './recheck.ts';
import { allPools, syncServers, updateUdp } from './sync.ts';

export interface HaproxyDriverOptions {
  dataDir: string;
  log: Logger;
  /** How long open connections to a removed member may go on; 30 unless given. */
  drainSeconds?: number;
  /** How long connections through a listener may go on after it was changed or removed; 3600 unless given. */
  hardStopSeconds?: number;
  /** Processes that a reload replaced and that still have connections; 100 unless given. */
  oldWorkers?: number;
  /** Open connections at once, of all tenants together; what the host affords unless given. */
  maxConnections?: number;
  /** Where members may be. */
  memberRules: MemberRules;
  /** What the host can do; looked up when it is not given. */
  finding?: HaproxyFinding;
}

export interface HaproxyDriver extends LoadBalancerDriver {
  /** Ends without disturbing anybody: HAProxy and nginx stay, and the next process adopts them. */
  release(): Promise<void>;
}

interface Waiting {
  change: Change;
  resolve(observed: ObservedLoadBalancer): void;
  reject(err: unknown): void;
}

const DRAIN_SECONDS = 30;
const HARD_STOP_SECONDS = 3_600;
/** Each has 5 to 50 MB, and a tenant can have a process left by every change that it makes. */
const OLD_WORKERS = 100;
const CUT_LOGS_EVERY_MS = 60_000;
const LONGEST_LOG = 10 * 1024 * 1024;

export function createHaproxyDriver(options: HaproxyDriverOptions): HaproxyDriver {
  const { log, finding = findHaproxy() } = options;
  const lane = oneAtATime();
  const inLane = <T>(work: () => Promise<T>) => lane('haproxy', work);
  const host = hostFor(options, finding, (work) => inLane(work));
  const counting = countingFor(host.process);
  host.beforeReload = counting.beforeReload;
  const exporter = exporterFor(host, log);
  const waiting: Waiting[] = [];
  const behind = new Set<string>();

  const runWaiting = shared(() =>
    inLane(async () => {
      while (waiting.length > 0) await runSome(host, takeBatch(waiting));
    }),
  );
  const submit = (change: Change) =>
    new Promise<ObservedLoadBalancer>((resolve, reject) => {
      waiting.push({ change, resolve, reject });
      runWaiting().catch(reject);
    });
  let cutting: NodeJS.Timeout | undefined;
  const end = async (how: 'stop' | 'release') => {
    clearInterval(cutting);
    host.drains.stop();
    host.probes.stop();
    await exporter.stop();
    await inLane(async () => undefined);
    await host.udp?.[how]();
    await host.process[how]();
    if (how === 'stop') await rm(host.layout.sockets, { recursive: true, force: true });
  };

  return {
    name: 'haproxy',
    real: true,
    status: () => statusOf(host),
    async start() {
      try {
        await inLane(() => startAll(host));
        await exporter.start();
        cutting = setInterval(() => void cutLogs(host), CUT_LOGS_EVERY_MS).unref();
      } catch (err) {
        await end('stop').catch((second: unknown) =>
          log.error({ err: second }, 'clearing up after a failed start failed'),
        );
        throw hostError(`load balancers cannot be served: ${(err as Error).message}`, err);
      }
    },
    stop: () => end('stop'),
    release: () => end('release'),
    apply: (desired, signal) => submit({ id: desired.id, desired, aside: false, signal }),
    async remove(id, signal) {
      await submit({ id, desired: null, aside: false, signal });
    },
    async quarantine(id) {
      await submit({ id, desired: null, aside: true, signal: new AbortController().signal });
    },
    list: async () => [...host.specs.keys()].sort(),
    read: async () => readAll(host, counting, host.udp ? await host.udp.read() : new Map()),
    recheckMembers: () => inLane(() => recheckMembers(host, behind)),
    counters: () => ({ ...host.counts }),
  };
}

function hostFor(
  options: HaproxyDriverOptions,
  finding: HaproxyFinding,
  inLane: (work: () => Promise<void>) => Promise<void>,
): Host {
  const { dataDir, log, drainSeconds = DRAIN_SECONDS, hardStopSeconds = HARD_STOP_SECONDS } = options;
  const { maxConnections = affordableConnections(), oldWorkers = OLD_WORKERS } = options;
  const { haproxy } = finding;
  if (!haproxy) throw new Error(finding.detail);
  const layout = layoutOf(dataDir);
  const later = (work: () => Promise<unknown>) =>
    void inLane(async () => void (await work())).catch((err: unknown) =>
      log.warn({ err }, 'load balancers are not in step yet'),
    );
  const restarted = () => {
    markRunning(host);
    later(() => syncServers(host, allPools(host)));
  };
  const process = haproxyProcess({
    layout,
    haproxy,
    log,
    beforeStart: () => prepareStart(host),
    onRestart: restarted,
  });
  const probes = probesFor({
    specs: () => servedSpecs(host),
    ping: finding.ping,
    onChange(pool) {
      const rendered = allPools(host).filter(({ id }) => id === pool.id);
      later(() => (pool.protocol === 'UDP' ? updateUdp(host) : syncServers(host, rendered)));
    },
    log,
  });
  const udp = finding.nginx ? nginxFor({ layout, ...finding.nginx, log }) : null;
  const host: Host = {
    layout,
    log,
    finding,
    settings: { unprivileged: runsAsRoot(), maxConnections, hardStopSeconds, oldWorkers },
    process,
    drains: drainsFor(process, drainSeconds, log),
    probes,
    udp,
    specs: new Map(),
    admitted: new Map(),
    memberRules: options.memberRules,
    rendered: new Map(),
    running: new Map(),
    broken: new Map(),
    beforeReload: async () => undefined,
    counts: { reloads: 0, runtimeChanges: 0 },
  };
  return host;
}

async function startAll(host: Host): Promise<void> {
  await bringBack(host);
  host.probes.update();
  await syncServers(host, allPools(host));
  await updateUdp(host);
}

/** Both write a line for every change of a member, for as long as they run. They append, so cutting loses nothing new. */
async function cutLogs({ layout, log }: Host): Promise<void> {
  for (const file of [logFile(layout), errorLog(layout.nginx)]) {
    const size = (await stat(file).catch(() => null))?.size ?? 0;
    if (size > LONGEST_LOG) await truncate(file).catch((err: unknown) => log.warn({ err, file }, 'log cannot be cut'));
  }
}

/** At most one change of each load balancer; the next ones come after it. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  const ids = new Set<string>();
  const batch: Waiting[] = [];
  for (const each of [...waiting]) {
    if (ids.has(each.change.id)) continue;
    ids.add(each.change.id);
    batch.push(each);
    waiting.splice(waiting.indexOf(each), 1);
  }
  return batch;
}

async function runSome(host: Host, batch: Waiting[]): Promise<void> {
  const plans = await runBatch(
    host,
    batch.map(({ change }) => change),
  );
  for (const [at, plan] of plans.entries()) {
    try {
      batch[at]?.resolve(resultOf(plan));
    } catch (err) {
      batch[at]?.reject(hostError(err instanceof Error ? err.message : String(err), err));
    }
  }
}

function statusOf({ finding, process, broken, specs, udp }: Host): DriverStatus {
  const status = { driver: 'haproxy', real: true, ...(finding.remedy && { remedy: finding.remedy }) };
  const troubles: string[] = [];
  if (!process.isUp()) troubles.push('HAProxy is down');
  if (udp?.isDown()) troubles.push('nginx is down');
  if (broken.size > 0) troubles.push(`${broken.size} of ${specs.size} load balancers cannot be served`);
  return { ...status, healthy: troubles.length === 0, detail: [finding.detail, ...troubles].join('; ') };
}
