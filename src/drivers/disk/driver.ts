/**
 * Volumes as raw images with holes, one file each, and snapshots as copies of them: reflinks where the filesystem has
 * them. Every image is whole by itself, so nothing depends on anything else's file, and any program can read one.
 *
 * How it fails: a volume or snapshot that was made and is not there is an error, never made anew. Images have holes, so a
 * full host shows when they are written to or copied; that is for the operator to watch.
 */
import { rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hostError, refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import { renameDurably, syncPath } from '../durable-files.ts';
import { oneAtATime } from '../turns.ts';
import type { DesiredSnapshot, DesiredVolume, ObservedSnapshot, ObservedVolume, VolumeDriver } from '../volume.ts';
import { cloned, createCopies, type Copies } from './copies.ts';
import { idsIn, type Layout, layoutOf, lengthen, prepareFolders, putInPlace, sizeOf } from './layout.ts';

export interface DiskDriverOptions {
  dataDir: string;
  /** Copies everything although the filesystem has reflinks: for tests. */
  withoutReflinks?: boolean;
  /** How long a call waits for a copy, in milliseconds. */
  patience?: number;
}

interface Disk {
  layout: Layout;
  copies: Copies;
}

const GIB = 1024 ** 3;

export function createDiskDriver({ dataDir, withoutReflinks = false, patience }: DiskDriverOptions): VolumeDriver {
  const layout = layoutOf(dataDir);
  let reflinks = false;
  const disk: Disk = { layout, copies: createCopies(() => reflinks, patience) };
  const inTurn = oneAtATime();
  /** Calls about one id never overlap, and whatever fails reaches the engine as a DriverError. */
  const guarded = <T>(id: string, work: () => Promise<T>) => inTurn(id, () => asDriverErrors(work));
  const parts = (folder: string, image: (id: string) => string) => ({
    real: true as const,
    list: () => asDriverErrors(() => idsIn(folder)),
    async remove(id: string, signal: AbortSignal) {
      refuseAborted(signal);
      // Before the turn: a copy may be what the turn waits for.
      await disk.copies.cancel(image(id));
      await guarded(id, () => takeAway(disk, image(id), null));
    },
    quarantine: (id: string) => guarded(id, () => takeAway(disk, image(id), layout.quarantine)),
  });

  return {
    ...parts(layout.volumes, layout.volume),
    name: 'disk',
    status: () => ({
      driver: 'disk',
      real: true,
      healthy: true,
      detail: `raw images in ${layout.root}; snapshots are ${reflinks ? 'reflinks' : 'copies of all that is not a hole'}`,
      ...(!reflinks && { remedy: 'have CLOUDYARD_DATA_DIR on XFS or Btrfs, where a snapshot costs nothing' }),
    }),
    async start() {
      await asDriverErrors(() => prepareFolders(layout));
      reflinks = !withoutReflinks && (await hasReflinks(layout.root));
    },
    stop: () => disk.copies.cancelAll(),
    apply: (desired, signal) => guarded(desired.id, () => applyVolume(disk, desired, signal)),
    snapshots: {
      ...parts(layout.snapshots, layout.snapshot),
      apply: (desired, signal) => guarded(desired.id, () => applySnapshot(disk, desired, signal)),
    },
  };
}

async function applyVolume(disk: Disk, desired: DesiredVolume, signal: AbortSignal): Promise<ObservedVolume> {
  refuseAborted(signal);
  const { layout, copies } = disk;
  const path = layout.volume(desired.id);
  const before = await sizeOf(path);
  const bytes = Math.max(desired.sizeGib * GIB, before ?? 0);
  const changed: string[] = [];
  const from = desired.revertTo ?? (before === null ? desired.source : null);
  // A shorter image has lost its end; zeros there would pass for data.
  const whole = (before ?? 0) >= (desired.settledGib ?? 0) * GIB;
  if (!whole && desired.revertTo === null) throw dataIsGone('volume', path);
  if (from !== null) {
    const snapshot = layout.snapshot(from);
    if ((await sizeOf(snapshot)) === null) throw dataIsGone('snapshot', snapshot);
    if (!(await copies.copy({ from: snapshot, to: path, bytes }, signal))) return { copying: true };
    changed.push(`${before === null ? 'made from' : 'reverted to'} snapshot ${from}`);
  } else {
    // A copy that nobody asks for any more must not pass for the next one.
    await copies.cancel(path);
    if (before === null) await putInPlace(path, (unfinished) => lengthen(unfinished, bytes));
    else if (before < bytes) await lengthen(path, bytes);
    if (before === null) changed.push('image created');
    else if (before < bytes) changed.push(`grown to ${desired.sizeGib} GiB`);
  }
  return { copying: false, changed, sizeGib: Math.floor(bytes / GIB) };
}

async function applySnapshot(disk: Disk, desired: DesiredSnapshot, signal: AbortSignal): Promise<ObservedSnapshot> {
  refuseAborted(signal);
  const { layout, copies } = disk;
  const [from, to] = [layout.volume(desired.volumeId), layout.snapshot(desired.id)];
  if ((await sizeOf(to)) !== null) {
    await copies.cancel(to);
    return { copying: false, changed: [] };
  }
  if (desired.settled) throw dataIsGone('snapshot', to);
  // It may be on its way: what a simulated host had becomes real in any order.
  if ((await sizeOf(from)) === null) throw dataIsGone('volume', from, { retryable: true });
  if (!(await copies.copy({ from, to, bytes: 0 }, signal))) return { copying: true };
  return { copying: false, changed: ['copied'] };
}

/** Deletes an image, or with `aside` moves it there. */
async function takeAway({ copies }: Disk, path: string, aside: string | null): Promise<void> {
  await copies.cancel(path);
  if ((await sizeOf(path)) === null) return;
  if (aside === null) {
    await rm(path, { force: true });
    await syncPath(dirname(path));
  } else {
    const name = join(aside, basename(path));
    await renameDurably(path, (await sizeOf(name)) === null ? name : join(aside, `${Date.now()}-${basename(path)}`));
  }
}

/** Tries it: filesystems of one name have them or not. */
async function hasReflinks(folder: string): Promise<boolean> {
  const [one, other] = [join(folder, 'reflink.probe'), join(folder, 'reflink.probe.copy')];
  try {
    await writeFile(one, Buffer.alloc(4096, 1));
    return await cloned(one, other);
  } catch {
    return false;
  } finally {
    for (const file of [one, other]) await rm(file, { force: true });
  }
}

function dataIsGone(what: 'volume' | 'snapshot', path: string, { retryable } = { retryable: false }): DriverError {
  return new DriverError(`the data of a ${what} is gone: ${path} is not there, or not whole`, {
    customerMessage: `The data of this ${what} cannot be found on the storage host; the operator has to look at it.`,
    retryable,
  });
}

async function asDriverErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    throw hostError(err instanceof Error ? err.message : String(err), err);
  }
}
