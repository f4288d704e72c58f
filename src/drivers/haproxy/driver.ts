/**
 * Load balancers on HAProxy, with nginx for UDP. Changes are made in batch.ts, configuration is rendered in configuration.ts,
 * and the state of the host is in host.ts.
 *
 * Invariant: one operation at a time changes HAProxy. Changes that wait for it are processed as one batch.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { DriverStatus } from '../../platform/driver-status.ts';
import type { Logger } from '../../platform/log.ts';
import { onHost } from '../command.ts';
import type { MemberRules } from '../../platform/member-networks.ts';
import { runsAsRoot } from '../confined.ts';
import { truncateLong } from '../daemon-logs.ts';
import type { BalancerAmongHosts, LoadBalancerDriver, Peers } from '../load-balancer.ts';
import { errorLog } from '../nginx/configuration.ts';
import { createNginx } from '../nginx/process.ts';
import { busyPortSeconds } from '../ports.ts';
import { limited, shared, takeBatch, type Turn } from '../../platform/turns.ts';
import { reloadAgain, runBatch } from './batch.ts';
import { findHaproxy, type HaproxyFinding } from './detect.ts';
import { findDamaged } from './damage.ts';
import { createDrains } from './drains.ts';
import { serveExcluded } from './excluded.ts';
import { createExporter } from './exporter.ts';
import { restore, type Host, markRunning, prepareStart, reloadEverything, servedSpecs } from './host.ts';
import { layoutOf } from './layout.ts';
import { maxConnections as affordableConnections } from './limits.ts';
import type { Change } from './plans.ts';
import { createProbes } from './probes.ts';
import { createHaproxyProcess } from './process.ts';
import { activeRequests, createTrafficCounters, readAll } from './readings.ts';
import { recheckMembers } from './member-recheck.ts';
import { allPools, syncServers, updateUdp } from './server-sync.ts';

export interface HaproxyDriverOptions {
  dataDir: string;
  log: Logger;
  /** Seconds until open connections to a removed member are closed; default: 30. */
  drainSeconds?: number;
  /** The maximum of replaced processes that still have connections; default: 100. */
  oldWorkers?: number;
  /** The maximum of open connections of all tenants; default: by the limits of the host. */
  maxConnections?: number;
  /** The hosts that share sessions with this one; default: none. */
  peers?: Peers | null;
  /** Where members may be. */
  memberRules: MemberRules;
  /** The programs of the host; default: detected. */
  finding?: HaproxyFinding;
}

export interface HaproxyDriver extends LoadBalancerDriver {
  readonly amongHosts: BalancerAmongHosts;
  /** Stops the driver only: HAProxy and nginx keep running, and the next process adopts them. */
  release(): Promise<void>;
}

interface PendingChange {
  change: Change;
  resolve(): void;
  reject(reason: unknown): void;
}

const DRAIN_SECONDS = 30;
/** Then open connections of a changed or removed listener are closed. */
const HARD_STOP_SECONDS = 3_600;
/** Each takes 5 to 50 MB, and every change of a tenant can leave one behind. */
const OLD_WORKERS = 100;
const TRUNCATE_LOGS_MS = 60_000;
const EXCLUDED_MS = busyPortSeconds * 1000;
/** Load balancers that the status names. */
const maxNamed = 3;

/** Runs nothing before `start`. @throws Error if HAProxy is not installed (`finding.haproxy` is null) */
export function createHaproxyDriver(options: HaproxyDriverOptions): HaproxyDriver {
  const { log, finding = findHaproxy() } = options;
  const exclusively = limited(1);
  const host = hostFor(options, finding, exclusively);
  const traffic = createTrafficCounters(host.process, host.specs);
  host.beforeReload = traffic.beforeReload;
  const exporter = createExporter(host, log);
  const pending: PendingChange[] = [];

  const runPending = shared(() =>
    exclusively(async () => {
      while (pending.length > 0) await runPlans(host, takeBatch(pending, idOf));
    }),
  );
  const submit = (change: Change) =>
    onHost(null, () => {
      const { promise, ...settle } = Promise.withResolvers<void>();
      pending.push({ change, ...settle });
      runPending().catch(settle.reject);
      return promise;
    });
  const timers: NodeJS.Timeout[] = [];
  const serveFree = () =>
    void exclusively(async () => {
      await exporter
        .restore()
        .catch((err: unknown) => log.warn({ err }, 'cannot create the socket of the exporter again yet'));
      await serveExcluded(host);
      if (host.udp && host.udp.excluded().size > 0) await updateUdp(host);
    }).catch((err: unknown) => log.warn({ err }, 'cannot serve excluded load balancers yet'));
  const finish = async (how: 'stop' | 'release') => {
    for (const timer of timers) clearInterval(timer);
    host.drains.stop();
    host.probes.stop();
    await exclusively(() => exporter.stop());
    await host.udp?.[how]();
    await host.process[how]();
    if (how === 'stop') await rm(host.layout.sockets, { recursive: true, force: true });
  };
  return {
    name: 'haproxy',
    real: true,
    status: () => statusOf(host),
    start: () =>
      onHost('cannot start the load balancers', async () => {
        await exclusively(async () => {
          await startAll(host);
          await traffic.countFromHere();
        });
        await exporter.start();
        timers.push(setInterval(() => void truncateLogs(host), TRUNCATE_LOGS_MS).unref());
        timers.push(setInterval(serveFree, EXCLUDED_MS).unref());
      }),
    stop: () => finish('stop'),
    release: () => finish('release'),
    apply: (desired, signal) => submit({ id: desired.id, desired, quarantine: false, signal }),
    remove: (id, signal) => submit({ id, desired: null, quarantine: false, signal }),
    quarantine: (id) => submit({ id, desired: null, quarantine: true, signal: new AbortController().signal }),
    list: async () => [...host.specs.keys()].sort(),
    findDamaged: () => onHost(null, () => findDamaged(host)),
    read: async () => readAll(host, traffic, host.udp ? await host.udp.read() : new Map()),
    recheckMembers: () => exclusively(() => recheckMembers(host)),
    counters: () => ({ ...host.counts }),
    amongHosts: amongHosts(host, exclusively),
  };
}

