/** Shows in the status of a driver that its host lacks space, memory or descriptors, until an operation succeeds again. */
import { detailOf } from '../platform/driver-status.ts';
import { type Driver, DriverError } from './driver.ts';

/**
 * Returns the same driver. `apply` of the driver and of its snapshots is watched; an operation that fails for another reason
 * leaves the status unchanged.
 */
export function withShortages<D extends Pick<Driver<never, unknown>, 'status'>>(driver: D): D {
  let shortage: string | null = null;
  const status = () => {
    const own = driver.status();
    return shortage === null ? own : { ...own, healthy: false, detail: `${own.detail}; ${shortage}` };
  };
  const watch = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(target, name) {
        if (name === 'status') return status;
        const value = Reflect.get(target, name) as unknown;
        if (name === 'snapshots') return watch(value as object);
        if (name !== 'apply' || typeof value !== 'function') return value;
        return async (...subject: unknown[]) => {
          try {
            const observed: unknown = await value.apply(target, subject);
            shortage = null;
            return observed;
          } catch (error) {
            if (error instanceof DriverError && error.shortage) shortage = detailOf(error);
            throw error;
          }
        };
      },
    });
  return watch(driver);
}
