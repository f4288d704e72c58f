/**
 * A lock between processes: a directory, because creating one is atomic. Its holder renews the modification time every
 * second, and after ten seconds it is stale, so a process that was killed does not block the others.
 */
import { mkdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const STALE_MS = 10_000;

/** Runs `work` while this process holds the lock. `onWait` is called once if another process holds it. */
export async function withLock(lock, onWait, work) {
  let reported = false;
  while (!take(lock)) {
    if (!reported) onWait();
    reported = true;
    await sleep(200);
  }
  const renewal = setInterval(() => {
    const now = new Date();
    utimesSync(lock, now, now);
  }, 1000);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    rmSync(lock, { recursive: true, force: true });
  }
}

function take(lock) {
  try {
    mkdirSync(lock);
    return true;
  } catch (err) {
    if (err.code !== 'EEXIST') throw err;
  }
  const renewed = modified(lock);
  if (renewed === null || Date.now() - renewed < STALE_MS) return false;
  try {
    // Of several processes that find the lock stale, only one can rename it.
    const stale = `${lock}.${process.pid}`;
    renameSync(lock, stale);
    rmSync(stale, { recursive: true, force: true });
  } catch {
    // Another process renamed it.
  }
  return false;
}

/** Milliseconds since the epoch; null if the path does not exist. */
export function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
