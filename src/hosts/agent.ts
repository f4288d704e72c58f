/**
 * The agent of a host: takes the lease, brings its parts to the published states, serves, and follows changes until it stops
 * or loses the lease. Then its parts stop serving, and it begins again.
 *
 * Invariant: a host serves only while its lease is valid, and only after it has applied every published state.
 */
import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Db, openUnboundedPool } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import type { ShutdownMode } from '../platform/shutdown-mode.ts';
import * as store from './agent-store.ts';
import type { Incarnation } from './agent-store.ts';
import { type Lease, removeFile, renewMsOf, startLease } from './lease.ts';
import { type HostPart, leaseFileOf, type RegionView } from './part.ts';
import { runSession, type SessionOptions } from './session.ts';
import { hostsOfRegion, stopMarginSeconds } from './store.ts';
import type { AppliedStates, HostReport } from './table.ts';
import { createUpdates } from './updates.ts';

export interface AgentOptions extends Pick<SessionOptions, 'db' | 'keyring' | 'listener' | 'log' | 'parts' | 'now'> {
  /** The region, without what the agent reads from the database. */
  region: Omit<RegionView, 'self' | 'hosts'>;
  name: string;
  address: string;
  interface: string | null;
  dataDir: string;
  version: string;
  /** Called if the agent cannot continue: another agent has its name. */
  onFatal(error: Error): void;
}

const retryMs = 300;
const endsByItself = 'the lease ends by itself';

/** Takes the lease of the host, and starts to serve. @throws if another agent has this name, or another host its address */
export async function startAgent(options: AgentOptions) {
  const { db, region, parts, log, onFatal } = options;
  const { leaseSeconds } = region.settings;
  // A statement that hangs must not keep the next renewal from another connection.
  const timeout = renewMsOf(leaseSeconds);
  const pool = openUnboundedPool(db, log, { query_timeout: timeout, connectionTimeoutMillis: timeout });
  const stopping = new AbortController();
  const started = Promise.withResolvers<void>();
  const converged = Promise.withResolvers<void>();
  for (const { promise } of [started, converged]) promise.catch(() => {});
  let current: { lease: Lease; host: Incarnation } | null = null;

  const serveUntilLost = async (acquired: Acquired) => {
    const lease = await runWithLease(options, {
      ...{ pool, acquired, stopping: stopping.signal, onStarted: started.resolve, onConverged: converged.resolve },
      onLease: (lease) => void (current = { lease, host: acquired.host }),
    });
    if (stopping.signal.aborted) return;
    // Again, because a part may have started something meanwhile.
    await stopServing(parts, log);
    await lease.stop(false);
  };
  let acquired = await takeLease(options, pool, stopping.signal);
  const run = async () => {
    while (acquired && !stopping.signal.aborted) {
      await serveUntilLost(acquired);
      if (stopping.signal.aborted) return;
      acquired = await takeLease(options, pool, stopping.signal);
    }
  };
  const ended = run().catch((error: unknown) => onFatal(error as Error));

  return {
    /** Resolves when the parts have started for the first time. */
    started: started.promise,
    /** Resolves when the host has converged for the first time. Soon after, its parts serve. */
    converged: converged.promise,
    /** `keepDataPlanes`: the host keeps serving, and the next agent continues its lease. */
    async stop(mode: ShutdownMode): Promise<void> {
      stopping.abort(new Error('the agent stops'));
      await ended;
      if (current) await endSession(parts, pool, current, mode, log);
      for (const { reject } of [started, converged]) reject(new Error('the agent has stopped'));
      await pool.end();
    },
  };
}

export type Agent = Awaited<ReturnType<typeof startAgent>>;

interface Acquired extends store.Acquired {
  host: Incarnation;
  /** Seconds of `now` at the start of the request. */
  acquiredAt: number;
}

/** Null: stopping. @throws if another agent keeps the lease, or another host has the address */
async function takeLease(options: AgentOptions, pool: pg.Pool, stopping: AbortSignal): Promise<Acquired | null> {
  const { region, name, address, log, now = uptime } = options;
  const { regionId, settings } = region;
  removeFile(`${leaseFileOf(options.dataDir)}.new`);
  const deadline = now() + settings.leaseSeconds + stopMarginSeconds + 5;
  while (!stopping.aborted) {
    const host = { regionId, name, incarnation: randomUUID() };
    const acquiredAt = now();
    try {
      const acquired = await store.acquireLease(pool, host, options, settings.leaseSeconds, reportOf(options, null));
      if (typeof acquired === 'string') throw new AddressTaken(address, regionId, acquired);
      if (acquired && stopping.aborted) return await endUnusedLease(pool, host, log);
      if (acquired) return { ...acquired, host, acquiredAt };
      if (now() > deadline) throw new NameTaken(name, regionId);
    } catch (error) {
      if (error instanceof NameTaken || error instanceof AddressTaken) throw error;
      log.warn({ err: error }, 'cannot take the lease of this host');
    }
    await sleep(retryMs, undefined, { signal: stopping }).catch(() => {});
  }
  return null;
}

