/** Simulated volumes and snapshots: the results of a real driver, without any data. They grow and never shrink. */
import { refuseAborted } from '../command.ts';
import type { Simulation } from '../kind.ts';
import type { VolumeDriver } from '../volume.ts';
import { simulatedLifecycle, simulatedRemovals } from './lifecycle.ts';

export function createSimulatedVolumeDriver(why: Simulation = {}): VolumeDriver {
  const volumes = new Map<string, number>();
  const snapshots = new Set<string>();
  return {
    ...simulatedRemovals(volumes),
    ...simulatedLifecycle('simulated: volumes can be managed but hold no data', why),
    async apply({ id, sizeGib: wanted }, signal) {
      refuseAborted(signal);
      const sizeGib = Math.max(wanted, volumes.get(id) ?? 0);
      volumes.set(id, sizeGib);
      return { copying: false, sizeGib };
    },
    snapshots: {
      ...simulatedRemovals(snapshots),
      async apply({ id }, signal) {
        refuseAborted(signal);
        snapshots.add(id);
        return { copying: false };
      },
    },
  };
}
