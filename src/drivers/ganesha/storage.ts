import { DriverError } from '../driver.ts';

/** Where the files of a share lie on this host. `images.ts` enforces the size, `directories.ts` cannot. */
export interface ShareStorage {
  /** Ids of all data on this host. */
  list(): Promise<string[]>;
  /** The folder that is exported, as Ganesha sees it. */
  path(id: string): string;
  /** The loop device that a share had before: it gets the same again, or clients' file handles go stale. */
  reserve(id: string, device: number): void;
  deviceOf(id: string): number | null;
  /**
   * Makes the storage exist, at least this large, and reachable at `path`; says what it changed. `settledGib` is the
   * size that an earlier call is known to have finished, if any: then data exists, and is never made anew when it is
   * gone. A folder full of files must not silently become an empty one.
   */
  ensure(id: string, size: { gib: number; settledGib: number | undefined }, signal?: AbortSignal): Promise<string[]>;
  /** Clears away what a crash left unfinished. */
  tidy(): Promise<void>;
  /** Deletes the data, or with `aside` moves it to quarantine. Nothing exports it any more. */
  remove(id: string, options: { aside: boolean }): Promise<void>;
  /** Lets go of everything, keeping the data. */
  close(): Promise<void>;
}

export function dataIsGone(id: string, path: string): DriverError {
  return new DriverError(`the data of ${id} is gone: there is no ${path}`, {
    customerMessage: 'The data of this share cannot be found on the storage host; the operator has to look at it.',
    retryable: false,
  });
}
