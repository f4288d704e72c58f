import type { Driver } from './driver.ts';

export interface DesiredFileShare {
  id: string;
  /** GiB. A driver grows a share to this size; it never shrinks one. */
  sizeGib: number;
  /**
   * The size in GiB that an earlier `apply` is known to have completed; null: the share was never created. A share that was
   * created is never created again: if its data is missing, `apply` fails instead of serving an empty share.
   */
  settledGib: number | null;
  /** Whether root on a client is mapped to nobody. */
  rootSquash: boolean;
  /** Networks that can mount the share; empty: none. The most specific network that contains a client applies. */
  access: { network: string; mode: 'ro' | 'rw' }[];
  /** In a region of several hosts: where it is exported, from its creation on. */
  export?: ExportPlace;
}

interface ExportPlace {
  /** The address of its NFS group. */
  group: string;
  /** Unique in the group; part of the clients' file handles. */
  exportId: number;
}

export interface ObservedFileShare {
  /** `host:/path`, as clients mount it. */
  connectionPoint: string;
  sizeGib: number;
}

/** Space of the filesystem of a share, in bytes. */
export interface FileShareUsage {
  usedBytes: number;
  totalBytes: number;
}

export interface FileShareDriver extends Driver<DesiredFileShare, ObservedFileShare> {
  /** By id. Without shares whose usage is unknown: those that are simulated or do not have their own filesystem. */
  usage(): Promise<Map<string, FileShareUsage>>;
}
