/**
 * Reads and changes the storage of distribution directly. Distribution keeps no copy in memory (process.ts) and reads a
 * link for each request, so removals here take effect for clients at once.
 *
 * A repository is a folder with `_layers/sha256/<hex>/link` (blobs that it may serve), `_manifests/revisions/sha256/
 * <hex>/link` (its manifests), `_manifests/tags/<tag>/current/link` (the digest of a tag) and `_uploads/<id>/`.
 */
import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { orNone } from '../../platform/or-none.ts';
import { isDigest, type RegistryRemoval } from '../registry.ts';
import { renameDurably, syncPath, writeDurably } from '../durable-files.ts';
import { isDamage } from './damage.ts';
import { checkedTag, hexOf, type Layout, namesIn } from './layout.ts';

export interface Repository {
  /** Below the registry's prefix, such as `team/app`. */
  name: string;
  folder: string;
}

/** A manifest. Clients decide how many digests it names, so only one at a time may be kept. */
export interface Manifest {
  digest: string;
  /** Bytes of the manifest and of the blobs that it refers to, each digest once. */
  size: number;
  references: string[];
  /** The manifests that an index lists, with their bytes. */
  images: Map<string, number>;
}

/** What is kept of a manifest. */
export interface KnownManifest extends Pick<Manifest, 'digest' | 'size'> {
  isIndex: boolean;
}

/** Every repository of a registry's folder. */
export async function repositoriesIn(registry: string, above = ''): Promise<Repository[]> {
  const found: Repository[] = [];
  for (const name of (await namesIn(join(registry, above))).sort()) {
    if (name.startsWith('_')) continue;
    const path = above === '' ? name : `${above}/${name}`;
    const folder = join(registry, path);
    const inside = await namesIn(folder);
    if (inside.some((each) => each.startsWith('_'))) found.push({ name: path, folder });
    if (inside.some((each) => !each.startsWith('_'))) found.push(...(await repositoriesIn(registry, path)));
  }
  return found;
}

/** The repositories of all registries in a folder, sorted by prefix. */
export async function* repositoriesBelow(folder: string): AsyncGenerator<Repository> {
  for (const prefix of (await namesIn(folder)).sort()) yield* await repositoriesIn(join(folder, prefix));
}

/** The folders of a repository with its links to blobs and to manifests, its tags, and its unfinished uploads. */
export const layersOf = ({ folder }: Repository) => join(folder, '_layers/sha256');
export const revisionsOf = ({ folder }: Repository) => join(folder, '_manifests/revisions/sha256');
export const tagsOf = ({ folder }: Repository) => join(folder, '_manifests/tags');
export const uploadsOf = ({ folder }: Repository) => join(folder, '_uploads');

/** The digests that have an entry in a folder. */
export async function digestsIn(folder: string): Promise<string[]> {
  return (await namesIn(folder)).map((hex) => `sha256:${hex}`).filter(isDigest);
}

/** The digests that have a link in a folder: distribution deletes a link but not the folder that contains it. */
export async function linksIn(folder: string): Promise<string[]> {
  return withLink(folder, async (file) => (await writtenAt(file)) !== null);
}

/** The digests that a repository has a link to, which may be damaged: blobs, and manifests. */
export async function linkedDigests(repository: Repository): Promise<string[]> {
  return [...(await withLink(layersOf(repository), mayExist)), ...(await withLink(revisionsOf(repository), mayExist))];
}

/** Reads of links that wait for a thread. A repository may have 100,000, and all reads of a process take turns. */
const concurrentReads = 16;

async function withLink(folder: string, hasFile: (file: string) => Promise<boolean>): Promise<string[]> {
  const digests = await digestsIn(folder);
  const found: string[] = [];
  for (let i = 0; i < digests.length; i += concurrentReads) {
    const some = digests.slice(i, i + concurrentReads);
    const have = await Promise.all(some.map((digest) => hasFile(join(folder, hexOf(digest), 'link'))));
    found.push(...some.filter((_, j) => have[j]));
  }
  return found;
}

/** Also true if that is not known: what refers to a file that does not exist is removed. */
export function mayExist(file: string): Promise<boolean> {
  return writtenAt(file).then(
    (at) => at !== null,
    () => true,
  );
}

/** The time of the last write to a file; null: the file does not exist. @throws if that is not known */
export async function writtenAt(file: string): Promise<Date | null> {
  return (await statOf(file))?.mtime ?? null;
}

/** Bytes of a file; null: the file does not exist. @throws if that is not known */
export async function sizeOf(file: string): Promise<number | null> {
  return (await statOf(file))?.size ?? null;
}

/** As `sizeOf`, and 0 for a damaged file. */
export async function readableBytes(file: string): Promise<number | null> {
  try {
    return await sizeOf(file);
  } catch (error) {
    if (isDamage(error)) return 0;
    throw error;
  }
}

async function statOf(file: string): Promise<Stats | null> {
  return stat(file).catch(orNone(null));
}

/** The tags of a repository that are complete, sorted by name. `pushedAt`: when the tag was last set. */
export async function tagsWithDigests(
  repository: Repository,
): Promise<{ name: string; digest: string; pushedAt: Date }[]> {
  const tags = [];
  for (const name of (await namesIn(tagsOf(repository))).sort()) {
    const digest = await digestOfTag(repository, name);
    const pushedAt = await writtenAt(linkOfTag(repository, name));
    if (digest && pushedAt) tags.push({ name, digest, pushedAt });
  }
  return tags;
}

const linkOfTag = (repository: Repository, name: string) => join(tagsOf(repository), name, 'current/link');

