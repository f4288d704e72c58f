/**
 * An in-memory host of volumes that a test can inspect, block, fail and change. A volume's bytes are a text. Keeps the
 * invariants of every driver: idempotent, grows and never shrinks, never recreates lost data.
 */
import type { DesiredSnapshot, DesiredVolume, VolumeDriver } from '../src/drivers/volume.ts';
import { createSteering, type Steering, terminal } from './drivers.ts';

export interface VolumeCall {
  method: 'apply' | 'remove';
  kind: 'volume' | 'snapshot';
  id: string;
  desired?: DesiredVolume | DesiredSnapshot;
}

interface HeldVolume {
  sizeGib: number;
  bytes: string;
}

interface VolumeHost extends VolumeDriver, Steering<VolumeCall> {
  /** Data on the host and in quarantine. A test may add, remove and write. */
  readonly contents: {
    volumes: Map<string, HeldVolume>;
    snapshots: Map<string, HeldVolume>;
    aside: Map<string, HeldVolume>;
  };
  /** Number of further calls of `apply` that return while bytes are being copied. */
  stillCopying: number;
}

/** `real` makes the engine scan for drift, as on hosts whose volumes survive a restart. */
export function createVolumeHost({ real = false } = {}): VolumeHost {
  const contents: VolumeHost['contents'] = { volumes: new Map(), snapshots: new Map(), aside: new Map() };
  const steering = createSteering<VolumeCall>();
  const { volumes, snapshots } = contents;
  const parts = (kind: VolumeCall['kind'], kept: Map<string, HeldVolume>) => ({
    real,
    list: async () => [...kept.keys()],
    remove: (id: string, signal: AbortSignal) =>
      steering.call({ method: 'remove', kind, id }, signal, () => kept.delete(id)),
    async quarantine(id: string) {
      if (kept.has(id)) contents.aside.set(id, kept.get(id)!);
      kept.delete(id);
    },
  });
  const applyVolume = (desired: DesiredVolume) => {
    const before = volumes.get(desired.id);
    const from = desired.revertTo ?? (before ? null : desired.source);
    if (!before && desired.settledGib !== null && desired.revertTo === null) throw terminal('the data is gone');
    if (from !== null && !snapshots.has(from)) throw terminal('the snapshot is gone');
    const bytes = from === null ? (before?.bytes ?? '') : snapshots.get(from)!.bytes;
    volumes.set(desired.id, { bytes, sizeGib: Math.max(desired.sizeGib, before?.sizeGib ?? 0) });
  };
  const applySnapshot = ({ id, volumeId, settled }: DesiredSnapshot) => {
    if (snapshots.has(id)) return;
    if (settled || !volumes.has(volumeId)) throw terminal('the data is gone');
    snapshots.set(id, { ...volumes.get(volumeId)! });
  };
  const copying = () => host.stillCopying > 0 && host.stillCopying-- > 0;
  const host = {
    ...parts('volume', volumes),
    name: 'test',
    contents,
    stillCopying: 0,
    status: () => ({ driver: 'test', real, healthy: true, detail: 'a host in memory' }),
    start: async () => undefined,
    stop: async () => undefined,
    async apply(desired: DesiredVolume, signal: AbortSignal) {
      if (copying()) return { copying: true };
      await steering.call({ method: 'apply', kind: 'volume', id: desired.id, desired }, signal, () =>
        applyVolume(desired),
      );
      return { copying: false, sizeGib: volumes.get(desired.id)!.sizeGib };
    },
    snapshots: {
      ...parts('snapshot', snapshots),
      async apply(desired: DesiredSnapshot, signal: AbortSignal) {
        if (copying()) return { copying: true };
        await steering.call({ method: 'apply', kind: 'snapshot', id: desired.id, desired }, signal, () =>
          applySnapshot(desired),
        );
        return { copying: false };
      },
    },
  };
  return Object.defineProperties(host, Object.getOwnPropertyDescriptors(steering)) as unknown as VolumeHost;
}
