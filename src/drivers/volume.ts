import type { Driver } from './driver.ts';

/** Everything that a host must know of one volume. */
export interface DesiredVolume {
  id: string;
  /** GiB. A driver grows a volume to this size; it never shrinks one. */
  sizeGib: number;
  /**
   * GiB that the volume is known to have had before; null: it was never made. What was made is never made anew: when its
   * data is not on this host, `apply` fails rather than put an empty volume in its place.
   */
  settledGib: number | null;
  /** The snapshot that a volume which is not there yet begins with; null: it begins empty. */
  source: string | null;
  /** The snapshot whose bytes are to take the place of the volume's. May happen again when nobody heard that it was done. */
  revertTo: string | null;
}

export interface DesiredSnapshot {
  id: string;
  volumeId: string;
  /** Whether it is known to have been made before: then it is never made anew from what the volume holds by now. */
  settled: boolean;
}

/**
 * What `apply` came to. Copying may take hours, and whoever waits for it holds a job's place: so `apply` also resolves
 * while the bytes are still being copied, and is to be called again until it says otherwise.
 */
export type Observed<Fact> = { copying: true } | ({ copying: false; changed: string[] } & Fact);

/** GiB that the volume now holds. */
export type ObservedVolume = Observed<{ sizeGib: number }>;
export type ObservedSnapshot = Observed<object>;

type Parts<D extends { id: string }, O> = Pick<Driver<D, O>, 'real' | 'apply' | 'remove' | 'list' | 'quarantine'>;

/** Snapshots lie where their volumes do: one driver has both, and starts and stops them together. */
export interface VolumeDriver extends Driver<DesiredVolume, ObservedVolume> {
  readonly snapshots: SnapshotDriver;
}

/** A snapshot is whole by itself: it outlives changes of its volume, and removing one disturbs no other. */
export type SnapshotDriver = Parts<DesiredSnapshot, ObservedSnapshot>;
