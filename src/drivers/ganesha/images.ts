/**
 * Stores a share as an XFS filesystem in a sparse image file of exactly its size, so that the size is enforced (ENOSPC). XFS
 * grows online without CAP_SYS_RESOURCE and supports reflinks.
 *
 * Invariant: an image gets its final name only when it is complete, including its world-writable root (a protofile sets that
 * mode in mkfs). Growing has three idempotent steps (file, loop device, filesystem); all are repeated until the spec records
 * the new size.
 *
 * Failure modes: images are sparse, so a full host causes I/O errors inside shares; the operator must monitor free space. A
 * mount that stays busy is detached lazily, and its device is freed when the last user closes it.
 */
import { mkdir, open, rmdir, statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { thawLeftFrozen } from '../../platform/filesystem-freeze.ts';
import type { Logger } from '../../platform/log.ts';
import { hostError, onHost, run } from '../command.ts';
import type { FileShareUsage } from '../file-share.ts';
import { limited, shared } from '../../platform/turns.ts';
import { ensureDurably, extendFile, removeUnfinished, replaceFile, sizeOf } from '../durable-files.ts';
import { idsIn, removeDurably } from '../id-files.ts';
import type { Layout } from './layout.ts';
import { backingFile, type LoopDevices, loopDevices, loopNumber } from './loop-devices.ts';
import type { Jail } from './jail.ts';
import { mounts } from './mounts.ts';
import { dataMissing, type ShareStorage } from './storage.ts';

const GIB = 1024 ** 3;
const UNMOUNT_TIMEOUT_MS = 3000;
/** Root folder with mode 0777, owned by root, empty. */
const PROTOFILE = '/\n0 0\nd--777 0 0\n$\n';

/** Mounts each image on this host and makes it visible in the jail. Needs root. */
export function imageStorage(layout: Layout, jail: Jail, log: Logger): ShareStorage {
  const unmounting = limited(4);
  const loops = loopDevices(layout.images, log);
  // Shared, because shares are created at the same time.
  const ensureProtofile = shared(() => ensureDurably(layout.protofile, PROTOFILE));
  return {
    reserve: loops.reserve,
    deviceOf: loops.numberOf,
    list: () => idsIn(layout.images, '.xfs'),
    path: jail.seen.share,
    async prepare() {
      await thawLeftFrozen(layout.root);
      for (const folder of [layout.images, layout.specs]) await removeUnfinished(folder);
      await ensureProtofile();
      await jail.prepare();
    },
    async ensure(id, { gib, settledGib }, signal) {
      const image = layout.image(id);
      const size = await sizeOf(image);
      if (size === null) {
        if (settledGib !== undefined) throw dataMissing(id, image);
        await ensureProtofile();
        await createImage(layout, id, gib * GIB, signal);
      }
      const device = await ensureMounted(layout, loops, id, signal);
      await jail.mount(id);
      const grows = (size ?? Infinity) < gib * GIB || (settledGib !== undefined && settledGib < gib);
      if (grows) await grow(image, device.name, layout.mount(id), gib * GIB, signal);
      return size === null || device.mounted || grows;
    },
    async remove(id, { quarantine }) {
      await jail.unmount(id);
      await unmount(layout.mount(id), log);
      await loops.release(id, layout.image(id));
      await removeDurably(layout.image(id), quarantine ? layout.quarantine : null);
    },
    usage: () => usageOfMounted(layout),
    async close() {
      // First, because the jail mounts the same filesystems.
      await jail.close();
      const mounted = [...(await mounts()).keys()].filter((path) => path.startsWith(`${layout.mounts}/`));
      await Promise.all(mounted.map((path) => unmounting(() => unmount(path, log))));
      await loops.close();
    },
  };
}

async function usageOfMounted(layout: Layout): Promise<Map<string, FileShareUsage>> {
  const [mounted, usage] = [await mounts(), new Map<string, FileShareUsage>()];
  for (const id of await idsIn(layout.images, '.xfs')) {
    const path = layout.mount(id);
    if (!mounted.has(path)) continue;
    // Null: unmounted since.
    const found = await statfs(path).catch(() => null);
    if (!found) continue;
    const { blocks, bfree, bsize } = found;
    usage.set(id, { usedBytes: (blocks - bfree) * bsize, totalBytes: blocks * bsize });
  }
  return usage;
}

async function createImage(layout: Layout, id: string, bytes: number, signal?: AbortSignal): Promise<void> {
  await replaceFile(layout.image(id), async (unfinished) => {
    const file = await open(unfinished, 'wx', 0o600);
    await extendFile(file, bytes, 'file share').finally(() => file.close());
    await run('mkfs.xfs', ['-q', '-p', layout.protofile, unfinished], { signal });
  });
}

async function ensureMounted(
  layout: Layout,
  loops: LoopDevices,
  id: string,
  signal?: AbortSignal,
): Promise<{ name: string; mounted: boolean }> {
  const [image, path] = [layout.image(id), layout.mount(id)];
  const device = (await mounts()).get(path);
  const number = device === undefined ? null : loopNumber(device);
  if (device && number !== null && (await backingFile(number)) === image) {
    loops.reserve(id, number);
    return { name: device, mounted: false };
  }
  // Another mount: the image was removed and created again while the old one was busy.
  if (device) await run('umount', ['-l', path]);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const name = await loops.bind(id, image);
  try {
    await run('mount', ['-t', 'xfs', '-o', 'nosuid,nodev', name, path], { signal });
  } finally {
    // The mounted device is in use, so the kernel frees it at unmount. If the mount failed, it is freed at once.
    await run('losetup', ['-d', name]);
  }
  return { name, mounted: true };
}

async function grow(image: string, device: string, path: string, bytes: number, signal?: AbortSignal): Promise<void> {
  await onHost(`cannot grow ${image}`, async () => {
    const file = await open(image, 'r+');
    try {
      await extendFile(file, bytes, 'file share');
      await file.sync();
    } finally {
      await file.close();
    }
    await run('losetup', ['-c', device], { signal });
    await run('xfs_growfs', [path], { signal });
  });
}

async function unmount(path: string, log: Logger): Promise<void> {
  const deadline = performance.now() + UNMOUNT_TIMEOUT_MS;
  while ((await mounts()).has(path)) {
    try {
      await run('umount', [path]);
    } catch (err) {
      if (performance.now() > deadline) {
        log.warn({ path, err }, 'the share is busy; detaching it lazily');
        await run('umount', ['-l', path]);
      } else await sleep(50);
    }
  }
  await rmdir(path).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') throw hostError(`cannot remove ${path}: ${err.message}`, err);
  });
}
