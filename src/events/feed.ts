/**
 * The changes of all resources, as this process receives them. PostgreSQL delivers notifications to all listeners in the
 * order of the commits, so all processes number events alike: the transaction, and a count within it.
 *
 * Changes are announced only while a process holds the lease (triggers.ts). The process that takes a free lease
 * announces a start, at which all processes drop their events, because there may be a gap before it.
 *
 * Invariant: between `open` and the next restart of the ring, every change that commits reaches the ring.
 * Failure modes: a lost connection, or a lease that was not renewed in time, restarts the ring.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Listener } from '../platform/listener.ts';
import type { Logger } from '../platform/log.ts';
import { succeeds } from '../platform/succeeds.ts';
import { createRing } from './ring.ts';
import type { Change, ResourceEvent } from './source.ts';
import { channel, isLeased, leaseSequence } from './triggers.ts';

const leaseSeconds = 180;
const renewMs = 60_000;
/** How long the lease is renewed after the last use, so that a client that reconnects can resume. */
const keepMs = 300_000;
/** How long `open` waits for transactions that may have seen a free lease. */
const settleMs = 1000;
const settlePollMs = 10;
const connectMs = 3000;
/** About 5 MB. */
const capacity = 10_000;

export type Feed = ReturnType<typeof createFeed>;

export function createFeed({ listener, log }: { listener: Listener; log: Logger }) {
  const ring = createRing(capacity);
  const changed = new Set<() => void>();
  let connection: { client: pg.ClientBase; lost: AbortSignal } | null = null;
  let connecting = Promise.withResolvers<void>();
  /** The lease of this process, or the attempt to take it. */
  let lease: Promise<void> | null = null;
  let usedAt = Number.NEGATIVE_INFINITY;
  let isInUse = () => false;
  let awaitedStart: { id: string; arrived: () => void } | null = null;
  let transaction = { id: '', count: 0 };

  const restart = (id: string) => {
    ring.restart(id);
    for (const call of changed) call();
  };

  const onNotification = (payload: string) => {
    if (payload.startsWith('start ')) {
      const id = payload.slice('start '.length);
      restart(id);
      if (awaitedStart?.id === id) awaitedStart.arrived();
      return;
    }
    const of = payload.slice(0, payload.indexOf(' '));
    transaction = of === transaction.id ? { id: of, count: transaction.count + 1 } : { id: of, count: 0 };
    const event = parseEvent(payload, transaction.count);
    ring.push({ event, text: `id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n` });
    for (const call of changed) call();
  };

  /** Takes or renews the lease. Resolves when the start has arrived, if this process announced one. */
  const extendLease = async (on: pg.ClientBase) => {
    const { rows } = await on.query<{ start: string | null }>(
      `with was as materialized (select ${isLeased('clock_timestamp()')} as leased),
         taken as materialized (
           select leased, setval('${leaseSequence}', extract(epoch from clock_timestamp())::bigint + ${leaseSeconds}) from was)
       select case when leased then null else pg_current_xact_id()::text end as start,
         case when leased then null else pg_notify('${channel}', 'start ' || pg_current_xact_id()) end from taken`,
    );
    const { start } = rows[0]!;
    if (start === null || ring.lastId() === start) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    awaitedStart = { id: start, arrived: resolve };
    await Promise.race([promise, sleep(settleMs, undefined, { ref: false })]);
  };

  const take = async (on: pg.ClientBase) => {
    await extendLease(on);
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
  const renew = async (on: pg.ClientBase, lost: AbortSignal) => {
    while (!lost.aborted) {
      await sleep(renewMs, undefined, { ref: false, signal: lost }).catch(() => {});
      if (lost.aborted) return;
      if (isInUse()) usedAt = performance.now();
      if (performance.now() - usedAt > keepMs) {
        lease = null;
        return;
      }
      await extendLease(on);
    }
  };

  const takeLease = ({ client, lost }: NonNullable<typeof connection>): Promise<void> => {
    lease = take(client);
    const failed = (error: unknown) => {
      lease = null;
      if (!lost.aborted) log.warn({ err: error }, 'cannot renew the lease of events');
    };
    lease.then(() => renew(client, lost)).catch(failed);
    return lease;
  };

  const onConnected = async (client: pg.ClientBase, lost: AbortSignal) => {
    const over = new Promise<void>((resolve) => lost.addEventListener('abort', () => resolve(), { once: true }));
    if (lost.aborted) return;
    if (isInUse()) await takeLease({ client, lost });
    restart(randomUUID());
    connection = { client, lost };
    connecting.resolve();
    await over;
    connection = null;
    lease = null;
    connecting = Promise.withResolvers();
  };

  let stop: (() => Promise<void>) | null = null;
  return {
    ring,
    /** Calls `onChange` after each new event and each restart. */
    watch(onChange: () => void): void {
      changed.add(onChange);
    },
    /** `isUsed`: whether a stream is open. */
    start(isUsed: () => boolean): void {
      isInUse = isUsed;
      stop ??= listener.follow(channel, { onNotification, onConnected });
    },
    async stop(): Promise<void> {
      await stop?.();
      stop = null;
    },
    /** Resolves when all later changes reach the ring; false if the database cannot be reached. */
    async open(): Promise<boolean> {
      usedAt = performance.now();
      if (!connection) await Promise.race([connecting.promise, sleep(connectMs, undefined, { ref: false })]);
      if (!connection) return false;
      return succeeds(lease ?? takeLease(connection));
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

function parseEvent(payload: string, count: number): ResourceEvent {
  const [transaction, ms, kind, change, client, project, region, task, ...id] = payload.split(' ');
  const number = (text: string | undefined) => (text === '-' ? null : Number(text));
  return {
    id: `${transaction}.${count}`,
    kind: kind!,
    resource_id: id.join(' '),
    change: change as Change,
    client_id: number(client),
    project_id: number(project),
    region_id: number(region),
    task_id: task === '-' ? null : task!,
    at: new Date(Number(ms)).toISOString(),
  };
}
