/** Writes storage in the format of distribution, for tests of pushes in progress. */
import { hash } from 'node:crypto';
import { chown, readdir, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { accountFor } from '../confined.ts';
import { makeFolder } from '../durable-files.ts';
import { hexOf, type Layout } from './layout.ts';

export function testStorage(layout: Layout) {
  const write = async (file: string, text: string) => {
    const account = accountFor('registry');
    await makeFolder(dirname(file), account);
    await writeFile(file, text);
    if (account) await chown(file, account.uid, account.gid);
  };
  const sizes = new Map<string, number>();
  /** Writes a blob without a link; returns its digest. */
  const blob = async (text: string): Promise<string> => {
    const digest = `sha256:${hash('sha256', text)}`;
    await write(join(layout.blob(digest), 'data'), text);
    sizes.set(digest, Buffer.byteLength(text));
    return digest;
  };
  const kinds = { layer: '_layers/sha256', manifest: '_manifests/revisions/sha256' };
  const link = (repository: string, kind: keyof typeof kinds, digest: string) =>
    write(join(layout.repositories, repository, kinds[kind], hexOf(digest), 'link'), digest);
  return {
    blob,
    link,
    /** Writes a blob and its link in a repository (`prefix/name`); returns the digest. */
    async layer(repository: string, text: string): Promise<string> {
      const digest = await blob(text);
      await link(repository, 'layer', digest);
      return digest;
    },
    /** Writes an image manifest with these layers, and a tag; returns the digest. */
    async image(repository: string, tag: string, layers: string[]): Promise<string> {
      const descriptor = (digest: string) => ({ digest, size: sizes.get(digest) ?? 0 });
      const manifest = await blob(JSON.stringify({ schemaVersion: 2, layers: layers.map(descriptor) }));
      await link(repository, 'manifest', manifest);
      await write(join(layout.repositories, repository, '_manifests/tags', tag, 'current/link'), manifest);
      return manifest;
    },
    /** Sets the times of all files to a day ago. */
    async age(): Promise<void> {
      const yesterday = new Date(Date.now() - 86_400_000);
      for (const folder of [layout.storage, layout.trash]) {
        for (const each of await readdir(folder, { recursive: true }))
          await utimes(join(folder, each), yesterday, yesterday);
      }
    },
  };
}

export type TestStorage = ReturnType<typeof testStorage>;
