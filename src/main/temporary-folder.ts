/** Folders of commands in the data directory, for copies that are too large for /tmp. Accounts may not write beside it. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const purposes = ['moving', 'unpacked'] as const;

/**
 * Calls `work` with the path of a folder that it may create, and removes the folder afterwards. Folders that killed
 * commands left are removed first. The name has the host, because the pid of another host says nothing here.
 */
export async function withTemporaryFolder<T>(
  dataDir: string,
  purpose: (typeof purposes)[number],
  work: (folder: string) => Promise<T>,
): Promise<T> {
  await mkdir(dataDir, { recursive: true });
  await removeAbandoned(dataDir);
  const folder = join(dataDir, `.${purpose}-${hostname()}-${process.pid}`);
  // A killed process may have had the same pid.
  await rm(folder, { recursive: true, force: true });
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function removeAbandoned(dataDir: string): Promise<void> {
  const prefixes = purposes.map((purpose) => `.${purpose}-${hostname()}-`);
  for (const name of await readdir(dataDir)) {
    const prefix = prefixes.find((each) => name.startsWith(each));
    const pid = prefix === undefined ? '' : name.slice(prefix.length);
    if (!/^\d+$/.test(pid) || isAlive(Number(pid))) continue;
    await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

/** Also for a process of another account, which this one may not signal. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
