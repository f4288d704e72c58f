/** The unfinished uploads of a registry, and the sum of their bytes. */
import type { Measured, Upload } from './measure.ts';

/** An upload, and the requests that are writing to it. */
interface OpenUpload extends Upload {
  writers: Set<Writer>;
  touchedAt: number;
}

/** A request that sends bytes to an upload. */
export interface Writer {
  /** The body has arrived: distribution may finish the upload, and remove its folder, at any moment. */
  ended: boolean;
  abort(): void;
}

/** Bytes are counted before they are on the disk; `correct` applies a measurement. */
export function createOpenUploads() {
  const byId = new Map<string, OpenUpload>();
  let total = 0;

  const resize = (upload: OpenUpload, bytes: number) => {
    total += bytes - upload.bytes;
    upload.bytes = bytes;
  };

  const open = (id: string, repository: string): OpenUpload => {
    const known = byId.get(id);
    if (known) return known;
    const opened = { repository, bytes: 0, writers: new Set<Writer>(), touchedAt: performance.now() };
    byId.set(id, opened);
    return opened;
  };

  const close = (id: string) => {
    total -= byId.get(id)?.bytes ?? 0;
    byId.delete(id);
  };

  /** Applies a measurement of the disk that began at `since`. */
  const correct = (found: Measured['uploads'], since: number) => {
    for (const [id, { writers, touchedAt }] of byId) {
      if (!found.has(id) && writers.size === 0 && touchedAt < since) close(id);
    }
    for (const [id, { repository, bytes }] of found) {
      const upload = open(id, repository);
      // The count of an upload that is being written to is ahead of the disk.
      const isBusy = upload.writers.size > 0 || upload.touchedAt >= since;
      resize(upload, isBusy ? Math.max(bytes, upload.bytes) : bytes);
    }
  };

  /** Bytes of uploads that were not written to for `idleMs`. */
  const idleBytes = (idleMs: number): number => {
    const before = performance.now() - idleMs;
    return [...byId.values()]
      .filter(({ writers, touchedAt }) => writers.size === 0 && touchedAt < before)
      .reduce((sum, { bytes }) => sum + bytes, 0);
  };

  return { byId, bytes: () => total, open, close, resize, correct, idleBytes };
}
