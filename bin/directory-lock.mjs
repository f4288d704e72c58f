/**
 * A lock between processes: a directory, because creating one is atomic. It names its holder, which renews the modification
 * time every second. After ten seconds without a renewal the lock is stale if its holder has died, so a process that was killed
 * does not block the others.
 *
 * A live holder keeps the lock: a build of low priority on a busy machine can compute for longer than ten seconds, and renews
 * nothing meanwhile.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const STALE_MS = 10_000;
/** Where the system does not show when a process began, another one may have the pid of the holder. */
const ABANDONED_MS = 600_000;
const HOLDER = 'holder';

/** Runs `work` while this process holds the lock. `onWait` is called once if another process holds it. */
export async function withLock(lock, onWait, work) {
  let reported = false;
  while (!take(lock)) {
    if (!reported) onWait();
    reported = true;
    await sleep(200);
  }
  const renewal = setInterval(() => renew(lock), 1000);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    if (holderOf(lock) === identityOf(process.pid)) rmSync(lock, { recursive: true, force: true });
  }
}

function take(lock) {
  try {
    mkdirSync(lock);
    writeFileSync(join(lock, HOLDER), identityOf(process.pid));
    return true;
  } catch (err) {
    if (err.code !== 'EEXIST') throw err;
  }
  if (!isStale(lock)) return false;
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

function isStale(lock) {
  const renewed = modified(lock);
  const age = Date.now() - (renewed ?? Infinity);
  if (age < STALE_MS) return false;
  const holder = holderOf(lock);
  return age > ABANDONED_MS || holder === null || holder !== identityOf(holder.split(' ')[0]);
}

function renew(lock) {
  try {
    const now = new Date();
    utimesSync(lock, now, now);
  } catch {
    // Someone removed it.
  }
}

/** Null: the lock does not exist, or its holder was killed before it wrote its name. */
function holderOf(lock) {
  try {
    return readFileSync(join(lock, HOLDER), 'utf8');
  } catch {
    return null;
  }
}

/** The pid of a process and, where the system shows it, when it began; null: it has ended. */
function identityOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return `${pid} ${fields[19]}`;
  } catch {
    // Not Linux, or it has ended.
  }
  try {
    process.kill(Number(pid), 0);
    return `${pid}`;
  } catch (err) {
    return err.code === 'EPERM' ? `${pid}` : null;
  }
}

/** Milliseconds since the epoch; null if the path does not exist. */
export function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
