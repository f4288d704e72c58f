/**
 * The storage account of a registry: its limit, and the bytes and objects that it contains, updated with every byte that
 * passes the gate.
 *
 * Invariant: the count is never less than the size on the disk, unless the disk is changed without the gate. (With gates on
 * several hosts each learns what others have added from its next measurement, which each push starts.) It may be
 * more: it includes bytes that distribution refused, had stored before, or has deleted. The next measurement corrects it,
 * and a registry is full only after a measurement.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { joined } from '../../../platform/turns.ts';
import type { Layout } from '../layout.ts';
import { measure } from './measure.ts';
import { createOpenUploads } from './open-uploads.ts';
import { type Grant, leeway } from './grants.ts';

export type Account = ReturnType<typeof createAccount>;

export const limits = {
  /** Unfinished uploads of a registry. */
  uploads: 200,
  /** Manifests of a registry that are received concurrently; others wait. */
  manifests: 10,
  /** Repositories, links and tags of a registry: enough for a registry of 1000 GiB, and a bound on inodes. */
  objects: 100_000,
  /** Time between the end of a measurement and the next one. */
  measureEveryMs: 2000,
  /** The maximum age of a measurement if other gates serve the registry, too. Until the next one, their pushes may exceed the limit. */
  shareMs: 15_000,
};

/** `isShared`: gates of other hosts add to the registry, too. */
export function createAccount(layout: Layout, prefix: string, most = limits, isShared = false) {
  const uploads = createOpenUploads();
  let [stored, objects] = [0, 0];
  /** Uploads that distribution is about to start. */
  let opening = 0;
  /**
   * Bytes of manifests that are being received (distribution writes a manifest once it is complete), and of blobs that are
   * being mounted.
   */
  let arriving = 0;
  let manifests = 0;
  let lastUsed = performance.now();
  /** Added since the last measurement started. */
  let added = { bytes: 0, objects: 0 };
  let [limit, limitAt] = [0, 0];
  let measuredAt: number | null = null;

  const used = () => stored + added.bytes + uploads.bytes() + arriving;

  const measureNow = async (): Promise<void> => {
    const since = performance.now();
    const before = added;
    added = { bytes: 0, objects: 0 };
    try {
      const found = await measure(layout, prefix);
      uploads.correct(found.uploads, since);
      [stored, objects] = [found.bytes, found.objects];
      measuredAt = performance.now();
    } catch (error) {
      added = { bytes: added.bytes + before.bytes, objects: added.objects + before.objects };
      throw error;
    }
  };

  /** One measurement at a time, with a pause between them, because clients may retry pushes to a full registry constantly. */
  const remeasure = joined(async () => {
    await sleep(measuredAt === null ? 0 : Math.max(0, measuredAt + most.measureEveryMs - performance.now()));
    await measureNow();
  });

  /** Counts bytes before they are written. False if they exceed the limit by the current count. */
  const takeNow = (upload: string | null, repository: string, bytes: number): boolean => {
    if (used() + bytes > limit) return false;
    if (upload === null) arriving += bytes;
    else {
      const opened = uploads.open(upload, repository);
      opened.touchedAt = performance.now();
      uploads.resize(opened, opened.bytes + bytes);
    }
    return true;
  };

  return {
    prefix,
    uploads: uploads.byId,
    used,
    limit: () => limit,

    /** Resolves once the registry is measured; applies the limit of the most recently issued token. */
    async ready(grant: Grant | null): Promise<void> {
      lastUsed = performance.now();
      // A limit issued in the future means that the clock was set back; `issuedAt` then does not order tokens.
      const isOfFuture = limitAt > Date.now() / 1000 + leeway;
      if (grant && (grant.issuedAt >= limitAt || isOfFuture)) [limit, limitAt] = [grant.limit, grant.issuedAt];
      if (measuredAt === null) await remeasure();
      else if (isShared && measuredAt < performance.now() - most.shareMs) remeasure().catch(() => undefined);
    },

    takeNow,

    /** Counts bytes before they are written. Resolves with false if they exceed the limit. */
    async take(upload: string | null, repository: string, bytes: number): Promise<boolean> {
      if (takeNow(upload, repository, bytes)) return true;
      await remeasure();
      return takeNow(upload, repository, bytes);
    },

    /**
     * The limit on counts that the registry has reached, or null. With `opens` it reserves a place for an upload that is
     * about to start, until `releasePlace`.
     */
    async limitReached(opens: boolean): Promise<'uploads' | 'objects' | null> {
      const reason = () => {
        if (uploads.byId.size + opening >= most.uploads) return 'uploads';
        return objects + added.objects >= most.objects ? 'objects' : null;
      };
      if (reason()) await remeasure();
      const found = reason();
      if (!found && opens) opening += 1;
      return found;
    },

    /** Waits until fewer manifests are being received: distribution keeps each one in memory until it is complete. */
    async startManifest(): Promise<void> {
      while (manifests >= most.manifests) await sleep(50);
      manifests += 1;
    },

    endManifest(): void {
      manifests -= 1;
    },

    /** Bytes that were counted without an upload may have become these objects (links and tags), or were refused: null. */
    settle(bytes: number, objects: number | null): void {
      arriving -= bytes;
      if (objects !== null) added = { bytes: added.bytes + bytes, objects: added.objects + objects };
    },

    /** The upload has started, or was refused. */
    releasePlace(): void {
      opening -= 1;
    },

    open: uploads.open,
    close: uploads.close,
    resize: uploads.resize,
    idleBytes: uploads.idleBytes,

    /** The upload became a blob. */
    finish(id: string): void {
      added = { bytes: added.bytes + (uploads.byId.get(id)?.bytes ?? 0), objects: added.objects + 1 };
      uploads.close(id);
    },

    /** Whether the account can be dropped: the next request would measure the registry again. */
    isIdle: (idleMs: number) =>
      uploads.byId.size === 0 && opening + manifests === 0 && lastUsed < performance.now() - idleMs,
  };
}
