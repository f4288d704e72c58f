/**
 * Garbage collection by mark and sweep, beside pushes and pulls. distribution's own wants a registry that is read-only,
 * and leaves links of layers behind, by which a later push believes that a blob is there.
 *
 * Invariants. A link goes before its blob does, so who asks for a blob is told the truth. A link goes only from a
 * repository where nobody can be in the middle of a push (`AskForHold`, no upload that was written to lately): a push
 * that found a blob there may still put the manifest that names it. A blob is never deleted at once but moved to the
 * trash, and deleted by a later pass that finds no link to it; one that got a link meanwhile is moved back. So what a
 * manifest names is never lost, whenever it was put.
 *
 * A manifest may name any digest, so a link is only given back where this pass or a crash took one (`swept`): otherwise
 * a manifest that names a blob of another registry would open it.
 *
 * How it fails: any step may be the last one; the next pass begins anew from what is on disk. A repository with a
 * manifest that cannot be read is left as it is.
 */
import { rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { refuseAborted } from '../command.ts';
import type { AskForHold, RegistryContents } from '../registry.ts';
import { accountFor } from '../confined.ts';
import { makeFolder, writeDurably } from '../durable-files.ts';
import { hexOf, type Layout, namesIn } from './layout.ts';
import {
  digestsIn,
  layersOf,
  linksIn,
  type Manifest,
  readManifest,
  removeFolder,
  removeLink,
  repositoriesIn,
  type Repository,
  revisionsOf,
  sweepLink,
  sweptFile,
  tagsWithDigests,
  uploadsOf,
  writtenAt,
} from './storage.ts';

export interface CollectOptions {
  layout: Layout;
  ask: AskForHold;
  signal: AbortSignal;
  /** How long what nothing needs is kept, seconds. */
  patience: number;
  log: Logger;
}

/** What a repository has, and what of it no manifest names. */
interface Marked {
  prefix: string;
  repository: Repository;
  manifests: Manifest[];
  layers: Set<string>;
  loose: string[];
}

export async function collect(options: CollectOptions): Promise<RegistryContents[]> {
  const { layout, signal } = options;
  const trashed = new Set(await digestsIn(layout.trash));
  const marked: Marked[] = [];
  for (const prefix of (await namesIn(layout.repositories)).sort()) {
    for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
      refuseAborted(signal);
      await purgeUploads(options, repository);
      const found = await mark(layout, prefix, repository);
      await restoreLinks(options, found, trashed);
      await sweepLinks(options, found);
      marked.push(found);
    }
  }
  await forgetClosed(options);
  const linked = new Set([...marked.flatMap(digestsOf), ...(await quarantined(layout))]);
  await emptyTrash(options, trashed, linked);
  await sweepBlobs(options, linked);
  return contentsOf(options, marked);
}

const maxUploadMs = 86_400_000;
const closedMs = 3_600_000;

const digestsOf = ({ layers, manifests }: Marked) => [...layers, ...manifests.map(({ digest }) => digest)];

async function mark(layout: Layout, prefix: string, repository: Repository): Promise<Marked> {
  const layers = new Set(await linksIn(layersOf(repository)));
  const revisions = await linksIn(revisionsOf(repository));
  const manifests: Manifest[] = [];
  // One by one: a registry may hold gigabytes of them.
  for (const digest of revisions) {
    const manifest = await readManifest(layout, digest);
    if (manifest) manifests.push(manifest);
  }
  const needed = new Set([...revisions, ...manifests.flatMap(({ references }) => references)]);
  const loose = manifests.length < revisions.length ? [] : [...layers].filter((digest) => !needed.has(digest));
  return { prefix, repository, manifests, layers, loose };
}

/** A manifest that was put in the very moment in which a link went has it back. */
async function restoreLinks(options: CollectOptions, found: Marked, trashed: Set<string>): Promise<void> {
  const { layout, patience } = options;
  const folder = layersOf(found.repository);
  const needed = new Set(found.manifests.flatMap(({ references }) => references));
  for (const digest of await digestsIn(folder)) {
    const at = await writtenAt(sweptFile(folder, digest));
    if (!at) continue;
    if (!found.layers.has(digest) && needed.has(digest)) {
      if (trashed.has(digest)) await untrash(layout, digest);
      if (await writtenAt(join(layout.blob(digest), 'data'))) {
        await writeDurably(join(folder, hexOf(digest), 'link'), digest, accountFor('registry'));
        found.layers.add(digest);
      }
    }
    // As long as no push from before the sweep can be going on.
    if (found.layers.has(digest)) await rm(sweptFile(folder, digest), { force: true });
    else if (at.getTime() < Date.now() - patience * 1000) await removeLink(folder, hexOf(digest));
  }
}

/** Tokens live for minutes; after that nobody can push to a registry that was removed. */
async function forgetClosed({ layout }: CollectOptions): Promise<void> {
  for (const prefix of await namesIn(layout.marks)) {
    const at = await writtenAt(layout.closed(prefix));
    if (at && at.getTime() < Date.now() - closedMs) await rm(layout.closed(prefix), { force: true });
  }
}

/** Removes uploads that nobody has gone on with for the patience time, or that have not ended in a day. */
async function purgeUploads({ layout, patience, log }: CollectOptions, repository: Repository): Promise<void> {
  const folder = uploadsOf(repository);
  let purged = 0;
  for (const id of await namesIn(folder)) {
    const [data, begun, made] = await Promise.all(
      ['data', 'startedat', ''].map((file) => writtenAt(join(folder, id, file))),
    );
    if (!made) continue;
    const last = Math.max(...[data, begun, made].map((at) => at?.getTime() ?? 0));
    if (last >= Date.now() - patience * 1000 && (begun ?? made).getTime() >= Date.now() - maxUploadMs) continue;
    await removeFolder(layout, join(folder, id));
    purged += 1;
  }
  if (purged > 0) log.info({ repository: repository.folder, uploads: purged }, 'abandoned uploads removed');
}