/** Null if the tag does not exist or its link is incomplete. @throws if that is not known */
async function digestOfTag(repository: Repository, name: string): Promise<string | null> {
  const digest = (await readFile(linkOfTag(repository, name), 'utf8').catch(orNone(''))).trim();
  return isDigest(digest) ? digest : null;
}

/** Null if the blob does not exist or is not a manifest. @throws if it is damaged */
export async function readManifest(layout: Layout, digest: string): Promise<Manifest | null> {
  const path = layout.data(digest);
  // An error of the read itself has no path.
  const data = await readFile(path).catch((error: Error) => orNone(null)(Object.assign(error, { path })));
  if (data === null) return null;
  try {
    const manifest = JSON.parse(data.toString('utf8')) as Record<string, unknown>;
    const { config, layers, manifests, blobs, subject, fsLayers } = manifest;
    // In every format: image manifests, indexes, artifacts, and Docker schema 1.
    const contents = descriptorsIn(config, layers, blobs, fsLayers);
    const images = descriptorsIn(manifests);
    return {
      ...{ digest, size: sumOf(data.length, contents.values()), images },
      references: [...contents.keys(), ...images.keys(), ...descriptorsIn(subject).keys()],
    };
  } catch {
    return null;
  }
}

/**
 * The sizes of the manifests of a repository. That of an index is the sum of its images, which may be indexes, as in the
 * size from a push event. Reads each index again. @throws if one is damaged
 */
export async function sizesWithImages(layout: Layout, manifests: KnownManifest[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  const indexes = new Map<string, Index>();
  for (const { digest, size, isIndex } of manifests) {
    if (isIndex) indexes.set(digest, { digest, size, nested: [], isStarted: false });
    else sizes.set(digest, size);
  }
  for (const index of indexes.values()) {
    const images = (await readManifest(layout, index.digest))?.images ?? [];
    for (const [image, claimed] of images) {
      const nested = indexes.get(image);
      if (nested) index.nested.push(nested);
      else index.size = sumOf(index.size, [sizes.get(image) ?? claimed]);
    }
  }
  // Not recursive: clients may nest indexes to any depth. An index is summed when it is on top again, after its indexes.
  const stack = [...indexes.values()];
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    const next = top.isStarted ? [] : top.nested.filter(({ isStarted }) => !isStarted);
    top.isStarted = true;
    for (const index of next) stack.push(index);
    if (next.length > 0) continue;
    stack.pop();
    if (sizes.has(top.digest)) continue;
    const ofIndexes = top.nested.map(({ digest }) => sizes.get(digest) ?? 0);
    sizes.set(top.digest, sumOf(top.size, ofIndexes));
  }
  return sizes;
}

interface Index {
  digest: string;
  /** Without those of `nested`. */
  size: number;
  /** The indexes of the repository that it lists. */
  nested: Index[];
  isStarted: boolean;
}

/** The sizes in a manifest come from the client that pushed it and may be arbitrary. */
function sumOf(first: number, others: Iterable<number>): number {
  let sum = first;
  for (const each of others) sum += each;
  return Math.min(sum, Number.MAX_SAFE_INTEGER);
}

/** The sizes of descriptors, by digest. Each value is a descriptor or a list of them. */
function descriptorsIn(...values: unknown[]): Map<string, number> {
  const list = (value: unknown) => (Array.isArray(value) ? value : value ? [value] : []);
  const found = new Map<string, number>();
  for (const each of values.flatMap(list) as Record<string, unknown>[]) {
    const digest = each['digest'] ?? each['blobSum'];
    const size = each['size'];
    if (isDigest(digest)) found.set(digest, Number.isSafeInteger(size) && Number(size) > 0 ? Number(size) : 0);
  }
  return found;
}

/**
 * Removes a repository, or a manifest with its tags, or a tag unless a push has moved it to another manifest. Folders are moved away
 * first, because a push may write to them.
 */
export async function removeContents(layout: Layout, removal: RegistryRemoval): Promise<void> {
  const { prefix, digest, tag } = removal;
  const repository = { name: removal.repository, folder: layout.repository(prefix, removal.repository) };
  if (tag !== null) {
    const isCurrent = (await digestOfTag(repository, checkedTag(tag))) === digest;
    return isCurrent ? removeFolder(layout, join(tagsOf(repository), tag)) : undefined;
  }
  if (digest !== null) {
    for (const each of await tagsWithDigests(repository)) {
      if (each.digest === digest) await removeFolder(layout, join(tagsOf(repository), each.name));
    }
    return removeFolder(layout, join(revisionsOf(repository), hexOf(digest)));
  }
  // Repositories below it are kept. Manifests go first, so that none refers to a layer that is gone.
  for (const part of ['_manifests', '_layers', '_uploads']) await removeFolder(layout, join(repository.folder, part));
}

/** Takes a folder out of service permanently with one rename, then deletes it. */
export async function removeFolder(layout: Layout, folder: string): Promise<void> {
  const aside = join(layout.removed, randomUUID());
  await renameDurably(folder, aside).catch(orNone(undefined));
  await rm(aside, { recursive: true, force: true });
}

/** The file that marks a recently removed link to a layer. */
export function sweptFile(folder: string, digest: string): string {
  return join(folder, hexOf(digest), 'swept');
}

/** Removes a link to a layer, and marks the removal. */
export async function sweepLink(folder: string, digest: string): Promise<void> {
  await writeDurably(sweptFile(folder, digest), digest);
  await rm(join(folder, hexOf(digest), 'link'), { force: true });
  await syncPath(join(folder, hexOf(digest)));
}

/** Removes a link; succeeds as well if it does not exist. Survives a crash of the host. */
export async function removeLink(folder: string, name: string): Promise<void> {
  await rm(join(folder, name), { recursive: true, force: true });
  await syncPath(folder).catch(orNone(undefined));
}
