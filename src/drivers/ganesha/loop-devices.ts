/**
 * Which loop device carries which image. Each share keeps its number for life, because Ganesha makes file handles from
 * it (`fsid_device`): with another number after a boot, every mounted client would get ESTALE.
 *
 * Why not from the filesystem's UUID, Ganesha's default: it asks libblkid, whose cache (/run/blkid, up to 200 s old) goes
 * by device name, so on a reused loop device it takes one share for another. Seen as exports refused with ENOENT.
 *
 * Numbers start high, away from those that `losetup -f` gives to others, and the lowest free one is taken: the kernel
 * keeps an idle device for each number ever used. A device is bound, mounted, and at once marked to be freed at unmount.
 */
import { readFile, readdir } from 'node:fs/promises';
import type { Logger } from 'pino';
import { hostError, run } from '../command.ts';

export interface LoopDevices {
  /** The number that a share had before; kept for it. */
  reserve(id: string, device: number): void;
  /** Binds the image to the share's device, or to a free one if it has none or lost it. */
  bind(id: string, image: string): Promise<string>;
  numberOf(id: string): number | null;
  /** Frees the number, and the device if it is still bound to this image. */
  release(id: string, image: string): Promise<void>;
}

const FIRST = 1024;
const LAST = 2 ** 20 - 1;

export function loopDevices(log: Logger): LoopDevices {
  const numbers = new Map<string, number>();

  async function choose(id: string, image: string, bound: Map<number, string>): Promise<number> {
    const own = numbers.get(id);
    if (own !== undefined && [undefined, image].includes(bound.get(own))) return own;
    if (own !== undefined)
      log.warn({ fileShare: id, device: own }, 'loop device was taken, mounted clients must mount anew');
    const taken = new Set([...numbers.values(), ...bound.keys()]);
    let free = FIRST;
    while (taken.has(free)) free += 1;
    if (free > LAST) throw hostError('all loop devices are taken', null);
    numbers.set(id, free);
    return free;
  }

  return {
    reserve: (id, device) => void numbers.set(id, device),
    numberOf: (id) => numbers.get(id) ?? null,
    async bind(id, image) {
      const bound = await boundDevices();
      const already = [...bound].find(([, file]) => file === image);
      if (already) {
        numbers.set(id, already[0]);
        return `/dev/loop${already[0]}`;
      }
      for (;;) {
        const device = await choose(id, image, await boundDevices());
        try {
          await run('losetup', [`/dev/loop${device}`, image]);
          return `/dev/loop${device}`;
        } catch (err) {
          // Another process was faster: the next round sees it.
          if (!(await boundDevices()).has(device)) throw err;
        }
      }
    },
    async release(id, image) {
      numbers.delete(id);
      for (const [device, file] of await boundDevices()) {
        if (file === image) await run('losetup', ['-d', `/dev/loop${device}`]);
      }
    },
  };
}

/** The number in `/dev/loop7`, or null. */
export function loopNumber(device: string): number | null {
  const digits = /^\/dev\/loop(\d+)$/.exec(device)?.[1];
  return digits === undefined ? null : Number(digits);
}

export async function backingFile(device: number): Promise<string | null> {
  const text = await readFile(`/sys/block/loop${device}/loop/backing_file`, 'utf8').catch(() => null);
  return text?.trimEnd() ?? null;
}

async function boundDevices(): Promise<Map<number, string>> {
  const devices = (await readdir('/sys/block')).map((name) => loopNumber(`/dev/${name}`)).filter((n) => n !== null);
  const found = await Promise.all(devices.map(async (n) => [n, await backingFile(n)] as const));
  return new Map(found.filter((each): each is readonly [number, string] => each[1] !== null));
}
