/**
 * Stores volumes as sparse raw images, one file each, and snapshots as copies of them: reflinks if the filesystem supports
 * them. Every image is independent, and any program can read it.
 *
 * Failure modes: a volume or snapshot that was created and is missing is an error; it is never created again. While the
 * filesystem of the start is not mounted, every call fails: the folder below the mount point has no volumes. Images are
 * sparse, so a full host causes errors when they are written or copied; the operator must monitor free space.
 */
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onHost, refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import { removeUnfinished, replaceFile, sizeOf } from '../durable-files.ts';
import { idsIn, removeDurably } from '../id-files.ts';
import { orNone } from '../../platform/or-none.ts';
import { oneAtATime } from '../../platform/turns.ts';
import type {
  DesiredSnapshot,
  DesiredVolume,
  ObservedSnapshot,
  ObservedVolume,
  Progress,
  VolumeDriver,
} from '../volume.ts';
import { cloned, createCopies, type Copies } from './copies.ts';
import { ENDING, extend, type Layout, layoutOf, makeFolders } from './layout.ts';

export interface DiskDriverOptions {
  dataDir: string;
  /** Copies the data even if the filesystem supports reflinks: for tests. */
  withoutReflinks?: boolean;
  /** How long a call waits for a copy, in milliseconds. */
  copyWaitMs?: number;
}

interface Disk {
  layout: Layout;
  copies: Copies;
}

const GIB = 1024 ** 3;

/** Creates nothing before `start`. */
export function createDiskDriver({ dataDir, withoutReflinks = false, copyWaitMs }: DiskDriverOptions): VolumeDriver {
  const layout = layoutOf(dataDir);
  /** Null: not known, because the disk was full. */
  let reflinks: boolean | null = withoutReflinks ? false : null;
  const supportsReflinks = async () => (reflinks ??= await hasReflinks(layout.root));
  const disk: Disk = { layout, copies: createCopies(supportsReflinks, copyWaitMs) };
  const inTurn = oneAtATime();
  let inodeAtStart: number | null = null;
  const requireFilesystem = async () => {
    if (inodeAtStart !== null && (await inodeOf(layout.root)) !== inodeAtStart) throw unmounted(layout.root);
  };
  /** Calls for one id never overlap, and every failure is a DriverError. */
  const guarded = <T>(id: string, work: () => Promise<T>) =>
    inTurn(id, () => onHost(null, () => requireFilesystem().then(work)));
  const parts = (folder: string, image: (id: string) => string) => ({
    real: true as const,
    list: () =>
      onHost(null, async () => {
        await requireFilesystem();
        // Without its folder, all of its images are missing, and new ones need it.
        await makeFolders(layout, { areSynced: true });
        return idsIn(folder, ENDING);
      }),
    async remove(id: string, signal: AbortSignal) {
      refuseAborted(signal);
      // Before the turn, which may be waiting for the copy.
      await disk.copies.cancel(image(id));
      await guarded(id, () => removeImage(disk, image(id), null));
    },
    quarantine: (id: string) => guarded(id, () => removeImage(disk, image(id), layout.quarantine)),
  });

  return {
    ...parts(layout.volumes, layout.volume),
    name: 'disk',
    status: () => ({
      driver: 'disk',
      real: true,
      healthy: true,
      detail: `raw images in ${layout.root}; snapshots are ${reflinks ? 'reflinks' : 'full copies (on XFS or Btrfs: reflinks)'}`,
    }),
    async start() {
      await onHost(null, async () => {
        // A process that was killed may have left folders that it had not synced.
        await makeFolders(layout, { areSynced: false });
        for (const folder of [layout.volumes, layout.snapshots, layout.quarantine]) await removeUnfinished(folder);
        inodeAtStart = await inodeOf(layout.root);
      });
      await supportsReflinks();
    },
    stop: () => disk.copies.cancelAll(),
    apply: (desired, signal) => guarded(desired.id, () => applyVolume(disk, desired, signal)),
    snapshots: {
      ...parts(layout.snapshots, layout.snapshot),
      apply: (desired, signal) => guarded(desired.id, () => applySnapshot(disk, desired, signal)),
    },
  };
}

