/** Pure: the desired state of a volume on its host, from its row. */
import type { DesiredVolume } from '../../drivers/volume.ts';
import type { VolumeRow } from './store.ts';

export function desiredVolume(volume: VolumeRow): DesiredVolume {
  return {
    id: volume.id,
    clientId: volume.clientId,
    sizeGib: volume.size,
    settledGib: volume.observedReal ? volume.observedSize : null,
    // The snapshot is certain to exist only until the volume does. A volume that only a simulated host had is created empty.
    source: volume.observedSize === null ? volume.sourceSnapshotId : null,
    revertTo: volume.revertTo,
  };
}
