/**
 * Repairs files that distribution left incomplete when it was killed. Distribution writes links and manifests in place, so
 * a kill can leave an empty link (every request for it fails with 500, also the push that would write it again) or a
 * truncated manifest (which is never written again, because it exists). Layers are renamed into place and always complete.
 *
 * Runs before every start, while nothing writes. Distribution writes the index entry of a tag before the tag itself, so
 * the newest complete entry is the value that the tag had or was about to get.
 */
import { createHash } from 'node:crypto';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { accountFor } from '../confined.ts';
import { writeDurably } from '../durable-files.ts';
import { hexOf, isDigest, type Layout, namesIn } from './layout.ts';
import { digestsIn, layersOf, repositoriesIn, type Repository, revisionsOf, sweepLink, tagsOf } from './storage.ts';

const linkBytes = 'sha256:'.length + 64;
/** Larger than any manifest that distribution accepts. */
const manifestBytes = 4 * 1024 * 1024;
/** A blob that was written this long before the most recent write is complete. */
const suspectMs = 600_000;

export async function repair(layout: Layout, log: Logger): Promise<void> {
  const repaired = { links: 0, tags: 0, manifests: 0 };
  for (const prefix of await namesIn(layout.repositories)) {
    for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
      repaired.links += await removeIncompleteLayers(layersOf(repository));
      repaired.links += await removeIncompleteLinks(revisionsOf(repository));
      repaired.tags += await repairTags(repository);
    }
  }
  repaired.manifests = await removeTruncatedManifests(layout);
  if (Object.values(repaired).some((count) => count > 0)) log.warn(repaired, 'incomplete files repaired');
}

/** Like `removeIncompleteLinks`; garbage collection restores the link if a manifest refers to the layer. */
async function removeIncompleteLayers(folder: string): Promise<number> {
  let count = 0;
  for (const digest of await digestsIn(folder)) {
    const link = await stat(join(folder, hexOf(digest), 'link')).catch(() => null);
    if (!link || link.size === linkBytes) continue;
    await sweepLink(folder, digest);
    count += 1;
  }
  return count;
}

/** Removes incomplete links and returns their number. */
async function removeIncompleteLinks(folder: string): Promise<number> {
  let count = 0;
  for (const hex of await namesIn(folder)) {
    const link = await stat(join(folder, hex, 'link')).catch(() => null);
    if (!link || link.size === linkBytes) continue;
    await rm(join(folder, hex), { recursive: true, force: true });
    count += 1;
  }
  return count;
}

async function repairTags(repository: Repository): Promise<number> {
  let count = 0;
  for (const name of await namesIn(tagsOf(repository))) {
    const folder = join(tagsOf(repository), name);
    await removeIncompleteLinks(join(folder, 'index/sha256'));
    const current = join(folder, 'current/link');
    if (isDigest(await readFile(current, 'utf8').catch(() => ''))) continue;
    const newest = await newestLink(join(folder, 'index/sha256'));
    if (newest && (await exists(current))) await writeDurably(current, newest, accountFor('registry'));
    else await rm(folder, { recursive: true, force: true });
    count += 1;
  }
  return count;
}

/** A tag without this file was deleted, or its creation was not finished. */
async function exists(current: string): Promise<boolean> {
  return (await stat(current).catch(() => null)) !== null;
}

async function newestLink(index: string): Promise<string | null> {
  let newest: { digest: string; at: number } | null = null;
  for (const digest of await digestsIn(index)) {
    const link = await stat(join(index, digest.slice('sha256:'.length), 'link')).catch(() => null);
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
      const data = await stat(join(layout.blob(digest), 'data')).catch(() => null);
      last = Math.max(last, data?.mtimeMs ?? 0);
      if (data && data.size <= manifestBytes) small.push({ digest, at: data.mtimeMs });
    }
  }
  let count = 0;
  for (const { digest, at } of small) {
    if (at < last - suspectMs) continue;
    const bytes = await readFile(join(layout.blob(digest), 'data')).catch(() => null);
    if (!bytes || `sha256:${createHash('sha256').update(bytes).digest('hex')}` === digest) continue;
    await rm(layout.blob(digest), { recursive: true, force: true });
    count += 1;
  }
  return count;
}
