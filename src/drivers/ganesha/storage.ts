import { DriverError } from '../driver.ts';
import type { FileShareUsage } from '../file-share.ts';

/** Stores the files of shares on this host. `images.ts` enforces the size, `directories.ts` does not. */
export interface ShareStorage {
  /** Ids of all shares with data on this host. */
  list(): Promise<string[]>;
  /** The exported folder, as Ganesha sees it. */
  path(id: string): string;
  /** Keeps the loop device of a share: with another one, the file handles of its clients become stale. */
  reserve(id: string, device: number): void;
  deviceOf(id: string): number | null;
  /**
   * Creates the storage or grows it to this size, makes it available at `path`, and returns whether it changed something.
   * `settledGib` is the size that an earlier call completed. Then data exists, and if it is missing, the call fails: a folder
   * full of files must not silently become an empty one.
   */
  ensure(id: string, size: { gib: number; settledGib: number | undefined }, signal?: AbortSignal): Promise<boolean>;
  /** Runs at the start, before anything else: removes unfinished files that a crash left behind. */
  prepare(): Promise<void>;
  /** Deletes the data, or moves it to quarantine. The share must not be exported any more. */
  remove(id: string, options: { quarantine: boolean }): Promise<void>;
  /** By id, of the mounted shares with their own filesystem. */
  usage(): Promise<Map<string, FileShareUsage>>;
  /** Unmounts everything and keeps the data. */
  close(): Promise<void>;
}

/** A permanent error: a share that was created is never created again, empty. */
export function dataMissing(id: string, path: string): DriverError {
  return new DriverError(`the data of ${id} is missing: ${path} does not exist`, {
    customerMessage: 'the data of this share is missing on the storage host; ask the operator',
    retryable: false,
  });
}
