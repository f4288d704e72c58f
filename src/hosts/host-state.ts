/** Follows the state of the host that the operator requests: serves or drains. */
import { uptime } from 'node:os';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import * as store from './agent-store.ts';
import type { Incarnation } from './agent-store.ts';
import type { Lease } from './lease.ts';
import type { HostPart, HostState } from './part.ts';

export interface HostStateFollowerOptions {
  db: Db;
  host: Incarnation;
  /** In the order in which they start. */
  parts: HostPart[];
  lease: Lease;
  leaseSeconds: number;
  log: Logger;
  /** All parts serve. */
  onServing(): void;
  /** See LeaseOptions. */
  now?: () => number;
}

/** A part has failed to serve for the time of a lease. The host must stop serving, so that others can serve. */
export class CannotServe extends Error {}

/** Does nothing before `set`. */
export function createHostStateFollower(options: HostStateFollowerOptions) {
  const { db, host, parts, lease, leaseSeconds, log, onServing, now = uptime } = options;
  let state: HostState | null = null;
  let current = new AbortController();
  let working: Promise<void> = Promise.resolve();
  let failing: { error: unknown; since: number } | null = null;

  const work = async (requested: HostState, signal: AbortSignal) => {
    if (signal.aborted) return;
    if (requested === 'active') {
      lease.allowAddresses(true);
      await serveAll(parts);
      failing = null;
      return onServing();
    }
    failing = null;
    for (const part of parts) await part.drain(signal);
    if (signal.aborted) return;
    lease.allowAddresses(false);
    if (requested === 'draining') await store.markDrained(db, host);
    log.info({ host: host.name }, 'this host is drained');
  };
  const start = (requested: HostState) => {
    state = requested;
    current.abort();
    current = new AbortController();
    const { signal } = current;
    working = working
      .then(() => work(requested, signal))
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.error({ err: error, state: requested }, 'cannot change the state of this host');
        if (requested === 'active') failing = { error, since: failing?.since ?? now() };
        // The next update tries again.
        state = null;
      });
  };
  return {
    /** A change ends what the one before began. One that failed is retried by the next call. */
    set(requested: HostState): void {
      // What drains becomes drained by itself.
      if (state === 'draining' && requested === 'drained') state = requested;
      if (state !== requested) start(requested);
    },
    /** @throws CannotServe if a part has not been able to serve for the time of a lease */
    throwIfFailing(): void {
      if (!failing || now() - failing.since < leaseSeconds) return;
      throw new CannotServe('a part of this host cannot serve', { cause: failing.error });
    },
    async stop(): Promise<void> {
      current.abort();
      await working;
    },
  };
}

export type HostStateFollower = ReturnType<typeof createHostStateFollower>;

/** A part that fails does not keep the others from serving. @throws the first error */
async function serveAll(parts: HostPart[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts) await part.serve().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}
