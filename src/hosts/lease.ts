/**
 * The lease of an agent: renewed in the database, and limited by the monotonic clock of this host.
 *
 * Invariant: the lease is lost here before the database lets it end, because its end is counted from the start of the last
 * successful renewal. Only intervals are measured, so the clocks of the host and of the database may differ.
 *
 * Failure modes: a renewal that fails or hangs is retried until the lease ends. The clock counts while the machine is
 * suspended, so a process that was stopped notices at once that its lease has ended. If the file cannot be written for the time
 * of a lease, for example on a disk that became read-only, the lease is given up.
 */
import { rmSync } from 'node:fs';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { writeDeadline } from '../platform/deadline-file.ts';
import type { Logger } from '../platform/log.ts';
import { type Incarnation, type Renewed, renewLease } from './agent-store.ts';
import type { HostReport } from './table.ts';

interface LeaseOptions {
  pool: pg.Pool;
  host: Incarnation;
  leaseSeconds: number;
  /** Seconds of `now` at the start of the request that acquired it. */
  acquiredAt: number;
  /** Where others on this host read until when it may hold addresses (part.ts). */
  file: string;
  report(): HostReport;
  /** Renewals do not wait for it. Calls do not overlap: a renewal during one is reported with the next. */
  onRenewed(renewed: Renewed): Promise<void>;
  log: Logger;
  /** Seconds of a clock that never jumps; default: since the start of the machine. */
  now?: () => number;
}

const watchMs = 100;
const mostRenewMs = 1000;

/** How often a lease is renewed, and how long a statement may take. */
export const renewMsOf = (leaseSeconds: number) => Math.min(mostRenewMs, (leaseSeconds * 1000) / 4);

/** Renews an acquired lease until it is lost or `stop`. It writes its file only after `allowAddresses(true)`. */
export function startLease(options: LeaseOptions) {
  const { pool, host, leaseSeconds, file, report, onRenewed, log, now = uptime } = options;
  const lost = new AbortController();
  const over = new AbortController();
  let wake = new AbortController();
  let until = options.acquiredAt + leaseSeconds;
  let mayHold = false;
  /** Since when the file cannot be written. The host loses its addresses, so it must not count as serving. */
  let unwrittenSince: number | null = null;
  let reporting: Promise<void> | null = null;

  const discardFile = () => {
    try {
      removeFile(file);
    } catch (error) {
      // Its time passes.
      log.error({ err: error, file }, 'cannot remove the file of a lease that ended');
    }
  };
  const lose = (why: string) => {
    if (lost.signal.aborted) return;
    discardFile();
    log.error({ host: host.name, why }, 'the lease of this host is lost');
    lost.abort(new Error(why));
    over.abort();
    clearInterval(watch);
  };
  const writeFile = () => {
    if (lost.signal.aborted) return;
    if (mayHold) writeDeadline(file, until.toFixed(2));
    else removeFile(file);
  };
  const refreshFile = () => {
    try {
      writeFile();
      unwrittenSince = null;
    } catch (error) {
      if (unwrittenSince === null)
        log.error({ err: error, file }, 'cannot write until when this host may hold addresses');
      unwrittenSince ??= now();
      if (now() - unwrittenSince >= leaseSeconds) lose('its file cannot be written');
    }
  };
  const watch = setInterval(() => now() >= until && lose('it was not renewed in time'), watchMs);

  const renewOnce = async () => {
    const startedAt = now();
    const renewed = await renewLease(pool, host, leaseSeconds, report());
    if (over.signal.aborted) return;
    if (!renewed) return lose('it ended or another agent has it');
    // The process may have been stopped since; the watch has not noticed yet.
    if (now() >= until) return lose('it was not renewed in time');
    until = startedAt + leaseSeconds;
    refreshFile();
    if (over.signal.aborted) return;
    reporting ??= reportRenewed(renewed).finally(() => (reporting = null));
  };
  const reportRenewed = (renewed: Renewed) =>
    onRenewed(renewed).catch((error: unknown) => log.warn({ err: error }, 'cannot read the hosts of the region'));
  const run = async () => {
    const pause = renewMsOf(leaseSeconds);
    while (!over.signal.aborted) {
      await renewOnce().catch((error: unknown) => log.warn({ err: error }, 'cannot renew the lease'));
      await sleep(pause, undefined, { signal: AbortSignal.any([over.signal, wake.signal]) }).catch(() => {});
      if (wake.signal.aborted) wake = new AbortController();
    }
  };
  const ended = run();
  return {
    lost: lost.signal,
    /** Whether this host may hold addresses while the lease is valid. */
    allowAddresses(allowed: boolean): void {
      mayHold = allowed;
      writeFile();
    },
    /** Renews it now, and again periodically. */
    renew: () => wake.abort(),
    /** Stops renewing it. The file stays if `keepFile`: the next agent of this host continues the lease. */
    async stop(keepFile: boolean): Promise<void> {
      over.abort();
      clearInterval(watch);
      if (!keepFile) discardFile();
      await ended;
      await reporting;
    },
  };
}

export type Lease = ReturnType<typeof startLease>;

/** The file need not exist. */
export function removeFile(file: string): void {
  rmSync(file, { force: true });
}
