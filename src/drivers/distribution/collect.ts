/**
 * Garbage collection by mark and sweep, concurrent with pushes and pulls. The collector of distribution requires a
 * read-only registry and keeps the links of deleted layers, so a later push would skip a blob that does not exist.
 *
 * Invariant: a blob that a manifest refers to is never lost, whenever the manifest was put.
 * - A link is removed before its blob, so a link never points to a missing blob.
 * - A link is removed only while no push to its repository can be in progress (`RequestHold`, and no recently written
 *   upload): a push that found the blob may still put a manifest that refers to it.
 * - A blob is first moved to the trash. A later pass deletes it if it still has no link, and moves it back otherwise.
 * - The folder of a removed link is removed only while no push to its repository can be in progress, too: distribution
 *   creates the folder before the link, and would find it missing.
 * - A link is restored only where a pass removed one (`swept`). Otherwise a manifest that refers to a blob of another
 *   registry would grant access to it.
 *
 * Failure modes: a pass may stop after any step; the next pass starts again from the files on disk. The links of a
 * repository with an unreadable manifest are unchanged. The pass leaves a registry at its first damaged file (damage.ts): its
 * links count, and its contents are not returned. A damaged blob without a link is kept. If the links of a registry cannot be
 * listed, no blob is removed. A pass that cannot determine for another reason whether a file exists fails.
 */
import { rename, rm, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { refuseAborted } from '../command.ts';
import { accountFor } from '../confined.ts';
import { makeFolder, writeDurably } from '../durable-files.ts';
import type { RegistryContents, RequestHold } from '../registry.ts';
import type { Damage } from './damage.ts';
import { hexOf, type Layout, namesIn } from './layout.ts';
import {
  digestsIn,
  layersOf,
  linkedDigests,
  linksIn,
  type KnownManifest,
  readManifest,
  removeFolder,
  removeLink,
  repositoriesBelow,
  repositoriesIn,
  type Repository,
  revisionsOf,
  sizeOf,
  sizesWithImages,
  sweepLink,
  sweptFile,
  tagsWithDigests,
  uploadsOf,
  writtenAt,
} from './storage.ts';

interface CollectOptions {
  layout: Layout;
  requestHold: RequestHold;
  signal: AbortSignal;
  /** Seconds until unreferenced data and abandoned uploads are removed. */
  patience: number;
  log: Logger;
  damage: Damage;
}

/**
 * The content of a repository. `revisions`: its manifests, the unreadable ones too. `references`: the layers, also those whose link was
 * removed, that manifests refer to. `loose`: layers that no manifest refers to.
 */
type Marked = Awaited<ReturnType<typeof mark>>;

/**
 * Removes unreferenced data, and returns the contents of every registry without damage. @throws DriverError, retryable, when
 * aborted
 */
export async function collect(options: CollectOptions): Promise<RegistryContents[]> {
  const { layout, damage } = options;
  const trashed = new Set(await digestsIn(layout.trash));
  const linked = new Set<string>();
  const contents: RegistryContents[] = [];
  const sizes = new Map<string, number | null>();
  const damaged: string[] = [];
  for (const prefix of (await namesIn(layout.repositories)).sort()) {
    const isSound = await damage.tolerate(async () => {
      const marked = await collectRegistry(options, prefix, trashed);
      contents.push(await contentsOf(layout, prefix, marked, sizes));
      for (const digest of marked.flatMap(digestsOf)) linked.add(digest);
    });
    if (!isSound) damaged.push(join(layout.repositories, prefix));
  }
  await removeClosedMarks(options);
  await damage.tolerate(async () => {
    for (const registry of damaged) {
      for (const repository of await repositoriesIn(registry)) {
        for (const digest of await linkedDigests(repository)) linked.add(digest);
      }
    }
    for (const digest of await quarantined(layout)) linked.add(digest);
    await emptyTrash(options, trashed, linked);
    await sweepBlobs(options, linked);
  });
  damage.endPass();
  return contents;
}

/** Removes abandoned uploads and unneeded links. Returns the content of each repository. */
async function collectRegistry(options: CollectOptions, prefix: string, trashed: Set<string>): Promise<Marked[]> {
  const { layout, signal } = options;
  const marked: Marked[] = [];
  for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
    refuseAborted(signal);
    await purgeUploads(options, repository);
    const found = await mark(layout, prefix, repository);
    const expired = await restoreLinks(options, found, trashed);
    await sweepLinks(options, found, expired);
    marked.push(found);
  }
  return marked;
}

const maxUploadSeconds = 86_400;
const closedSeconds = 3600;

const isOlder = (at: Date, seconds: number) => at.getTime() < Date.now() - seconds * 1000;

