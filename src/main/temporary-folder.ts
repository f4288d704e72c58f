/**
 * Folders of commands in the data directory, for copies that are too large for /tmp. Accounts may not write beside it. The data
 * directory may belong to another account than that of the command, which is often root.
 */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { liveProcess } from '../platform/running-processes.ts';

const purposes = ['moving', 'unpacked'] as const;

/**
 * Calls `work` with the path of a new, empty folder, and removes it afterwards. Folders that killed commands left are removed
 * first. The name has the host, because the pid of another host says nothing here.
 */
export async function withTemporaryFolder<T>(
  dataDir: string,
  purpose: (typeof purposes)[number],
  work: (folder: string) => Promise<T>,
): Promise<T> {
  await mkdir(dataDir, { recursive: true });
  await removeAbandoned(dataDir);
  const folder = join(dataDir, `.${purpose}-${hostname()}-${process.pid}`);
  // Fails for a folder or link that another account has put there.
  await mkdir(folder, { mode: 0o700 });
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Only folders of this account: the owner of another one could exchange what is in it during the removal. */
async function removeAbandoned(dataDir: string): Promise<void> {
  const prefixes = purposes.map((purpose) => `.${purpose}-${hostname()}-`);
  for (const name of await readdir(dataDir)) {
    const prefix = prefixes.find((each) => name.startsWith(each));
    const pid = prefix === undefined ? '' : name.slice(prefix.length);
    // A killed process may have had the pid of this one.
    if (!/^\d+$/.test(pid) || (Number(pid) !== process.pid && liveProcess(Number(pid)))) continue;
    const path = join(dataDir, name);
    const found = await lstat(path).catch(() => null);
    if (found?.uid === process.getuid!()) await rm(path, { recursive: true, force: true });
  }
}
