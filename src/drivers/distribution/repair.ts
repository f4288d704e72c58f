/**
 * Repairs files that distribution left incomplete when it was killed, when the host lost power or when its disk was full.
 * Distribution writes links and manifests in place, so an empty link is possible (every request for it fails with 500, also
 * the push that would write it again), and a truncated manifest (which is never written again, because it exists). Layers are
 * renamed into place and always complete.
 *
 * Runs before every start, while nothing writes, and for one repository when distribution responds with an error of the storage
 * (gate/repairs.ts). Then files of the last seconds are unchanged: distribution may be writing them.
 *
 * The path of the link of a layer or manifest contains its digest, so the link of a complete blob is written again.
 * Distribution writes the index entry of a tag before the tag itself, so the newest complete entry is the value that the tag
 * had or was about to get.
 */
import { hash } from 'node:crypto';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { accountFor } from '../confined.ts';
import { writeDurably } from '../durable-files.ts';
import { isDigest } from '../registry.ts';
import { createDamage } from './damage.ts';
import { hexOf, type Layout, namesIn } from './layout.ts';
import { digestsIn, layersOf, mayExist, repositoriesIn, type Repository, revisionsOf, tagsOf } from './storage.ts';

const linkBytes = 'sha256:'.length + 64;
/** Larger than any manifest that distribution accepts. */
const manifestBytes = 4 * 1024 * 1024;
/** A blob that was written this long before the most recent write is complete. */
const suspectMs = 600_000;

interface Pass {
  layout: Layout;
  /** Files that were written after this time are unchanged. */
  before: number;
  repaired: number;
  /** Incomplete files that are too young. */
  pending: number;
}

/** Repairs all repositories; a damaged file ends the repair of its registry only. Nothing else may write meanwhile. */
export async function repair(layout: Layout, log: Logger): Promise<void> {
  const { tolerate } = createDamage(log);
  let manifests = 0;
  await tolerate(async () => void (manifests = await removeTruncatedManifests(layout)));
  const pass: Pass = { layout, before: Number.POSITIVE_INFINITY, repaired: 0, pending: 0 };
  for (const prefix of await namesIn(layout.repositories)) {
    await tolerate(async () => {
      for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
        await repairLinks(pass, repository);
      }
    });
  }
  if (pass.repaired + manifests > 0) log.warn({ links: pass.repaired, manifests }, 'incomplete files repaired');
}

/** Distribution writes a file in milliseconds, so an older one stays incomplete. */
const writingMs = 2000;

/** `pending`: distribution may be writing a file that is incomplete now. */
export type Repair = 'repaired' | 'pending' | 'sound';

/** Repairs the links and tags of one repository. */
export function repairRepository(layout: Layout, repository: Repository): Promise<Repair> {
  return repairOnline(layout, (pass) => repairLinks(pass, repository));
}

/** Removes a manifest whose bytes do not match its digest. `reference`: its tag or digest. */
export function repairManifest(layout: Layout, repository: Repository, reference: string): Promise<Repair> {
  return repairOnline(layout, (pass) => repairReference(pass, repository, reference));
}

async function repairOnline(layout: Layout, work: (pass: Pass) => Promise<void>): Promise<Repair> {
  const pass: Pass = { layout, before: Date.now() - writingMs, repaired: 0, pending: 0 };
  await work(pass);
  if (pass.repaired > 0) return 'repaired';
  return pass.pending > 0 ? 'pending' : 'sound';
}

async function repairLinks(pass: Pass, repository: Repository): Promise<void> {
  for (const folder of [layersOf(repository), revisionsOf(repository)]) {
    for (const digest of await digestsIn(folder)) await repairLink(pass, join(folder, hexOf(digest)), digest);
  }
  await repairTags(pass, repository);
}

/** Writes an incomplete link again; without a blob it is removed, so that a push can write both. */
async function repairLink(pass: Pass, folder: string, digest: string): Promise<void> {
  const link = join(folder, 'link');
  if (!(await isIncomplete(pass, link))) return;
  if (await mayExist(pass.layout.data(digest))) await writeDurably(link, digest, accountFor('registry'));
  else await rm(folder, { recursive: true, force: true });
}

/** Counts the file, if it is to be repaired or too young. */
async function isIncomplete(pass: Pass, link: string): Promise<boolean> {
  const found = await stat(link).catch(() => null);
  if (!found || found.size === linkBytes) return false;
  if (found.mtimeMs > pass.before) pass.pending += 1;
  else pass.repaired += 1;
  return found.mtimeMs <= pass.before;
}

async function repairTags(pass: Pass, repository: Repository): Promise<void> {
  for (const name of await namesIn(tagsOf(repository))) {
    const folder = join(tagsOf(repository), name);
    const index = join(folder, 'index/sha256');
    for (const digest of await digestsIn(index)) await repairLink(pass, join(index, hexOf(digest)), digest);
    // A tag without this file was deleted, or its creation was not finished.
    const current = join(folder, 'current/link');
    if (await mayExist(current)) {
      if (!(await isIncomplete(pass, current))) continue;
    } else if (pass.before < Number.POSITIVE_INFINITY) continue;
    const newest = await newestLink(index);
    if (newest && (await mayExist(current))) await writeDurably(current, newest, accountFor('registry'));
    else await rm(folder, { recursive: true, force: true });
  }
}

async function repairReference(pass: Pass, repository: Repository, reference: string): Promise<void> {
  const link = join(tagsOf(repository), reference, 'current/link');
  const digest = isDigest(reference) ? reference : await readFile(link, 'utf8').catch(() => '');
  if (!isDigest(digest)) return;
  const data = await stat(pass.layout.data(digest)).catch(() => null);
  if (!data || data.size > manifestBytes || (await matches(pass.layout, digest))) return;
  if (data.mtimeMs > pass.before) {
    pass.pending += 1;
    return;
  }
  await rm(pass.layout.blob(digest), { recursive: true, force: true });
  pass.repaired += 1;
}

async function newestLink(index: string): Promise<string | null> {
  let newest: { digest: string; at: number } | null = null;
  for (const digest of await digestsIn(index)) {
    const link = await stat(join(index, hexOf(digest), 'link')).catch(() => null);
    if (link && link.mtimeMs >= (newest?.at ?? 0)) newest = { digest, at: link.mtimeMs };
  }
  return newest?.digest ?? null;
}

/** Removes small blobs from the last minutes before the kill whose bytes do not match their digest. */
async function removeTruncatedManifests(layout: Layout): Promise<number> {
  const small: { digest: string; at: number }[] = [];
  let last = 0;
  for (const folder of await namesIn(layout.blobs)) {
    for (const digest of await digestsIn(join(layout.blobs, folder))) {
      const data = await stat(layout.data(digest)).catch(() => null);
      last = Math.max(last, data?.mtimeMs ?? 0);
      if (data && data.size <= manifestBytes) small.push({ digest, at: data.mtimeMs });
    }
  }
  let count = 0;
  for (const { digest, at } of small) {
    if (at < last - suspectMs) continue;
    if (await matches(layout, digest)) continue;
    await rm(layout.blob(digest), { recursive: true, force: true });
    count += 1;
  }
  return count;
}

/** Whether the bytes of a blob match its digest; true for one that does not exist. */
async function matches(layout: Layout, digest: string): Promise<boolean> {
  const bytes = await readFile(layout.data(digest)).catch(() => null);
  return !bytes || `sha256:${hash('sha256', bytes)}` === digest;
}
