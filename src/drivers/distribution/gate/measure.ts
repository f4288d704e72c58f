/** Measures a registry on the disk, including unfinished uploads. */
import { join } from 'node:path';
import { type Layout, namesIn } from '../layout.ts';
import { linkedDigests, readableBytes, repositoriesIn, tagsOf, uploadsOf } from '../storage.ts';

export interface Upload {
  repository: string;
  bytes: number;
}

export interface Measured {
  /** The size of every linked blob, each blob once. */
  bytes: number;
  /** Repositories, links and tags: each needs a few inodes. */
  objects: number;
  /** By id. */
  uploads: Map<string, Upload>;
}

/** Measures the registry with this prefix. Damaged files, and those that disappear meanwhile, count as absent. */
export async function measure(layout: Layout, prefix: string): Promise<Measured> {
  const digests = new Set<string>();
  const uploads = new Map<string, Upload>();
  let objects = 0;
  for (const repository of await repositoriesIn(layout.registry(prefix))) {
    const links = await linkedDigests(repository);
    for (const digest of links) digests.add(digest);
    objects += 1 + links.length + (await namesIn(tagsOf(repository))).length;
    for (const id of await namesIn(uploadsOf(repository))) {
      const bytes = (await readableBytes(join(uploadsOf(repository), id, 'data'))) ?? 0;
      uploads.set(id, { repository: repository.name, bytes });
    }
  }
  let bytes = 0;
  for (const digest of digests) bytes += (await readableBytes(layout.data(digest))) ?? 0;
  return { bytes, objects, uploads };
}
