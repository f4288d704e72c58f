/** A part that serves the resources of a driver of one host (drivers/driver.ts) as they are published. */
import { DriverError } from '../errors/driver-error.ts';
import type { Driver } from '../drivers/driver.ts';
import { limited } from '../drivers/turns.ts';
import { observedError } from './observations.ts';
import type { HostPart, PublishedKind } from './part.ts';

interface DriverPartOptions<Desired extends { id: string }, D extends Driver<Desired, unknown>> {
  kind: PublishedKind;
  title: string;
  /** Makes and starts the driver. */
  open(): Promise<D>;
  concurrency?: number;
  readings?(driver: D): Promise<unknown>;
  /** Called periodically while the driver runs. Never rejects. */
  refresh?(driver: D): Promise<void>;
}

const defaultConcurrency = 32;
const refreshMs = 30_000;

/**
 * The driver serves on all addresses of the region, and another part moves the addresses, so `serve` and `drain` have nothing
 * to do.
 */
export function driverPart<Desired extends { id: string }, D extends Driver<Desired, unknown>>({
  kind,
  title,
  open,
  concurrency = defaultConcurrency,
  readings,
  refresh,
}: DriverPartOptions<Desired, D>): HostPart<Desired> {
  let opened: D | null = null;
  let timer: NodeJS.Timeout | undefined;
  const running = (): D => {
    if (!opened) throw new Error(`the driver of ${title} does not run`);
    return opened;
  };
  const end = async (how: 'stop' | 'release') => {
    clearInterval(timer);
    const driver = opened;
    if (driver) await (how === 'release' && driver.release ? driver.release() : driver.stop());
    opened = null;
  };
  return {
    ...{ kind, title, concurrency },
    ...(readings && { readings: () => readings(running()) }),
    async start() {
      if (opened) return;
      opened = await open();
      timer = setInterval(() => opened && void refresh?.(opened), refreshMs).unref();
    },
    converge: (states, signal) => converge(running(), states, concurrency, signal),
    async apply(id, state, signal) {
      await (state === null ? running().remove(id, signal) : running().apply(state, signal));
    },
    serve: async () => undefined,
    hostsChanged: async () => undefined,
    stopServing: () => end('stop'),
    release: () => end('release'),
    drain: async () => undefined,
    status: () =>
      opened?.status() ?? { driver: 'none', real: false, healthy: false, detail: 'the driver does not run' },
  };
}

/**
 * Removes resources that are not published, and applies the others. The errors of states are returned.
 * @throws if something that is not published any more would be served
 */
async function converge<Desired extends { id: string }>(
  driver: Driver<Desired, unknown>,
  states: ReadonlyMap<string, Desired>,
  concurrency: number,
  signal: AbortSignal,
): Promise<Map<string, DriverError>> {
  const failed = new Map<string, DriverError>();
  const turn = limited(concurrency);
  const attempt = async (id: string, state: Desired): Promise<DriverError | null> => {
    failed.delete(id);
    try {
      await driver.apply(state, signal);
      return null;
    } catch (error) {
      signal.throwIfAborted();
      const failure = asDriverError(error);
      failed.set(id, failure);
      return failure;
    }
  };
  const applyOne = async (id: string, state: Desired) => {
    const failure = await attempt(id, state);
    if (!failure) return;
    // What it served before may have been revoked.
    await driver.quarantine(id);
    // A permanent error may refuse a part of the state (LoadBalancerDriver); the rest is served.
    if (!failure.retryable) await attempt(id, state);
  };
  const present = await driver.list();
  const removals = present.filter((id) => !states.has(id)).map((id) => turn(() => driver.remove(id, signal)));
  const changes = [...states].map(([id, state]) => turn(() => applyOne(id, state)));
  for (const each of await Promise.allSettled([...removals, ...changes])) {
    if (each.status === 'rejected') throw each.reason;
  }
  return failed;
}

function asDriverError(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const { message, ...options } = observedError(error);
  return new DriverError(message, { ...options, cause: error });
}
