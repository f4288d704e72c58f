/**
 * Mends what a distribution that was killed left half written. It writes links and manifests in place, so one that dies
 * at that moment leaves an empty link (every request for it is then 500, also the push that would write it anew) or a
 * manifest that is cut off (and never written anew, because it is there). Layers are renamed into place, and are whole.
 *
 * Runs before every start, when nobody writes. An index entry of a tag is written before the tag itself, so the newest
 * whole one is what the tag was about to stand for, or stood for.
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
/** Larger than any manifest that it takes. */
const manifestBytes = 4 * 1024 * 1024;
/** What was written so long before the last write of all was whole by then. */
const doubtMs = 600_000;

export async function repair(layout: Layout, log: Logger): Promise<void> {
  const mended = { links: 0, tags: 0, manifests: 0 };
  for (const prefix of await namesIn(layout.repositories)) {
    for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
      mended.links += await mendLayers(layersOf(repository));
      mended.links += await mendLinks(revisionsOf(repository));
      mended.tags += await mendTags(repository);
    }
  }
  mended.manifests = await removeCutOff(layout);
  if (Object.values(mended).some((count) => count > 0)) log.warn(mended, 'what was half written has been mended');
}

/** As `mendLinks`; garbage collection gives a layer back to a manifest that names it. */
async function mendLayers(folder: string): Promise<number> {
  let count = 0;
  for (const digest of await digestsIn(folder)) {
    const link = await stat(join(folder, hexOf(digest), 'link')).catch(() => null);
    if (!link || link.size === linkBytes) continue;
    await sweepLink(folder, digest);
    count += 1;
  }
  return count;
}

/** Takes away what is no link, and returns how many. */
async function mendLinks(folder: string): Promise<number> {
  let count = 0;
  for (const hex of await namesIn(folder)) {
    const link = await stat(join(folder, hex, 'link')).catch(() => null);
    if (!link || link.size === linkBytes) continue;
    await rm(join(folder, hex), { recursive: true, force: true });
    count += 1;
  }
  return count;
}

async function mendTags(repository: Repository): Promise<number> {
  let count = 0;
  for (const name of await namesIn(tagsOf(repository))) {
    const folder = join(tagsOf(repository), name);
    await mendLinks(join(folder, 'index/sha256'));
    const current = join(folder, 'current/link');
    if (isDigest(await readFile(current, 'utf8').catch(() => ''))) continue;
    const newest = await newestLink(join(folder, 'index/sha256'));
    if (newest && (await wasThere(current))) await writeDurably(current, newest, accountFor('registry'));
    else await rm(folder, { recursive: true, force: true });
    count += 1;
  }
  return count;
}

/** Whether the tag was there at all: without this file it was deleted, or never quite made. */
async function wasThere(current: string): Promise<boolean> {
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

/** Small blobs of the last minutes before the end, whose bytes are not what they are named by. */
async function removeCutOff(layout: Layout): Promise<number> {
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
    if (at < last - doubtMs) continue;
    const bytes = await readFile(join(layout.blob(digest), 'data')).catch(() => null);
    if (!bytes || `sha256:${createHash('sha256').update(bytes).digest('hex')}` === digest) continue;
    await rm(layout.blob(digest), { recursive: true, force: true });
    count += 1;
  }
  return count;
}