/** The agent began to stop while it took the lease. It serves nothing. */
async function endUnusedLease(pool: pg.Pool, host: Incarnation, log: Logger): Promise<null> {
  await store.endLease(pool, host).catch((error: unknown) => log.warn({ err: error }, endsByItself));
  return null;
}

/** Another agent renews the lease of this name. */
class NameTaken extends Error {
  constructor(name: string, regionId: number) {
    super(
      `another agent is the host ${name} of region ${regionId}; stop it, or set CLOUDYARD_HOST_NAME to another name`,
    );
  }
}

/** The hosts would send the advertisements of addresses and the sessions of load balancers to themselves. */
class AddressTaken extends Error {
  constructor(address: string, regionId: number, other: string) {
    super(
      `host ${other} of region ${regionId} has the address ${address}; set CLOUDYARD_HOST_ADDRESS to the address of this ` +
        `host, or if ${other} does not return, run: cloudyard host forget ${regionId} ${other}`,
    );
  }
}

interface LeaseUse {
  pool: pg.Pool;
  acquired: Acquired;
  /** Aborts when the agent stops. */
  stopping: AbortSignal;
  /** The parts have started. */
  onStarted(): void;
  /** The host has converged. */
  onConverged(): void;
  /** The lease is being renewed. */
  onLease(lease: Lease): void;
}

/** Renews the lease, and serves until it is lost or the agent stops. */
async function runWithLease(
  options: AgentOptions,
  { pool, acquired, stopping, onStarted, onConverged, onLease }: LeaseUse,
): Promise<Lease> {
  const { db, region, parts, log, now } = options;
  const { host } = acquired;
  const updates = createUpdates();
  let readApplied: (() => AppliedStates) | null = null;
  const lease = startLease({
    ...{ pool, host, leaseSeconds: region.settings.leaseSeconds, acquiredAt: acquired.acquiredAt, log },
    file: leaseFileOf(options.dataDir),
    report: () => reportOf(options, readApplied?.() ?? null),
    now,
    async onRenewed({ state, revision }) {
      updates.set({ state, revision, view: await readView(db, region, host.name) });
    },
  });
  onLease(lease);
  // At once: what is being applied may hang.
  lease.lost.addEventListener('abort', () => void stopServing(parts, log));
  const signal = AbortSignal.any([lease.lost, stopping]);
  // While it drains it serves what it has not handed over.
  const isServing = acquired.converged && acquired.state !== 'drained';
  await runSession({
    ...{ ...options, host, lease, updates, parts, signal, isServing, onStarted, onConverged },
    ...{ isConverged: acquired.converged, leaseSeconds: region.settings.leaseSeconds },
    stopServing: () => stopServing(parts, log),
    reportApplied: (read) => void (readApplied = read),
  });
  return lease;
}

async function readView(db: Db, region: AgentOptions['region'], self: string): Promise<RegionView> {
  const rows = await hostsOfRegion(db, region.regionId);
  const hosts = rows.map(({ name, address, interface: device, state, leaseValid, converged }) => {
    return { name, address, interface: device, state, leaseValid, converged };
  });
  return { ...region, self, hosts };
}

function reportOf({ parts, version }: AgentOptions, applied: AppliedStates | null): HostReport {
  return {
    applied,
    drivers: parts.map((part) => ({ ...part.status(), kind: part.title })),
    heldGroups: parts.flatMap((part) => part.heldGroups?.() ?? []),
    version,
  };
}

/** Resolves when no part serves. A part that fails to stop is stopped again. */
async function stopServing(parts: HostPart[], log: Logger): Promise<void> {
  const stop = async (part: HostPart) => {
    for (let stopped = false; !stopped; ) {
      stopped = await part.stopServing().then(
        () => true,
        (error: unknown) => {
          log.fatal({ err: error, part: part.title }, 'cannot stop a part');
          return false;
        },
      );
      if (!stopped) await sleep(retryMs);
    }
  };
  await Promise.all(parts.map(stop));
}

async function endSession(
  parts: HostPart[],
  pool: pg.Pool,
  { lease, host }: { lease: Lease; host: Incarnation },
  mode: ShutdownMode,
  log: Logger,
): Promise<void> {
  const keepsServing = mode === 'keepDataPlanes' && !lease.lost.aborted;
  if (keepsServing) {
    const release = (part: HostPart) => part.release?.() ?? part.stopServing();
    for (const part of parts.toReversed()) {
      await release(part).catch((error: unknown) =>
        log.error({ err: error, part: part.title }, 'cannot release a part'),
      );
    }
  } else {
    await stopServing(parts, log);
  }
  await lease.stop(keepsServing);
  const end = keepsServing ? store.leaveLease : store.endLease;
  await end(pool, host).catch((error: unknown) => log.warn({ err: error }, endsByItself));
}
