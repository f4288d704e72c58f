/**
 * Assigns loop devices to images. A share keeps its device number permanently, because Ganesha derives file handles from it
 * (`fsid_device`): with another number after a boot, every mounted client would get ESTALE.
 *
 * Ganesha's default, the UUID of the filesystem, does not work: libblkid caches it by device name (/run/blkid, up to 200 s),
 * so on a reused loop device one share is mistaken for another, and exports are refused with ENOENT.
 *
 * Numbers start high, above those that `losetup -f` uses, at an offset that depends on the data directory, so that another
 * Cloudyard on this machine rarely takes a number that is free only during a restart. The lowest free number is used,
 * because the kernel keeps an idle device for each number ever used. A device is bound, mounted, and then marked to be freed
 * at unmount.
 */
import { hash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/log.ts';
import { refuseShortage } from '../../platform/read-or-empty.ts';
import { hostError, run } from '../command.ts';

const FIRST = 1024;
const OFFSETS = 16;
const NUMBERS_PER_OFFSET = 256;
const LAST = 2 ** 20 - 1;
const FREE_TIMEOUT_MS = 3000;

/** The devices of the images in one folder. */
export function loopDevices(imagesDir: string, log: Logger) {
  const first = FIRST + NUMBERS_PER_OFFSET * (hash('sha256', imagesDir, 'buffer')[0]! % OFFSETS);
  const numbers = new Map<string, number>();
  /** The devices that were bound at the first scan, perhaps by the previous process. One scan a share would be quadratic. */
  let scan: Promise<Map<number, string>> | undefined;
  /** Devices that belong to other programs. */
  const foreign = new Set<number>();

  const scanOnce = async () => {
    const bound = await boundDevices();
    for (const device of bound.keys()) foreign.add(device);
    return bound;
  };

  /** The device of this share, or the one that the previous process bound. */
  async function boundTo(id: string, image: string): Promise<number | null> {
    const left = [...(await (scan ??= scanOnce()))].filter(([, file]) => file === image).map(([device]) => device);
    for (const device of [...left, numbers.get(id) ?? -1]) {
      if ((await backingFile(device)) === image) return device;
    }
    return null;
  }

  function reserveFree(id: string): number {
    const taken = new Set([...numbers.values(), ...foreign]);
    let free = first;
    while (taken.has(free)) free += 1;
    if (free > LAST) throw hostError('all loop devices are taken', null);
    numbers.set(id, free);
    return free;
  }

  return {
    /** Keeps a number for the share that had it before. */
    reserve: (id: string, device: number) => void numbers.set(id, device),
    numberOf: (id: string) => numbers.get(id) ?? null,
    /** Binds the image to the share's device, or to a free one if it has none or lost it. */
    async bind(id: string, image: string): Promise<string> {
      const already = await boundTo(id, image);
      if (already !== null) {
        numbers.set(id, already);
        return `/dev/loop${already}`;
      }
      const own = numbers.get(id);
      for (let device = own ?? reserveFree(id); ; device = reserveFree(id)) {
        if ((await backingFile(device)) === null && (await attach(device, image))) return `/dev/loop${device}`;
        foreign.add(device);
        if (device === own)
          log.warn(
            { fileShare: id, device },
            'another program took the loop device; clients must mount the share again',
          );
      }
    },
    /** Frees the number, and the device if it is still bound to this image. */
    async release(id: string, image: string): Promise<void> {
      const device = await boundTo(id, image);
      if (device !== null) await detach(device);
      numbers.delete(id);
    },
    /**
     * Frees all devices of these images, also those that a killed process bound and did not mark to be freed. One that another
     * mount namespace keeps busy for longer than some seconds is freed when that ends.
     */
    async close(): Promise<void> {
      for (const device of await devicesOf(imagesDir)) await detach(device);
      // The kernel ends the mounts of a process that has just exited, such as Ganesha, a moment later.
      const deadline = performance.now() + FREE_TIMEOUT_MS;
      while ((await devicesOf(imagesDir)).length > 0 && performance.now() < deadline) await sleep(20);
    },
  };
}

export type LoopDevices = ReturnType<typeof loopDevices>;

/** False when another process was faster. */
async function attach(device: number, image: string): Promise<boolean> {
  try {
    await run('losetup', [`/dev/loop${device}`, image]);
    return true;
  } catch (err) {
    if ((await backingFile(device)) === null) throw err;
    return false;
  }
}

async function detach(device: number): Promise<void> {
  try {
    await run('losetup', ['-d', `/dev/loop${device}`]);
  } catch (err) {
    // The kernel frees a device that is marked to be freed at any time: when the last mount namespace with it ends.
    if ((await backingFile(device)) !== null) throw err;
  }
}

/** The number in `/dev/loop7`, or null. */
export function loopNumber(device: string): number | null {
  const digits = /^\/dev\/loop(\d+)$/.exec(device)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** The path of the file behind `/dev/loop<device>`; null if it has none. */
export async function backingFile(device: number): Promise<string | null> {
  const text = await readFile(`/sys/block/loop${device}/loop/backing_file`, 'utf8').catch((error: unknown) => {
    // With null, the caller would unmount the share and mount it again.
    refuseShortage(error);
    return null;
  });
  return text?.trimEnd() ?? null;
}

/** The devices that are bound to images in a folder. */
async function devicesOf(folder: string): Promise<number[]> {
  return [...(await boundDevices())].filter(([, file]) => file.startsWith(`${folder}/`)).map(([device]) => device);
}

async function boundDevices(): Promise<Map<number, string>> {
  const devices = (await readdir('/sys/block')).map((name) => loopNumber(`/dev/${name}`)).filter((n) => n !== null);
  const found = await Promise.all(devices.map(async (n) => [n, await backingFile(n)] as const));
  return new Map(found.filter((each): each is readonly [number, string] => each[1] !== null));
}
