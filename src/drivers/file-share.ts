import type { Driver } from './driver.ts';

/** Everything that a host must know of one file share. */
export interface DesiredFileShare {
  id: string;
  /** GiB. A driver grows a share to this size; it never shrinks one. */
  sizeGib: number;
  /**
   * GiB that the share is known to have been given before; null: it was never made. What was made is never made anew:
   * when its data is not on this host, `apply` fails rather than put an empty share in its place.
   */
  settledGib: number | null;
  /** Whether root on a client becomes nobody. */
  rootSquash: boolean;
  /** Who may mount, and how; nobody when empty. The most specific network that contains a client decides. */
  access: { network: string; mode: 'ro' | 'rw' }[];
}

export interface ObservedFileShare {
  /** `host:/path`, what a client mounts. */
  connectionPoint: string;
  /** GiB, what the share now holds. */
  sizeGib: number;
  /** What this call changed, in words for the log; empty when everything was as desired. */
  changed: string[];
}

export type FileShareDriver = Driver<DesiredFileShare, ObservedFileShare>;