const digestsOf = ({ layers, revisions }: Marked) => [...layers, ...revisions];

async function mark(layout: Layout, prefix: string, repository: Repository) {
  const layers = new Set(await linksIn(layersOf(repository)));
  const revisions = await linksIn(revisionsOf(repository));
  const isKnown = new Set([...layers, ...(await digestsIn(layersOf(repository)))]);
  const manifests: KnownManifest[] = [];
  const references = new Set<string>();
  // One by one: a registry may hold gigabytes of them.
  let areAllKnown = true;
  for (const digest of revisions) {
    const manifest = await readManifest(layout, digest);
    if (manifest) {
      manifests.push({ digest, size: manifest.size, isIndex: manifest.images.size > 0 });
      for (const each of manifest.references) if (isKnown.has(each)) references.add(each);
    }
    // A lost manifest refers to nothing.
    else if (await isStored(layout, digest)) areAllKnown = false;
  }
  const needed = new Set([...revisions, ...references]);
  const loose = areAllKnown ? [...layers].filter((digest) => !needed.has(digest)) : [];
  return { prefix, repository, revisions, manifests, references, layers, loose };
}

/** Whether a blob exists, also in the trash. */
async function isStored(layout: Layout, digest: string): Promise<boolean> {
  return ((await writtenAt(layout.data(digest))) ?? (await writtenAt(layout.trashed(digest)))) !== null;
}

/**
 * Restores removed links that a manifest refers to: it was put while they were being removed. Returns the digests of removed links
 * whose marks have expired: no push that started before the sweep can be in progress.
 */
async function restoreLinks(options: CollectOptions, found: Marked, trashed: Set<string>): Promise<string[]> {
  const { layout, patience } = options;
  const folder = layersOf(found.repository);
  const expired: string[] = [];
  for (const digest of await digestsIn(folder)) {
    const at = await writtenAt(sweptFile(folder, digest));
    if (!at) continue;
    if (!found.layers.has(digest) && found.references.has(digest)) {
      if (trashed.has(digest)) await untrash(layout, digest);
      if (await writtenAt(layout.data(digest))) {
        await writeDurably(join(folder, hexOf(digest), 'link'), digest, accountFor('registry'));
        found.layers.add(digest);
      }
    }
    if (found.layers.has(digest)) await rm(sweptFile(folder, digest), { force: true });
    else if (isOlder(at, patience)) expired.push(digest);
  }
  return expired;
}

/** Removes the marks of registries that were removed so long ago that all tokens for them have expired. */
async function removeClosedMarks({ layout }: CollectOptions): Promise<void> {
  for (const prefix of await namesIn(layout.marks)) {
    const at = await writtenAt(layout.closed(prefix));
    if (at && isOlder(at, closedSeconds)) await rm(layout.closed(prefix), { force: true });
  }
}

/** Removes uploads that were not written to for the patience time, or that are older than a day. */
async function purgeUploads({ layout, patience, log }: CollectOptions, repository: Repository): Promise<void> {
  const folder = uploadsOf(repository);
  let purged = 0;
  for (const id of await namesIn(folder)) {
    const [lastByteAt, startedAt, createdAt] = await Promise.all(
      ['data', 'startedat', ''].map((file) => writtenAt(join(folder, id, file))),
    );
    if (!createdAt) continue;
    const isIdle = [lastByteAt, startedAt, createdAt].every((at) => !at || isOlder(at, patience));
    if (!isIdle && !isOlder(startedAt ?? createdAt, maxUploadSeconds)) continue;
    await removeFolder(layout, join(folder, id));
    purged += 1;
  }
  if (purged > 0) log.info({ repository: repository.folder, uploads: purged }, 'abandoned uploads removed');
}

/** Removes old links that no manifest needs, and the folders of links whose marks have expired: a push may write a link there. */
async function sweepLinks(options: CollectOptions, found: Marked, expired: string[]): Promise<void> {
  const { layout, requestHold, patience, log } = options;
  const { prefix, repository } = found;
  const isOld = async (file: string) => {
    const at = await writtenAt(file);
    return !at || isOlder(at, patience);
  };
  const old = [];
  for (const digest of found.loose) {
    if (await isOld(join(layersOf(repository), hexOf(digest), 'link'))) old.push(digest);
  }
  if (old.length + expired.length === 0 || (await hasLiveUpload(repository, isOld))) return;
  const hold = await requestHold(prefix, repository.name);
  if (!hold) return;
  try {
    // Mark again: a push may have ended before the hold.
    const { loose, layers } = await mark(layout, prefix, repository);
    const still = new Set(loose);
    for (const digest of expired) {
      if (new Date() >= hold.until) break;
      if (!layers.has(digest)) await removeLink(layersOf(repository), hexOf(digest));
    }
    for (const digest of old) {
      if (!still.has(digest)) continue;
      if (new Date() >= hold.until) break;
      await sweepLink(layersOf(repository), digest);
      found.layers.delete(digest);
    }
  } finally {
    await hold.release();
  }
  log.debug({ prefix, repository: repository.name, links: old.length }, 'links without a manifest removed');
}

