/** Shows in the status of a driver that its host lacks space, memory or descriptors, until an operation succeeds again. */
import type { DriverStatus } from '../platform/driver-status.ts';
import { DriverError } from './driver.ts';

interface Watched {
  status(): DriverStatus;
}

/** Returns the same driver. Operations that fail for another reason leave the status unchanged. */
export function withShortages<D extends Watched>(driver: D): D {
  let shortage: string | null = null;
  const status = () => {
    const own = driver.status();
    return shortage === null ? own : { ...own, healthy: false, detail: `${own.detail}; ${shortage}` };
  };
  return new Proxy(driver, {
    get(target, name) {
      if (name === 'status') return status;
      const value = Reflect.get(target, name) as unknown;
      if (name !== 'apply' || typeof value !== 'function') return value;
      return async (...subject: unknown[]) => {
        try {
          const observed: unknown = await value.apply(target, subject);
          shortage = null;
          return observed;
        } catch (error) {
          if (error instanceof DriverError && error.shortage) shortage = error.message;
          throw error;
        }
      };
    },
  });
}
