/** Faults that a client of development mode asked for, in the place of what a driver would do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseAborted } from './command.ts';
import { DriverError } from './driver.ts';

export const faultyOperations = ['apply', 'remove'] as const;
export type FaultyOperation = (typeof faultyOperations)[number];
export const faultModes = ['fail', 'stall', 'slow'] as const;
export type FaultMode = (typeof faultModes)[number];

export interface Fault {
  mode: FaultMode;
  seconds: number | null;
  message: string | null;
  /** Whether nobody wants it any more. */
  cleared(): Promise<boolean>;
}

/** The next fault for an operation, if there is one; each is given out as often as it was asked for. */
export type TakeFault = (resource: string, operation: FaultyOperation) => Promise<Fault | null>;

const slowSeconds = 5;
const lookMs = 100;

/** The same driver, whose operations may fail. `parts` are drivers within it, by the resource that each is of. */
export function withFaults<D extends object>(
  driver: D,
  resource: string,
  take: TakeFault,
  parts: { [Name in keyof D]?: string } = {},
): D {
  const wrapped = new Map(
    Object.entries(parts).map(([name, part]) => [
      name,
      withFaults(Reflect.get(driver, name) as object, part as string, take),
    ]),
  );
  return new Proxy(driver, {
    get(target, name) {
      if (wrapped.has(name as string)) return wrapped.get(name as string);
      const value = Reflect.get(target, name) as unknown;
      const operation = faultyOperations.find((one) => one === name);
      if (!operation || typeof value !== 'function') return value;
      return async (subject: unknown, signal: AbortSignal) => {
        const fault = await take(resource, operation);
        if (fault) await suffer(fault, signal);
        return value.call(target, subject, signal) as unknown;
      };
    },
  });
}

/** @throws DriverError when the operation is to fail, or was aborted meanwhile */
async function suffer(fault: Fault, signal: AbortSignal): Promise<void> {
  if (fault.mode === 'fail') {
    const customerMessage = fault.message ?? 'It failed because a fault of development mode wanted it so.';
    throw new DriverError('a fault of development mode', { customerMessage, retryable: false });
  }
  const seconds = fault.seconds ?? (fault.mode === 'slow' ? slowSeconds : Number.POSITIVE_INFINITY);
  const until = performance.now() + seconds * 1000;
  for (let left = seconds * 1000; left > 0; left = until - performance.now()) {
    await sleep(Math.min(left, lookMs), undefined, { signal }).catch(() => {});
    refuseAborted(signal);
    if (await fault.cleared()) return;
  }
}
