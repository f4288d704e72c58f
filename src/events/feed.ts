/**
 * The changes of all resources, as this process receives them. PostgreSQL delivers notifications to all listeners in the
 * order of the commits, so all processes number events alike: the transaction, and a count within it.
 *
 * Changes are announced only while a process holds the lease (feed-lease.ts). The process that takes a free lease
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
import { createFeedLease, type FeedConnection } from './feed-lease.ts';
import { createRing } from './ring.ts';
import type { Change, ResourceEvent } from './source.ts';
import { channel } from './triggers.ts';

const connectMs = 3000;
/** About 5 MB. */
const capacity = 10_000;

export type Feed = ReturnType<typeof createFeed>;

export function createFeed({ listener, log }: { listener: Listener; log: Logger }) {
  const ring = createRing(capacity);
  const changed = new Set<() => void>();
  let connection: FeedConnection | null = null;
  let connecting = Promise.withResolvers<void>();
  let isInUse = () => false;
  let transaction = { id: '', count: 0 };

  const restart = (id: string) => {
    ring.restart(id);
    for (const call of changed) call();
  };

  const lease = createFeedLease({ lastId: ring.lastId, restart, isInUse: () => isInUse(), log });

  const onNotification = (payload: string) => {
    if (payload.startsWith('start ')) {
      const id = payload.slice('start '.length);
      restart(id);
      lease.onStart(id);
      return;
    }
    const of = payload.slice(0, payload.indexOf(' '));
    transaction = of === transaction.id ? { id: of, count: transaction.count + 1 } : { id: of, count: 0 };
    const event = parseEvent(payload, transaction.count);
    ring.push({ event, text: `id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n` });
    for (const call of changed) call();
  };

  const onConnected = async (client: pg.ClientBase, lost: AbortSignal) => {
    const over = new Promise<void>((resolve) => lost.addEventListener('abort', () => resolve(), { once: true }));
    if (lost.aborted) return;
    if (isInUse()) await lease.take({ client, lost });
    restart(randomUUID());
    connection = { client, lost };
    connecting.resolve();
    await over;
    connection = null;
    lease.drop();
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
      lease.use();
      if (!connection) await Promise.race([connecting.promise, sleep(connectMs, undefined, { ref: false })]);
      if (!connection) return false;
      return succeeds(lease.hold(connection));
    },
  };
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
