/** Pure: what a host should have, given the row. */
import type { DesiredVolume } from '../../drivers/volume.ts';
import type { VolumeRow } from './store.ts';

export function desiredVolume(volume: VolumeRow): DesiredVolume {
  return {
    id: volume.id,
    sizeGib: volume.size,
    settledGib: volume.observedReal ? volume.observedSize : null,
    // The snapshot is there only until the volume is: what a simulated host had becomes real, and empty.
    source: volume.observedSize === null ? volume.sourceSnapshotId : null,
    revertTo: volume.revertTo,
  };
}