async function sweepLinks(options: CollectOptions, found: Marked): Promise<void> {
  const { layout, ask, patience, log } = options;
  const { prefix, repository } = found;
  const isOld = async (file: string) => ((await writtenAt(file))?.getTime() ?? 0) < Date.now() - patience * 1000;
  const old = [];
  for (const digest of found.loose) {
    if (await isOld(join(layersOf(repository), hexOf(digest), 'link'))) old.push(digest);
  }
  if (old.length === 0 || (await hasLiveUpload(repository, isOld))) return;
  const hold = await ask(prefix, repository.name);
  if (!hold) return;
  try {
    // Anew: until the hold a push may have ended.
    const { loose } = await mark(layout, prefix, repository);
    const still = new Set(loose);
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

async function hasLiveUpload({ folder }: Repository, isOld: (file: string) => Promise<boolean>): Promise<boolean> {
  for (const id of await namesIn(join(folder, '_uploads'))) {
    for (const file of ['data', 'startedat']) if (!(await isOld(join(folder, '_uploads', id, file)))) return true;
  }
  return false;
}

/** What was put aside keeps its blobs, too. */
async function quarantined(layout: Layout): Promise<string[]> {
  const digests = [];
  for (const name of await namesIn(layout.quarantine)) {
    for (const repository of await repositoriesIn(join(layout.quarantine, name))) {
      digests.push(...(await linksIn(layersOf(repository))), ...(await linksIn(revisionsOf(repository))));
    }
  }
  return digests;
}

/** Deletes what an earlier pass moved to the trash, and moves back what has a link by now. */
async function emptyTrash(options: CollectOptions, trashed: Set<string>, linked: Set<string>): Promise<void> {
  const { layout, patience } = options;
  for (const digest of trashed) {
    refuseAborted(options.signal);
    const at = await writtenAt(layout.trashed(digest));
    if (linked.has(digest)) await untrash(layout, digest);
    else if (at && at.getTime() < Date.now() - patience * 1000) {
      await rm(layout.trashed(digest), { recursive: true, force: true });
    }
  }
}

/** Moves blobs without a link to the trash, and right back those that got a link since this pass looked. */
async function sweepBlobs(options: CollectOptions, linked: Set<string>): Promise<void> {
  const { layout, patience, signal, log } = options;
  const moved = new Set<string>();
  for (const folder of await namesIn(layout.blobs)) {
    refuseAborted(signal);
    for (const digest of await digestsIn(join(layout.blobs, folder))) {
      if (linked.has(digest)) continue;
      const at = await writtenAt(join(layout.blob(digest), 'data'));
      if (at && at.getTime() >= Date.now() - patience * 1000) continue;
      await trash(layout, digest);
      moved.add(digest);
    }
  }
  if (moved.size === 0) return;
  for (const prefix of await namesIn(layout.repositories)) {
    for (const repository of await repositoriesIn(join(layout.repositories, prefix))) {
      for (const folder of [layersOf(repository), revisionsOf(repository)]) {
        for (const digest of await linksIn(folder)) if (moved.delete(digest)) await untrash(layout, digest);
      }
    }
  }
  log.info({ blobs: moved.size }, 'blobs that nothing refers to moved to the trash');
}

async function trash(layout: Layout, digest: string): Promise<void> {
  await rm(layout.trashed(digest), { recursive: true, force: true });
  const now = new Date();
  // Its age in the trash counts from now.
  await utimes(layout.blob(digest), now, now);
  await rename(layout.blob(digest), layout.trashed(digest));
}

/** Unless it was uploaded anew meanwhile. */
async function untrash(layout: Layout, digest: string): Promise<void> {
  await makeFolder(dirname(layout.blob(digest)), accountFor('registry'));
  await rename(layout.trashed(digest), layout.blob(digest)).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code ?? '')) throw error;
  });
}

async function contentsOf({ layout }: CollectOptions, marked: Marked[]): Promise<RegistryContents[]> {
  const byPrefix = new Map<string, RegistryContents>();
  const sizes = new Map<string, number | null>();
  for (const prefix of await namesIn(layout.repositories)) {
    byPrefix.set(prefix, { prefix, repositories: [], blobs: new Map() });
  }
  for (const found of marked) {
    const contents = byPrefix.get(found.prefix);
    if (!contents) continue;
    const manifests = [];
    for (const { digest, size } of found.manifests) {
      const pushedAt = await writtenAt(join(revisionsOf(found.repository), hexOf(digest), 'link'));
      if (pushedAt) manifests.push({ digest, size, pushedAt });
    }
    const tags = await tagsWithDigests(found.repository);
    contents.repositories.push({ name: found.repository.name, manifests, tags });
    for (const digest of digestsOf(found)) {
      if (!sizes.has(digest)) sizes.set(digest, await sizeOf(join(layout.blob(digest), 'data')));
      const size = sizes.get(digest);
      if (size != null) contents.blobs.set(digest, size);
    }
  }
  return [...byPrefix.values()];
}

async function sizeOf(file: string): Promise<number | null> {
  return (await stat(file).catch(() => null))?.size ?? null;
}