function amongHosts(host: Host, exclusively: Turn): BalancerAmongHosts {
  return {
    setPeers: (peers) => exclusively(() => setPeers(host, peers)),
    closeConnections: () => exclusively(() => reloadAgain(host)),
    activeRequests: (addresses) => activeRequests(host, addresses),
    check: async () => void (await host.process.ask(['show info'])),
  };
}

async function setPeers(host: Host, peers: Peers | null): Promise<void> {
  const before = host.settings.peers;
  if (isDeepStrictEqual(peers, before)) return;
  host.settings.peers = peers;
  try {
    if (host.process.isUp()) await reloadAgain(host);
  } catch (err) {
    // The next call tries again.
    host.settings.peers = before;
    throw err;
  }
}

function hostFor(options: HaproxyDriverOptions, finding: HaproxyFinding, exclusively: Turn): Host {
  const { dataDir, log, drainSeconds = DRAIN_SECONDS } = options;
  const { maxConnections = affordableConnections(), oldWorkers = OLD_WORKERS, peers = null } = options;
  const { haproxy } = finding;
  if (haproxy === null) throw new Error(finding.detail);
  const layout = layoutOf(dataDir);
  const runLater = (work: () => Promise<unknown>) =>
    void exclusively(work).catch((err: unknown) => log.warn({ err }, 'cannot update HAProxy yet'));
  const process = createHaproxyProcess({
    layout,
    haproxy,
    log,
    beforeStart: () => prepareStart(host),
    onRestart() {
      markRunning(host);
      runLater(() => syncServers(host));
    },
  });
  const probes = createProbes({
    specs: () => servedSpecs(host),
    ping: finding.ping,
    onChange(pool) {
      const rendered = allPools(host).filter(({ id }) => id === pool.id);
      runLater(() => (pool.protocol === 'UDP' ? updateUdp(host) : syncServers(host, rendered)));
    },
    log,
  });
  const udp = finding.nginx ? createNginx({ layout, ...finding.nginx, log }) : null;
  const host: Host = {
    layout,
    log,
    finding: { ...finding, haproxy },
    settings: { unprivileged: runsAsRoot(), maxConnections, hardStopSeconds: HARD_STOP_SECONDS, oldWorkers, peers },
    process,
    drains: createDrains(process, drainSeconds, log),
    probes,
    udp,
    specs: new Map(),
    admitted: new Map(),
    memberRules: options.memberRules,
    rendered: new Map(),
    running: new Map(),
    unwritten: new Set(),
    broken: new Map(),
    beforeReload: async () => undefined,
    counts: { reloads: 0, runtimeChanges: 0 },
  };
  return host;
}

async function startAll(host: Host): Promise<void> {
  await restore(host);
  host.probes.update();
  await syncServers(host).catch(async (err: unknown) => {
    host.log.error({ err }, 'HAProxy runs another configuration than it reports; reloading it');
    await reloadEverything(host);
    await syncServers(host);
  });
  await updateUdp(host);
}

/** The logs grow with every change of a member. */
async function truncateLogs({ layout, log }: Host): Promise<void> {
  for (const file of [layout.logFile, errorLog(layout.nginx)]) {
    await truncateLong(file).catch((err: unknown) => log.warn({ err, file }, 'cannot truncate a log'));
  }
}

const idOf = ({ change }: PendingChange) => change.id;

async function runPlans(host: Host, batch: PendingChange[]): Promise<void> {
  const plans = await runBatch(
    host,
    batch.map(({ change }) => change),
  );
  for (const [at, { failed }] of plans.entries()) {
    if (failed === undefined) batch[at]!.resolve();
    else batch[at]!.reject(failed);
  }
}

/** HAProxy creates its sockets only when it starts. Without them it continues to serve. */
const withoutSocket = (path: string) =>
  `the socket ${path} was removed, so no load balancer can be changed until HAProxy is restarted`;

function statusOf({ finding, process, broken, specs, udp, layout }: Host): DriverStatus {
  const status = { driver: 'haproxy', real: true, remedy: finding.remedy };
  const problems: string[] = [];
  if (!process.isUp()) problems.push('HAProxy is down');
  else if (!existsSync(layout.masterSocket)) problems.push(withoutSocket(layout.masterSocket));
  else if (process.isSilent()) problems.push('HAProxy does not respond');
  if (udp?.isDown()) problems.push('nginx is down');
  if (broken.size > 0) problems.push(`${broken.size} of ${specs.size} load balancers are not served`);
  const excluded = [...(udp?.excluded() ?? [])];
  const named = excluded.slice(0, maxNamed).map(([id, { message }]) => `load balancer ${id} (${message})`);
  if (named.length > 0) problems.push(`UDP of ${excluded.length} is not served: ${named.join(', ')}`);
  return { ...status, healthy: problems.length === 0, detail: [finding.detail, ...problems].join('; ') };
}
