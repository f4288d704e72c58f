/** Periodic checks of the gate: free disk space, uploads whose folder is gone, and idle uploads and accounts. */
import { rename, statfs, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout } from '../layout.ts';
import { readableBytes } from '../storage.ts';
import { uploadFolder, type createWrites } from './writes.ts';

type Writes = ReturnType<typeof createWrites>;

const idleMs = 10_000;
const dropMs = 3_600_000;

/** `reserve`: percent of the bytes and of the inodes of the filesystem that pushes must not use. */
export async function isDiskFull(layout: Layout, reserve: number): Promise<boolean> {
  const { blocks, bavail, files, ffree } = await statfs(layout.storage);
  if (bavail < (blocks * reserve) / 100) return true;
  // Some filesystems have no fixed number of inodes.
  return files > 0 && ffree < (files * reserve) / 100;
}

/** Drops uploads whose folder is gone, and stops requests that still write to them. */
export async function checkUploads(layout: Layout, { accounts }: Writes): Promise<void> {
  for (const account of accounts.values()) {
    if (account.isIdle(dropMs)) accounts.delete(account.prefix);
    for (const [id, upload] of account.uploads) {
      const folder = uploadFolder(layout, account.prefix, upload.repository, id);
      const size = await readableBytes(join(folder, 'data'));
      const writers = [...upload.writers];
      if (size !== null || existsSync(folder)) {
        if (writers.length === 0) account.resize(upload, size ?? 0);
        continue;
      }
      if (writers.some(({ ended }) => ended)) continue;
      for (const writer of writers) writer.abort();
      // It may have become a blob, whose response was lost.
      account.finish(id);
    }
  }
}

/** The longest time between two reports. */
export const reportSeconds = 300;

/** Writes a report of the bytes of unfinished uploads, by registry, whenever they change and from time to time. */
export function createReport(layout: Layout) {
  let last = '';
  let reportedAt = -Infinity;
  return async ({ accounts }: Writes): Promise<void> => {
    const idle = [...accounts.values()].map((each) => [each.prefix, each.idleBytes(idleMs)] as const);
    const text = JSON.stringify(Object.fromEntries(idle.filter(([, bytes]) => bytes > 0)));
    if (text === last && performance.now() < reportedAt + reportSeconds * 1000) return;
    await writeFile(`${layout.uploads}.new`, text, { mode: 0o600 });
    await rename(`${layout.uploads}.new`, layout.uploads);
    last = text;
    reportedAt = performance.now();
  };
}
