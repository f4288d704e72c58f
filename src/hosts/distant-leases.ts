/**
 * Ends leases that the clock of PostgreSQL would keep valid for longer than a lease lasts. It was set back since their last
 * renewal, for example by a failover to a host whose clock is behind. A live agent renews its lease within seconds; that of
 * a dead one would delay all changes, and the next agent of its host, until the clock reaches its end.
 *
 * Invariant: a lease is ended only when its host has stopped to serve: it was not renewed for the time of a lease and the
 * margin, by a clock that is never set.
 */
import { uptime } from 'node:os';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import { endDistantLease, type HostRow, stopMarginSeconds } from './store.ts';

export interface HostWatchOptions {
  db: Db;
  log: Logger;
  regionId: number;
  leaseSeconds: number;
  /** Seconds of a clock that never jumps; default: since the start of the machine. */
  now?: () => number;
}

type SeenLease = Pick<HostRow, 'name' | 'leaseUntil' | 'leaseSeconds'>;

const toleranceSeconds = 1;

/** Returns the check to call with the hosts, every few seconds. */
export function createDistantLeases({ db, log, regionId, leaseSeconds, now = uptime }: HostWatchOptions) {
  const lasts = leaseSeconds + toleranceSeconds;
  let seen = new Map<string, { until: number; since: number }>();
  return async (hosts: SeenLease[]): Promise<void> => {
    const distant = hosts.filter((host) => host.leaseSeconds > lasts);
    seen = new Map(
      distant.map(({ name, leaseUntil }) => {
        const before = seen.get(name);
        const until = leaseUntil.getTime();
        return [name, before?.until === until ? before : { until, since: now() }];
      }),
    );
    for (const [name, { since }] of seen) {
      if (now() - since < leaseSeconds + stopMarginSeconds) continue;
      if (!(await endDistantLease(db, regionId, name, lasts))) continue;
      log.warn(
        { host: name, regionId },
        'ended a lease that was not renewed since the clock of PostgreSQL was set back',
      );
    }
  };
}
