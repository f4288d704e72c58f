/**
 * Deletes the data of removed volumes, in the background. A volume stays in the trash while clones share its data, while
 * a client that crashed still counts as using it, and while another client of the pool deletes volumes.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../platform/log.ts';
import { isId } from '../id-files.ts';
import { shared } from '../../platform/turns.ts';
import { hasErrno } from './errors.ts';
import type { Images } from './images.ts';
import { UNFINISHED } from './volumes.ts';

const SECONDS = 300;
/** How long the lock of the trash outlives its holder: as long as a client that died counts as using its images. */
const LOCK_SECONDS = 30;
/** Longer than a client that died counts as using an image, if its watch has a time limit. */
const BUSY_SECONDS = 40;

/**
 * Failures to delete are retried by `emptyWhenDue`; only a failure to lock or list the trash rejects. `busySeconds`: how long
 * clients may use a removed volume before their watches are read again.
 */
export function createTrash(images: Images, log: Logger, busySeconds = BUSY_SECONDS) {
  let emptiedAt = -Infinity;
  /** When to read the watches of images in use, by id. */
  const reloadAt = new Map<string, number>();
  const purge = async (id: string): Promise<boolean> => {
    try {
      return await images.purge(id);
    } catch (error) {
      if (hasErrno(error, 'EBUSY')) await reloadWhenDue(id);
      throw error;
    }
  };
  const reloadWhenDue = async (id: string): Promise<void> => {
    const now = performance.now();
    const due = reloadAt.get(id) ?? now + busySeconds * 1000;
    reloadAt.set(id, now < due ? due : now + SECONDS * 1000);
    if (now >= due) await images.reload(id);
  };
  const empty = shared(async () => {
    emptiedAt = -Infinity;
    const failures = await alone(images, (isHeld) => removeUnshared(images, purge, isHeld));
    if (failures === null) return;
    for (const error of failures) log.debug({ err: error }, 'a removed volume keeps its data for now');
    if (failures.length > 0) return;
    emptiedAt = performance.now();
    reloadAt.clear();
  });
  return {
    empty,
    /** Empties it after a failure, and periodically, because other clients may remove clones that share its data. */
    async emptyWhenDue(): Promise<void> {
      if (performance.now() - emptiedAt > SECONDS * 1000) await empty();
    },
  };
}

/** Null: another client deletes volumes, or began to because the lock was lost. */
async function alone<T>({ trashLock }: Images, work: (isHeld: () => boolean) => Promise<T | null>): Promise<T | null> {
  const cookie = randomUUID();
  if (!(await trashLock.acquire(cookie, LOCK_SECONDS))) return null;
  let isHeld = true;
  let renewal: Promise<void> | null = null;
  /** One at a time. If one fails, the next one may succeed. */
  const renew = async () => {
    isHeld = await trashLock.acquire(cookie, LOCK_SECONDS).catch(() => isHeld);
    renewal = null;
  };
  const timer = setInterval(() => (renewal ??= renew()), (LOCK_SECONDS / 3) * 1000);
  try {
    return await work(() => isHeld);
  } finally {
    clearInterval(timer);
    // A renewal that the cluster gets after the release would take the lock again.
    await renewal;
    // It expires if this fails.
    await trashLock.release(cookie).catch(() => undefined);
  }
}

/** Deletes the volumes whose data no clone shares, and returns the failures. */
async function removeUnshared(images: Images, purge: Images['purge'], isHeld: () => boolean): Promise<Error[] | null> {
  for (;;) {
    const failures: Error[] = [];
    let removed = false;
    for (const { id, name } of await images.trash()) {
      if (!isHeld()) return null;
      if (!isVolume(name)) continue;
      const done = await purge(id).catch((error: Error) => void failures.push(error));
      removed ||= done === true;
    }
    // An image may have been the last clone of another one in the trash.
    if (!removed) return failures;
  }
}

/** Other programs may use the trash of the pool, too. */
function isVolume(name: string): boolean {
  return isId(name.endsWith(UNFINISHED) ? name.slice(0, -UNFINISHED.length) : name);
}
