/**
 * The time in which this host holds a group: from the lock to the end of the server.
 *
 * Invariants: Ganesha runs only in a tenure. A tenure ends before its lock can expire, counted from the start of the last renewal
 * by the monotonic clock; whether the cluster is reachable does not matter for that.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../platform/log.ts';
import { joined } from '../../platform/turns.ts';
import { hostError } from '../command.ts';
import type { GroupAddresses } from './addresses.ts';
import type { GroupRecords } from './records.ts';
import type { GroupServer } from './server.ts';

export interface TenureOptions {
  /** The address of the group. */
  address: string;
  /** The name of this host. */
  host: string;
  /** Whether this host may hold groups at the moment. */
  mayServe(): boolean;
  records: GroupRecords;
  addresses: GroupAddresses;
  createServer(beforeStart: () => Promise<void>): GroupServer;
  /** Nothing of this host serves any more. */
  onEnd(): void;
  log: Logger;
}

export interface Ended {
  /** Resolves when other hosts know. */
  released: Promise<void>;
}

export interface Tenure {
  readonly server: GroupServer;
  /** Whether clients reach the server. */
  isServing: boolean;
  /** Stamps of the states that Ganesha has confirmed, by share. */
  served: Map<string, string>;
  /** The sizes that exports have shown at least, GiB, by share. */
  sizes: Map<string, number>;
  /** Stamps that Ganesha began with, of the shares that have not responded since and were not reloaded. */
  unconfirmed: Map<string, string>;
  /** Shares that responded since the last start. */
  healthy: Set<string>;
  hasEnded(): boolean;
  /** Rejects when the tenure ends, for work that would wait for the server. */
  readonly over: Promise<never>;
  /** @throws if the lock may have expired, or this host must not serve */
  requireValid(): void;
  /** @throws DriverError while a server that ended could not be started again, because earlier ones cannot be fenced */
  requireFencing(): Promise<void>;
  /** The group gets its address here; `end` removes it. @throws if the tenure has ended */
  addAddress(how: 'addLocally' | 'add'): Promise<void>;
  /** Writes the record of the server: the states that it may serve, and `sizes`. */
  record(stamps: ReadonlyMap<string, string>): Promise<void>;
  /** Runs until the end. */
  every(ms: number, work: () => Promise<void>): void;
  /** Resolves when nothing of this host serves. Needs no network. */
  end(why: string): Promise<Ended>;
}

/** How long the lock lasts without a renewal, and with it how long clients of a dead host wait before the takeover begins. */
const LOCK_SECONDS = 3;
const RENEW_EVERY_MS = 500;
/** How long before its lock expires a tenure ends by itself. */
const MARGIN_MS = 400;
const WATCH_EVERY_MS = 100;

/** Takes the lock. Null: another host has it. */
export async function beginTenure(options: TenureOptions): Promise<Tenure | null> {
  const { address, host, records, addresses, log } = options;
  const lock = groupLock(options, (ms) => tenure.server.mayServeFor(ms));
  const periodic = periodicWork(address, log);
  let ended: Promise<Ended> | null = null;
  /** What would otherwise add the address after its removal. */
  let adding: Promise<void> = Promise.resolve();
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => undefined);

  const stop = async (why: string): Promise<Ended> => {
    log.info({ nfsGroup: address, reason: why }, 'the group is given up');
    over.reject(hostError(`the group ${address} was given up: ${why}`, null));
    lock.abandon();
    periodic.stop();
    await tenure.server.kill();
    await adding.catch(() => undefined);
    await addresses.remove(address).catch((err: unknown) => log.error({ address, err }, 'cannot remove an address'));
    options.onEnd();
    return { released: lock.release() };
  };

  /** Before each start of Ganesha: when this resolves, the servers that ran before can do nothing. */
  const fence = async () => {
    tenure.requireValid();
    const earlier = [...(await records.servers(address)).keys()].filter((each) => each !== lock.cookie);
    await records.fence(address);
    await records.remove(address, earlier);
    tenure.requireValid();
  };

  const tenure: Tenure = {
    server: options.createServer(fence),
    ...{ isServing: false, served: new Map<string, string>(), unconfirmed: new Map<string, string>() },
    sizes: new Map<string, number>(),
    healthy: new Set<string>(),
    hasEnded: () => ended !== null,
    over: over.promise,
    requireValid() {
      if (!options.mayServe()) throw hostError('this host must not serve', null);
      if (ended || !lock.isValid()) throw hostError(`the lock of ${address} is lost`, null);
    },
    async addAddress(how) {
      tenure.requireValid();
      await (adding = addresses[how](address));
    },
    requireFencing: () => records.requireFencing(),
    record: (stamps) =>
      records.write(address, lock.cookie, {
        ...{ host, serving: tenure.isServing },
        shares: Object.fromEntries(stamps),
        sizes: Object.fromEntries([...tenure.sizes].filter(([id]) => stamps.has(id))),
      }),
    every: periodic.every,
    end: (why) => (ended ??= stop(why)),
  };

  if (!(await lock.renew())) return null;
  tenure.every(RENEW_EVERY_MS, async () => {
    if (!(await lock.renew())) await tenure.end('another host has the lock');
  });
  tenure.every(WATCH_EVERY_MS, async () => {
    if (!lock.isValid()) await tenure.end('the lock was not renewed in time');
  });
  return tenure;
}

/** `onRenewed`: called with the time until the lock expires. */
function groupLock({ address, host, records, log }: TenureOptions, onRenewed: (validForMs: number) => void) {
  const cookie = `${host}/${randomUUID()}`;
  /** By `performance.now()`. */
  let validUntil = 0;
  let isAbandoned = false;
  let lastRenewal: Promise<unknown> = Promise.resolve();
  return {
    /** Names this tenure in the lock and in the record. */
    cookie,
    /** Takes the lock, or renews it; false: another host has it. */
    async renew(): Promise<boolean> {
      const began = performance.now();
      const renewal = records.lock(address, cookie, { seconds: LOCK_SECONDS, host });
      lastRenewal = renewal;
      const isHeld = await renewal;
      if (isHeld && !isAbandoned) {
        const until = Math.max(validUntil, began + LOCK_SECONDS * 1000 - MARGIN_MS);
        // If it fails, Ganesha ends, so the tenure must end, too.
        onRenewed(until - performance.now());
        validUntil = until;
      }
      return isHeld;
    },
    /** Whether the lock cannot have expired, by the clock of this host. */
    isValid: () => performance.now() <= validUntil,
    /** The tenure ends: later renewals do not count. */
    abandon: () => void (isAbandoned = true),
    /** Also removes the record. What fails here, the next holder of the group does. */
    async release(): Promise<void> {
      try {
        await records.remove(address, [cookie]);
        // A renewal that the cluster gets after the release would take the lock again.
        await lastRenewal.catch(() => undefined);
        await records.unlock(address, cookie);
      } catch (err) {
        log.warn({ nfsGroup: address, err }, 'cannot release the group; its lock expires');
      }
    },
  };
}

/** Work that is repeated until `stop`. Runs of one piece of work do not overlap. */
function periodicWork(address: string, log: Logger) {
  const timers: NodeJS.Timeout[] = [];
  let isStopped = false;
  return {
    every(ms: number, work: () => Promise<void>): void {
      const run = joined(() =>
        work().catch((err: unknown) => log.warn({ nfsGroup: address, err }, 'periodic work of an NFS group failed')),
      );
      if (!isStopped) timers.push(setInterval(() => void run(), ms));
    },
    stop(): void {
      isStopped = true;
      for (const timer of timers) clearInterval(timer);
    },
  };
}
