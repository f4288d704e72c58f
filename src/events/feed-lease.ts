/**
 * The lease while which changes are announced (triggers.ts). All processes share it: the one that takes a free lease
 * announces a start, and any process with an open stream renews it.
 *
 * Failure modes: transactions that began before the lease was taken may commit changes without an announcement. `take` waits
 * a moment for them; if some take longer, the feed restarts when they have ended.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from '../platform/log.ts';
import { channel, isLeased, leaseSequence } from './triggers.ts';

const leaseSeconds = 180;
const renewMs = 60_000;
/** How long the lease is renewed after the last use, so that a client that reconnects can resume. */
const keepMs = 300_000;
/** How long `take` waits for transactions that may have seen a free lease. */
const settleMs = 1000;
const settlePollMs = 10;

/** The connection that receives notifications. */
export interface FeedConnection {
  client: pg.ClientBase;
  lost: AbortSignal;
}

interface FeedLeaseOptions {
  /** The id of the last start or event that has arrived. */
  lastId(): string;
  /** Drops all events, under a new id. */
  restart(id: string): void;
  /** Whether a stream is open. */
  isInUse(): boolean;
  log: Logger;
}

export function createFeedLease({ lastId, restart, isInUse, log }: FeedLeaseOptions) {
  /** The lease of this process, or the attempt to take it. */
  let lease: Promise<void> | null = null;
  let usedAt = Number.NEGATIVE_INFINITY;
  let awaitedStart: { id: string; arrived: () => void } | null = null;

  /** Takes or renews the lease. Resolves when the start has arrived, if this process announced one. */
  const extend = async (on: pg.ClientBase) => {
    const { rows } = await on.query<{ start: string | null }>(
      `with was as materialized (select ${isLeased('clock_timestamp()')} as leased),
         taken as materialized (
           select leased, setval('${leaseSequence}', extract(epoch from clock_timestamp())::bigint + ${leaseSeconds}) from was)
       select case when leased then null else pg_current_xact_id()::text end as start,
         case when leased then null else pg_notify('${channel}', 'start ' || pg_current_xact_id()) end from taken`,
    );
    const { start } = rows[0]!;
    if (start === null || lastId() === start) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    awaitedStart = { id: start, arrived: resolve };
    await Promise.race([promise, sleep(settleMs, undefined, { ref: false })]);
  };

  const extendAndSettle = async (on: pg.ClientBase) => {
    await extend(on);
    const pending = await runningTransactions(on);
    const settled = untilEnded(on, pending);
    if (await Promise.race([settled, sleep(settleMs, false, { ref: false })])) return;
    // Streams do not wait for these transactions. When they have ended, the restart makes clients reload.
    void settled.then(
      () => restart(randomUUID()),
      () => {},
    );
  };

  /** Renews the lease while it is used. */
  const renew = async ({ client, lost }: FeedConnection) => {
    while (!lost.aborted) {
      await sleep(renewMs, undefined, { ref: false, signal: lost }).catch(() => {});
      if (lost.aborted) return;
      if (isInUse()) usedAt = performance.now();
      if (performance.now() - usedAt > keepMs) {
        lease = null;
        return;
      }
      await extend(client);
    }
  };

  /** Takes the lease and renews it. Rejects if it cannot be taken. */
  const take = (connection: FeedConnection): Promise<void> => {
    lease = extendAndSettle(connection.client);
    const failed = (error: unknown) => {
      lease = null;
      if (!connection.lost.aborted) log.warn({ err: error }, 'cannot renew the lease of events');
    };
    lease.then(() => renew(connection)).catch(failed);
    return lease;
  };

  return {
    take,
    /** The same, unless this process has the lease or is taking it. */
    hold: (connection: FeedConnection): Promise<void> => lease ?? take(connection),
    /** Keeps the lease for some minutes. */
    use(): void {
      usedAt = performance.now();
    },
    /** The connection is lost. */
    drop(): void {
      lease = null;
    },
    /** The start with this id has arrived. */
    onStart(id: string): void {
      if (awaitedStart?.id === id) awaitedStart.arrived();
    },
  };
}

/** The transactions of this database that have written something. */
async function runningTransactions(on: pg.ClientBase): Promise<string[]> {
  const { rows } = await on.query<{ xid: string }>(
    `select backend_xid::text as xid from pg_stat_activity
     where datname = current_database() and backend_xid is not null and pid <> pg_backend_pid()`,
  );
  return rows.map(({ xid }) => xid);
}

async function untilEnded(on: pg.ClientBase, pending: string[]): Promise<boolean> {
  for (let left = pending; left.length > 0; ) {
    await sleep(settlePollMs, undefined, { ref: false });
    const running = new Set(await runningTransactions(on));
    left = left.filter((xid) => running.has(xid));
  }
  return true;
}