async function hasLiveUpload(repository: Repository, isOld: (file: string) => Promise<boolean>): Promise<boolean> {
  for (const id of await namesIn(uploadsOf(repository))) {
    for (const file of ['data', 'startedat']) if (!(await isOld(join(uploadsOf(repository), id, file)))) return true;
  }
  return false;
}

/** The digests that repositories in quarantine refer to: their blobs are kept. */
async function quarantined({ quarantine }: Layout): Promise<string[]> {
  const digests = [];
  for await (const repository of repositoriesBelow(quarantine)) digests.push(...(await linkedDigests(repository)));
  return digests;
}

/** Moves back blobs that have a link again, and deletes the others, and those that were uploaded again. */
async function emptyTrash(options: CollectOptions, trashed: Set<string>, linked: Set<string>): Promise<void> {
  const { layout, patience, signal, damage } = options;
  for (const digest of trashed) {
    refuseAborted(signal);
    await damage.tolerate(async () => {
      if (linked.has(digest)) {
        await untrash(layout, digest);
        if (!(await writtenAt(layout.data(digest)))) return;
      }
      const at = await writtenAt(layout.trashed(digest));
      if (at && isOlder(at, patience)) await rm(layout.trashed(digest), { recursive: true, force: true });
    });
  }
}

/** Moves blobs without a link to the trash, then moves back blobs that got a link during this pass. */
async function sweepBlobs(options: CollectOptions, linked: Set<string>): Promise<void> {
  const { layout, patience, signal, log, damage } = options;
  const moved = new Set<string>();
  const sweepBlob = async (digest: string) => {
    // Distribution creates the folder before it moves the bytes there.
    const at = (await writtenAt(layout.data(digest))) ?? (await writtenAt(layout.blob(digest)));
    if (!at || !isOlder(at, patience)) return;
    await trash(layout, digest);
    moved.add(digest);
  };
  for (const folder of await namesIn(layout.blobs)) {
    refuseAborted(signal);
    await damage.tolerate(async () => {
      for (const digest of await digestsIn(join(layout.blobs, folder))) {
        if (!linked.has(digest)) await damage.tolerate(() => sweepBlob(digest));
      }
    });
  }
  if (moved.size === 0) return;
  for await (const repository of repositoriesBelow(layout.repositories)) {
    for (const digest of await linkedDigests(repository)) if (moved.delete(digest)) await untrash(layout, digest);
  }
  log.info({ blobs: moved.size }, 'unreferenced blobs moved to the trash');
}

async function trash(layout: Layout, digest: string): Promise<void> {
  await rm(layout.trashed(digest), { recursive: true, force: true });
  const now = new Date();
  // Its age in the trash counts from now.
  await utimes(layout.blob(digest), now, now);
  await rename(layout.blob(digest), layout.trashed(digest));
}

/** Moves a blob back, unless it was uploaded again in the meantime. */
async function untrash(layout: Layout, digest: string): Promise<void> {
  await makeFolder(dirname(layout.blob(digest)), accountFor('registry'));
  await rename(layout.trashed(digest), layout.blob(digest)).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code ?? '')) throw error;
  });
}

async function contentsOf(
  layout: Layout,
  prefix: string,
  marked: Marked[],
  sizes: Map<string, number | null>,
): Promise<RegistryContents> {
  const contents: RegistryContents = { prefix, repositories: [], blobs: new Map() };
  for (const found of marked) {
    const manifests = [];
    const whole = await sizesWithImages(layout, found.manifests);
    for (const { digest } of found.manifests) {
      const pushedAt = await writtenAt(join(revisionsOf(found.repository), hexOf(digest), 'link'));
      if (pushedAt) manifests.push({ digest, size: whole.get(digest)!, pushedAt });
    }
    const tags = await tagsWithDigests(found.repository);
    contents.repositories.push({ name: found.repository.name, manifests, tags });
    for (const digest of digestsOf(found)) {
      if (!sizes.has(digest)) sizes.set(digest, await sizeOf(layout.data(digest)));
      const size = sizes.get(digest);
      if (size != null) contents.blobs.set(digest, size);
    }
  }
  return contents;
}
