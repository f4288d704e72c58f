/**
 * What a registry holds, kept up to date with every byte that passes the gate, and what it may hold.
 *
 * Invariant: the count is never less than what is on the disk, unless the disk was changed behind the gate. It may be
 * more: what was refused by distribution, stored before, or deleted since is found out by the next measurement, and
 * a registry is called full only after one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Layout } from '../layout.ts';
import { type Measured, measure, type Upload } from './measure.ts';
import type { Pass } from './passes.ts';

/** Bytes of an upload, and the requests that write to it now. */
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

export type Account = ReturnType<typeof createAccount>;

export const limits = {
  /** Uploads of a registry that were begun and not finished. */
  uploads: 200,
  /** Manifests of a registry that arrive at once; others wait. */
  manifests: 10,
  /** Repositories, links and tags of a registry: enough for one of 1000 GiB, and a bound for inodes. */
  objects: 100_000,
};
const measureEveryMs = 2000;

export function createAccount(layout: Layout, prefix: string, most = limits) {
  const uploads = new Map<string, OpenUpload>();
  let [stored, objects, uploading] = [0, 0, 0];
  /** Uploads that distribution is asked to begin. */
  let opening = 0;
  /** Bytes of manifests that are on their way: distribution writes them down when they are whole. */
  let arriving = 0;
  let manifests = 0;
  let lastUsed = Date.now();
  /** What was added since the last measurement began. */
  let added = { bytes: 0, objects: 0 };
  let [limit, limitAt] = [0, 0];
  let measuredAt: number | null = null;
  let measuring: Promise<void> | null = null;

  const used = () => stored + added.bytes + uploading + arriving;

  const resize = (upload: OpenUpload, bytes: number) => {
    uploading += bytes - upload.bytes;
    upload.bytes = bytes;
  };

  const open = (id: string, repository: string): OpenUpload => {
    const known = uploads.get(id);
    if (known) return known;
    const opened = { repository, bytes: 0, writers: new Set<Writer>(), touchedAt: Date.now() };
    uploads.set(id, opened);
    return opened;
  };

  const close = (id: string) => {
    uploading -= uploads.get(id)?.bytes ?? 0;
    uploads.delete(id);
  };

  const putMeasured = (found: Measured, since: number) => {
    for (const [id, { writers, touchedAt }] of uploads) {
      if (!found.uploads.has(id) && writers.size === 0 && touchedAt < since) close(id);
    }
    for (const [id, { repository, bytes }] of found.uploads) {
      const upload = open(id, repository);
      // The count of one that is being written to is ahead of the disk.
      const isBusy = upload.writers.size > 0 || upload.touchedAt >= since;
      resize(upload, isBusy ? Math.max(bytes, upload.bytes) : bytes);
    }
    [stored, objects] = [found.bytes, found.objects];
  };

  const measureNow = async (): Promise<void> => {
    const since = Date.now();
    const before = added;
    added = { bytes: 0, objects: 0 };
    try {
      putMeasured(await measure(layout, prefix), since);
      measuredAt = Date.now();
    } catch (error) {
      added = { bytes: added.bytes + before.bytes, objects: added.objects + before.objects };
      throw error;
    }
  };

  /** One measurement at a time, with a pause between two: a registry that stays full may be asked for all the time. */
  const remeasure = (): Promise<void> => {
    const pause = measuredAt === null ? 0 : Math.max(0, measuredAt + measureEveryMs - Date.now());
    measuring ??= sleep(pause)
      .then(measureNow)
      .finally(() => (measuring = null));
    return measuring;
  };

  /** Counts bytes before they are written. False when the registry has no room for them as far as it is known. */
  const takeNow = (upload: string | null, repository: string, bytes: number): boolean => {
    if (used() + bytes > limit) return false;
    if (upload === null) arriving += bytes;
    else {
      const opened = open(upload, repository);
      opened.touchedAt = Date.now();
      resize(opened, opened.bytes + bytes);
    }
    return true;
  };

  return {
    prefix,
    uploads,
    used,
    limit: () => limit,

    /** Resolves when the registry was measured, with the limit of the newest token that was seen. */
    async ready(pass: Pass | null): Promise<void> {
      lastUsed = Date.now();
      if (pass && pass.issuedAt >= limitAt) [limit, limitAt] = [pass.limit, pass.issuedAt];
      if (measuredAt === null) await remeasure();
    },

    takeNow,

    /** Counts bytes before they are written. Resolves with false when the registry has no room for them. */
    async take(upload: string | null, repository: string, bytes: number): Promise<boolean> {
      if (takeNow(upload, repository, bytes)) return true;
      await remeasure();
      return takeNow(upload, repository, bytes);
    },

    /**
     * Why nothing can be added to the registry, whatever its size; null: it can. With `opens` it keeps a place for an
     * upload that is about to begin, until `opened`.
     */
    async crowded(opens: boolean): Promise<'uploads' | 'objects' | null> {
      const reason = () => {
        if (uploads.size + opening >= most.uploads) return 'uploads';
        return objects + added.objects >= most.objects ? 'objects' : null;
      };
      if (reason()) await remeasure();
      const found = reason();
      if (!found && opens) opening += 1;
      return found;
    },

    /** Waits for its turn: distribution holds each manifest in memory until it is whole. */
    async manifestBegins(): Promise<void> {
      while (manifests >= most.manifests) await sleep(50);
      manifests += 1;
    },

    /** `bytes`: what was taken for it. */
    manifestEnds(bytes: number, isStored: boolean): void {
      manifests -= 1;
      arriving -= bytes;
      if (isStored) added = { bytes: added.bytes + bytes, objects: added.objects + 2 };
    },

    /** The upload has begun, or will not. */
    opened(): void {
      opening -= 1;
    },

    /** Counts what came without bytes of its own: links, tags, and a blob that was mounted. */
    add(more: { bytes: number; objects: number }): void {
      added = { bytes: added.bytes + more.bytes, objects: added.objects + more.objects };
    },

    open,
    close,
    resize,

    /** The upload became a blob. */
    finish(id: string): void {
      added = { bytes: added.bytes + (uploads.get(id)?.bytes ?? 0), objects: added.objects + 1 };
      close(id);
    },

    /** Nothing would be lost without it: the next request measures the registry again. */
    isIdle: (idleMs: number) => uploads.size === 0 && opening + manifests === 0 && lastUsed < Date.now() - idleMs,

    /** Bytes of uploads that nothing was written to for so long. */
    idleBytes(idleMs: number): number {
      const before = Date.now() - idleMs;
      return [...uploads.values()]
        .filter(({ writers, touchedAt }) => writers.size === 0 && touchedAt < before)
        .reduce((sum, { bytes }) => sum + bytes, 0);
    },
  };
}
