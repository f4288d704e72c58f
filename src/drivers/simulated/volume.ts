/**
 * Volumes and snapshots that only pretend: the same answers as a real driver, kept in memory, no byte anywhere. After a
 * restart nothing is there, and `apply` makes it anew. Grows and never shrinks, as the real one.
 */
import { refuseAborted } from '../command.ts';
import type { VolumeDriver } from '../volume.ts';

const DETAIL = 'volumes are simulated: they can be managed but hold no data';

/** `detail` and `remedy` say why it only pretends, where that is known. */
export function createSimulatedVolumeDriver({
  detail,
  remedy = 'CLOUDYARD_VOLUME_DRIVER=auto',
}: {
  detail?: string;
  remedy?: string;
} = {}): VolumeDriver {
  const volumes = new Map<string, number>();
  const snapshots = new Set<string>();
  const parts = (kept: Map<string, number> | Set<string>) => ({
    real: false as const,
    list: async () => [...kept.keys()].sort(),
    async remove(id: string, signal: AbortSignal) {
      refuseAborted(signal);
      kept.delete(id);
    },
    async quarantine(id: string) {
      kept.delete(id);
    },
  });
  return {
    ...parts(volumes),
    name: 'simulated',
    status: () => ({
      driver: 'simulated',
      real: false,
      healthy: true,
      detail: detail ? `${DETAIL}; ${detail}` : DETAIL,
      remedy,
    }),
    start: async () => undefined,
    stop: async () => undefined,
    async apply({ id, sizeGib: wanted, revertTo }, signal) {
      refuseAborted(signal);
      const before = volumes.get(id);
      const sizeGib = Math.max(wanted, before ?? 0);
      volumes.set(id, sizeGib);
      const changed = before === undefined ? ['created'] : sizeGib > before ? [`grown to ${sizeGib} GiB`] : [];
      return { copying: false, sizeGib, changed: revertTo === null ? changed : [...changed, 'reverted'] };
    },
    snapshots: {
      ...parts(snapshots),
      async apply({ id }, signal) {
        refuseAborted(signal);
        const changed = snapshots.has(id) ? [] : ['created'];
        snapshots.add(id);
        return { copying: false, changed };
      },
    },
  };
}
