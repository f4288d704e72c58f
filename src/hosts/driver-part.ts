/** A part that serves the resources of a driver of one host (drivers/driver.ts) as they are published. */
import type { DriverError } from '../errors/driver-error.ts';
import type { Driver } from '../drivers/driver.ts';
import { limited } from '../platform/turns.ts';
import { driverLifecycle } from './driver-lifecycle.ts';
import { asDriverError } from './observations.ts';
import type { HostPart, PublishedKind } from './part.ts';

interface DriverPartOptions<Desired extends { id: string }, D extends Driver<Desired, unknown>> {
  kind: PublishedKind;
  title: string;
  /** Makes and starts the driver. */
  open(): Promise<D>;
  readings?(driver: D): Promise<unknown>;
  /** Called periodically while the driver runs. Never rejects. */
  refresh?(driver: D): Promise<void>;
}

/** Of calls of the driver. */
const concurrency = 32;

export function driverPart<Desired extends { id: string }, D extends Driver<Desired, unknown>>(
  options: DriverPartOptions<Desired, D>,
): HostPart<Desired> {
  const { kind, title, readings } = options;
  const { running, lifecycle } = driverLifecycle(options);
  return {
    ...{ kind, title, concurrency },
    ...lifecycle,
    ...(readings && { readings: () => readings(running()) }),
    converge: (states, signal) => converge(running(), states, signal),
    async apply(id, state, signal) {
      await (state === null ? running().remove(id, signal) : running().apply(state, signal));
    },
  };
}

/**
 * Removes resources that are not published, and applies the others. The errors of states are returned.
 * @throws if something that is not published any more would be served
 */
async function converge<Desired extends { id: string }>(
  driver: Driver<Desired, unknown>,
  states: ReadonlyMap<string, Desired>,
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
