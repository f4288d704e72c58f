/**
 * Checks the services behind addresses. A service is down after two failed checks in a row, so that a program that restarts
 * at once moves nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { succeeds } from '../../platform/succeeds.ts';
import { within } from '../../platform/within.ts';
import type { Service } from './routers.ts';

export type Checks = Partial<Record<Service, () => Promise<void>>>;

const CHECK_MS = 500;
const CHECK_TIMEOUT_MS = 1_500;
const FAILURES = 2;

/** Checks until the process ends. A service without a check is always up. `onChange` must not throw. */
export function watchServices(checks: Checks, onChange: (service: Service, isUp: boolean) => void) {
  const down = new Set<Service>();

  const watch = async (service: Service, check: () => Promise<void>) => {
    for (let failures = 0; ; ) {
      const passed = await succeeds(within(CHECK_TIMEOUT_MS, check));
      failures = passed ? 0 : failures + 1;
      if (passed && down.delete(service)) onChange(service, true);
      if (failures >= FAILURES && !down.has(service)) {
        down.add(service);
        onChange(service, false);
      }
      await sleep(CHECK_MS, undefined, { ref: false });
    }
  };
  for (const [service, check] of Object.entries(checks)) void watch(service as Service, check);
  return {
    /** True until two checks have failed, so also before the first one. */
    isUp: (service: Service) => !down.has(service),
  };
}

export type Health = ReturnType<typeof watchServices>;
