/** Injects the faults that clients of development mode request into the operations of a driver. */
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseAborted } from './command.ts';
import { DriverError } from './driver.ts';

export const faultyOperations = ['apply', 'remove'] as const;
type FaultyOperation = (typeof faultyOperations)[number];
export const faultModes = ['fail', 'stall', 'slow'] as const;
type FaultMode = (typeof faultModes)[number];

interface Fault {
  mode: FaultMode;
  seconds: number | null;
  message: string | null;
  /** Whether a client has cleared it. */
  cleared(): Promise<boolean>;
}

/** Returns the next fault for an operation, or null. Each fault is returned `count` times. */
type TakeFault = (resource: string, operation: FaultyOperation) => Promise<Fault | null>;

const slowSeconds = 5;
const pollMs = 100;

/** Returns the same driver, whose operations fail as requested. */
export function withFaults<D extends object>(driver: D, resource: string, take: TakeFault): D {
  return new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      const operation = faultyOperations.find((one) => one === name);
      if (!operation || typeof value !== 'function') return value;
      return async (subject: unknown, signal: AbortSignal) => {
        const fault = await take(resource, operation);
        if (fault) await inject(fault, signal);
        return value.call(target, subject, signal) as unknown;
      };
    },
  });
}

/** @throws DriverError if the operation must fail or is aborted */
async function inject(fault: Fault, signal: AbortSignal): Promise<void> {
  if (fault.mode === 'fail') {
    const customerMessage = fault.message ?? 'failed by an injected fault (development mode)';
    throw new DriverError('injected fault', { customerMessage, retryable: false });
  }
  const seconds = fault.seconds ?? (fault.mode === 'slow' ? slowSeconds : Number.POSITIVE_INFINITY);
  const until = performance.now() + seconds * 1000;
  for (let left = seconds * 1000; left > 0; left = until - performance.now()) {
    await sleep(Math.min(left, pollMs), undefined, { signal }).catch(() => {});
    refuseAborted(signal);
    if (await fault.cleared()) return;
  }
}