/** Null without the folder. Not the number of the device, which may be another one when the filesystem is mounted again. */
async function inodeOf(folder: string): Promise<number | null> {
  return (await stat(folder).catch(orNone(null)))?.ino ?? null;
}

function unmounted(folder: string): DriverError {
  return new DriverError(`${folder} is not the folder of the start; mount its filesystem again, or start again`, {
    customerMessage: 'the storage host has lost its storage',
    retryable: true,
  });
}

async function applyVolume(disk: Disk, desired: DesiredVolume, signal: AbortSignal): Promise<ObservedVolume> {
  refuseAborted(signal);
  const { layout, copies } = disk;
  const path = layout.volume(desired.id);
  const before = await sizeOf(path);
  const bytes = Math.max(desired.sizeGib * GIB, before ?? 0);
  const from = desired.revertTo ?? (before === null ? desired.source : null);
  // A shorter image has lost data; extending it would replace the lost data with zeros.
  const complete = (before ?? 0) >= (desired.settledGib ?? 0) * GIB;
  if (!complete && desired.revertTo === null) throw dataMissing('volume', path);
  if (from !== null) {
    const snapshot = layout.snapshot(from);
    if ((await sizeOf(snapshot)) === null) throw dataMissing('snapshot', snapshot);
    if (!(await copies.copy({ from: snapshot, to: path, bytes, clientId: desired.clientId }, signal)))
      return copying(disk, path);
  } else {
    // An abandoned copy must not be mistaken for the next one.
    await copies.cancel(path);
    if (before === null) await replaceFile(path, (unfinished) => extend(unfinished, bytes));
    else if (before < bytes) await extend(path, bytes);
  }
  return { copying: false, sizeGib: Math.floor(bytes / GIB) };
}

async function copying({ copies }: Disk, to: string): Promise<{ copying: true; progress: Progress | null }> {
  return { copying: true, progress: await copies.progress(to) };
}

async function applySnapshot(disk: Disk, desired: DesiredSnapshot, signal: AbortSignal): Promise<ObservedSnapshot> {
  refuseAborted(signal);
  const { layout, copies } = disk;
  const [from, to] = [layout.volume(desired.volumeId), layout.snapshot(desired.id)];
  if ((await sizeOf(to)) !== null) {
    await copies.cancel(to);
    return { copying: false };
  }
  if (desired.settled) throw dataMissing('snapshot', to);
  // Retryable, because the volume may follow: resources of a simulated host become real in any order.
  if ((await sizeOf(from)) === null) throw dataMissing('volume', from, { retryable: true });
  if (!(await copies.copy({ from, to, bytes: 0, clientId: desired.clientId }, signal))) return copying(disk, to);
  return { copying: false };
}

/** Deletes an image, or moves it to the folder `quarantine`. */
async function removeImage({ copies }: Disk, path: string, quarantine: string | null): Promise<void> {
  await copies.cancel(path);
  await removeDurably(path, quarantine);
}

/** Tries a reflink, because the type of the filesystem does not determine whether it supports them. Null: it cannot be tried now. */
async function hasReflinks(folder: string): Promise<boolean | null> {
  const [one, other] = [join(folder, 'reflink.probe'), join(folder, 'reflink.probe.copy')];
  try {
    await writeFile(one, Buffer.alloc(4096, 1));
    return await cloned(one, other);
  } catch {
    return null;
  } finally {
    for (const file of [one, other]) await rm(file, { force: true });
  }
}

function dataMissing(what: 'volume' | 'snapshot', path: string, { retryable } = { retryable: false }): DriverError {
  return new DriverError(`the data of a ${what} is missing: ${path} does not exist or is incomplete`, {
    customerMessage: `the data of this ${what} is missing on the storage host; ask the operator`,
    retryable,
  });
}
