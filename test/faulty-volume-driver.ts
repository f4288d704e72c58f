import { DriverError } from '../src/drivers/driver.ts';
import { createSimulatedVolumeDriver } from '../src/drivers/simulated/volume.ts';

/** A simulated volume driver, and the volumes whose snapshots fail or never end. All others succeed. */
export function createFaultyVolumeDriver() {
  const faults = new Map<string, 'fail' | 'hang'>();
  const driver = createSimulatedVolumeDriver();
  const apply = driver.snapshots.apply;
  driver.snapshots.apply = async (desired, signal) => {
    const fault = faults.get(desired.volumeId);
    if (fault === 'hang') return { copying: true };
    if (fault === 'fail') {
      throw new DriverError('broken', { customerMessage: 'The disk is broken.', retryable: false });
    }
    return apply(desired, signal);
  };
  return { driver, faults };
}
