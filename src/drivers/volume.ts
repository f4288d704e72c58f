import type { Driver } from './driver.ts';

/** The desired state of one volume. */
export interface DesiredVolume {
  id: string;
  /** The owner: copies of many clients take turns. */
  clientId: number;
  /** GiB. A driver grows a volume to this size; it never shrinks one. */
  sizeGib: number;
  /**
   * The size in GiB that an earlier `apply` is known to have completed; null: the volume was never created. A volume that
   * was created is never created again: if its data is missing, `apply` fails instead of creating an empty volume.
   */
  settledGib: number | null;
  /** The snapshot that a new volume is created from; null: it starts empty. */
  source: string | null;
  /** The snapshot to revert to. A revert may run twice if its completion was not recorded. */
  revertTo: string | null;
}

export interface DesiredSnapshot {
  id: string;
  /** The owner, as above. */
  clientId: number;
  volumeId: string;
  /** Whether it is known to have been created. Then it is never created again from the volume's current content. */
  settled: boolean;
}

/**
 * The result of `apply`. A copy may take hours, and waiting for it would occupy a job slot. So `apply` resolves with
 * `copying: true` while the copy is in progress; call it again until it is false.
 */
type Observed<Fact> = { copying: true; progress?: Progress | null } | ({ copying: false } & Fact);

/** How much of a copy is done. Holes of an image do not count. */
export interface Progress {
  doneBytes: number;
  totalBytes: number;
}

/** `sizeGib`: the size in GiB. */
export type ObservedVolume = Observed<{ sizeGib: number }>;
export type ObservedSnapshot = Observed<object>;

type Parts<D extends { id: string }, O> = Pick<Driver<D, O>, 'real' | 'apply' | 'remove' | 'list' | 'quarantine'>;

/** Snapshots are stored beside their volumes: one driver starts and stops both. */
export interface VolumeDriver extends Driver<DesiredVolume, ObservedVolume> {
  readonly snapshots: SnapshotDriver;
}

/** Snapshots are independent: changes to the volume or the removal of another snapshot do not affect one. */
export type SnapshotDriver = Parts<DesiredSnapshot, ObservedSnapshot>;
