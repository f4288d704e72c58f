/** Garbage collection, concurrent with pushes and removals. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger, type Logger } from '../../platform/log.ts';
import type { RequestHold } from '../registry.ts';
import { collect } from './collect.ts';
import { createDamage, type Damage } from './damage.ts';
import { hexOf, type Layout } from './layout.ts';
import { newFolders } from './test-host.ts';
import { removeContents } from './storage.ts';
import { testStorage, type TestStorage } from './test-storage.ts';

let layout: Layout;
let storage: TestStorage;
let damage: Damage;
/** The log of damaged files. */
const error = vi.fn<(fields: { file: string }) => void>();
const signal = new AbortController().signal;
const grantHold: RequestHold = async () => ({ until: new Date(Date.now() + 5000), release: async () => undefined });
const refuseHold: RequestHold = async () => null;

const pass = (requestHold: RequestHold = grantHold, patience = 60) =>
  collect({ layout, requestHold, signal, patience, log: silentLogger, damage });
const damagedFiles = () => error.mock.calls.map(([{ file }]) => file);
/** Makes every access fail with ELOOP, as that to a file on a broken disk fails with EIO. */
const breakFile = async (file: string) => {
  await rm(file, { recursive: true });
  await symlink(file, file);
};
const isStored = (digest: string) => existsSync(join(layout.blob(digest), 'data'));
const isLinked = (repository: string, digest: string) =>
  existsSync(join(layout.repositories, repository, '_layers/sha256', hexOf(digest), 'link'));
/** Enough passes to delete all garbage, with a long time between them. */
const passes = async (requestHold?: RequestHold) => {
  for (let i = 0; i < 3; i += 1) {
    await storage.age();
    await pass(requestHold);
  }
};

beforeEach(async () => {
  layout = await newFolders();
  storage = testStorage(layout);
  error.mockReset();
  damage = createDamage({ error } as unknown as Logger);
});

describe('a blob that a manifest refers to', () => {
  it('is kept, and is reported once with its size', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    await storage.layer('app-1/b', 'layer');
    const first = await storage.image('app-1/a', 'v1', [layer]);
    const second = await storage.image('app-1/b', 'v2', [layer]);
    await passes();
    const [found, ...others] = await pass();
    expect(others).toEqual([]);
    expect(found!.repositories.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(found!.repositories[0]!.tags).toMatchObject([{ name: 'v1', digest: first }]);
    expect(first).toBe(second);
    expect([...found!.blobs.keys()].sort()).toEqual([layer, first].sort());
    expect(found!.blobs.get(layer)).toBe(5);
    expect(found!.repositories[0]!.manifests[0]!.size).toBe(5 + found!.blobs.get(first)!);
  });

  it('is part of the size of an index for each of its images, which may be indexes, and of no manifest that only has it as its subject', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const image = await storage.image('app-1/a', 'v1', [layer]);
    const put = async (manifest: object) => {
      const text = JSON.stringify(manifest);
      const digest = await storage.blob(text);
      await storage.link('app-1/a', 'manifest', digest);
      return [digest, text.length] as const;
    };
    const absent = { digest: `sha256:${'0'.repeat(64)}`, size: 7 };
    const [other, bytesOfOther] = await put({ layers: [{ digest: layer, size: 5 }] });
    // Sizes in an index are claims: those of known images are not used.
    const listed = [image, other].map((digest) => ({ digest, size: 100 }));
    const [index, bytesOfIndex] = await put({ manifests: [...listed, absent] });
    const [outer, bytesOfOuter] = await put({ manifests: [{ digest: index, size: 100 }] });
    const [signature, bytesOfSignature] = await put({ subject: { digest: image, size: 100 } });
    const [found] = await pass();
    const sizeOf = (digest: string) => found!.repositories[0]!.manifests.find((each) => each.digest === digest)!.size;
    expect(sizeOf(other)).toBe(bytesOfOther + 5);
    expect(sizeOf(index)).toBe(bytesOfIndex + sizeOf(image) + sizeOf(other) + 7);
    expect(sizeOf(outer)).toBe(bytesOfOuter + sizeOf(index));
    expect(sizeOf(signature)).toBe(bytesOfSignature);
  });

  it('is kept, with its link, by a pass that cannot read the links of manifests', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const manifest = await storage.image('app-1/a', 'v1', [layer]);
    await storage.age();
    const link = join(layout.repositories, 'app-1/a/_manifests/revisions/sha256', hexOf(manifest), 'link');
    await breakFile(link);
    for (let i = 0; i < 3; i += 1) expect(await pass()).toEqual([]);
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([true, true]);
    expect(damagedFiles()).toEqual([link]);
  });

  it('is not moved while its link exists, also if it is a manifest that cannot be read', async () => {
    const digest = await storage.image('app-1/a', 'v1', [await storage.layer('app-1/a', 'layer')]);
    await truncate(join(layout.blob(digest), 'data'), 10);
    await storage.age();
    const folder = await stat(layout.blob(digest));
    await pass();
    expect((await stat(layout.blob(digest))).mtimeMs).toBe(folder.mtimeMs);
  });

  it('is deleted after its manifest: first the link, and the bytes after the patience time', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const digest = await storage.image('app-1/a', 'v1', [layer]);
    await removeContents(layout, { prefix: 'app-1', repository: 'a', digest, tag: null });
    await storage.age();
    const [found] = await pass();
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([false, false]);
    expect([...found!.blobs.keys()]).toEqual([]);
    expect(existsSync(layout.trashed(layer))).toBe(true);
    await pass();
    expect(existsSync(layout.trashed(layer))).toBe(true);
    await storage.age();
    await pass();
    expect(existsSync(layout.trashed(layer))).toBe(false);
  });

  it('is stored once after a push has uploaded it again', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const digest = await storage.image('app-1/a', 'v1', [layer]);
    await removeContents(layout, { prefix: 'app-1', repository: 'a', digest, tag: null });
    await storage.age();
    await pass();
    expect(existsSync(layout.trashed(layer))).toBe(true);
    await storage.layer('app-1/a', 'layer');
    await storage.image('app-1/a', 'v1', [layer]);
    await passes();
    expect([isStored(layer), existsSync(layout.trashed(layer))]).toEqual([true, false]);
  });

  it('is kept while another registry refers to it', async () => {
    const layer = await storage.layer('one-1/a', 'shared');
    await storage.layer('two-2/a', 'shared');
    const digest = await storage.image('one-1/a', 'v1', [layer]);
    await storage.image('two-2/a', 'v1', [layer]);
    await removeContents(layout, { prefix: 'one-1', repository: 'a', digest, tag: null });
    await passes();
    expect([isLinked('one-1/a', layer), isLinked('two-2/a', layer), isStored(layer)]).toEqual([false, true, true]);
  });

  it('is kept while a manifest of its repository is unreadable', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    await storage.link('app-1/a', 'manifest', await storage.blob('no manifest at all'));
    await passes();
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([true, true]);
  });

  it('is deleted after its manifest was lost, unless that is in the trash', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const manifest = await storage.image('app-1/a', 'v1', [layer]);
    await rename(layout.blob(manifest), layout.trashed(manifest));
    await storage.age();
    await pass();
    expect([isLinked('app-1/a', layer), isStored(layer), isStored(manifest)]).toEqual([true, true, true]);
    await rm(layout.blob(manifest), { recursive: true });
    await passes();
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([false, false]);
  });

  it('is kept while its registry is in quarantine', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    await storage.image('app-1/a', 'v1', [layer]);
    await rename(layout.registry('app-1'), join(layout.quarantine, 'app-1'));
    await passes();
    expect(isStored(layer)).toBe(true);
  });
});

describe('a push in progress', () => {
  it('keeps the layers that it found, while a hold is refused', async () => {
    const layer = await storage.layer('app-1/a', 'found by HEAD');
    await passes(refuseHold);
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([true, true]);
    await storage.image('app-1/a', 'v1', [layer]);
    await passes();
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([true, true]);
  });

  it('keeps the layers that it found, while an upload is in progress', async () => {
    const layer = await storage.layer('app-1/a', 'found by HEAD');
    await storage.age();
    const upload = join(layout.repositories, 'app-1/a/_uploads/some-id');
    await mkdir(upload, { recursive: true });
    await writeFile(join(upload, 'data'), 'half');
    await pass();
    expect(isLinked('app-1/a', layer)).toBe(true);
  });

  it('keeps layers and blobs that it has just uploaded', async () => {
    const layer = await storage.layer('app-1/a', 'new');
    const loose = await storage.blob('not linked yet');
    for (let i = 0; i < 3; i += 1) await pass();
    expect([isLinked('app-1/a', layer), isStored(layer), isStored(loose)]).toEqual([true, true, true]);
  });

  it('keeps the folder where it is about to move a blob', async () => {
    const folder = layout.blob(`sha256:${'a'.repeat(64)}`);
    await mkdir(folder, { recursive: true });
    await pass();
    expect(existsSync(folder)).toBe(true);
    await storage.age();
    await pass();
    expect(existsSync(folder)).toBe(false);
  });

  it('gets its layers back if it puts its manifest while the links are being removed', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const pushDuringRelease: RequestHold = async () => ({
      until: new Date(Date.now() + 5000),
      release: async () => void (await storage.image('app-1/a', 'v1', [layer])),
    });
    await storage.age();
    await pass(pushDuringRelease);
    expect(isLinked('app-1/a', layer)).toBe(false);
    await pass();
    expect([isLinked('app-1/a', layer), isStored(layer)]).toEqual([true, true]);
  });

  it('keeps the folder of a removed link, where it may be writing the link again', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const folder = join(layout.repositories, 'app-1/a/_layers/sha256', hexOf(layer));
    await storage.age();
    await pass();
    await storage.age();
    await pass(refuseHold);
    expect(existsSync(folder)).toBe(true);
    // Written before the hold, and after this pass has found it missing.
    await pass(async (...repository) => {
      await storage.link('app-1/a', 'layer', layer);
      return grantHold(...repository);
    });
    expect(isLinked('app-1/a', layer)).toBe(true);
    await storage.age();
    await pass();
    await storage.age();
    await pass();
    expect(existsSync(folder)).toBe(false);
  });

  it('gets back a blob that it links after its repository was scanned', async () => {
    const old = await storage.blob('an upload of the same bytes finds them there');
    const other = await storage.layer('zzz-2/a', 'loose');
    await storage.age();
    // While the last repository is swept, a push to the first one links a blob that this pass considers unlinked.
    await storage.link('app-1/a', 'layer', other);
    const linkDuringSweep: RequestHold = async () => {
      await storage.link('app-1/a', 'layer', old);
      return null;
    };
    await pass(linkDuringSweep);
    expect(isStored(old)).toBe(true);
  });

  it('loses no link after the hold expired', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    await storage.age();
    let released = 0;
    await pass(async () => ({ until: new Date(Date.now() - 1), release: async () => void (released += 1) }));
    expect([isLinked('app-1/a', layer), released]).toEqual([true, 1]);
  });
});

describe('a damaged file', () => {
  it.each([
    ['a layer', (layer: string) => layout.data(layer)],
    ['a manifest', (_: string, manifest: string) => layout.data(manifest)],
    ['a tag', () => join(layout.repositories, 'app-1/a/_manifests/tags/v1/current/link')],
    ['the links of a repository', () => join(layout.repositories, 'app-1/a/_layers/sha256')],
  ])('of %s is reported once, and the other registries are collected', async (_of, fileOf) => {
    const layer = await storage.layer('app-1/a', 'layer');
    const manifest = await storage.image('app-1/a', 'v1', [layer]);
    const loose = await storage.layer('other-2/a', 'loose');
    await storage.age();
    const file = fileOf(layer, manifest);
    await breakFile(file);
    for (let i = 0; i < 2; i += 1) expect(await pass()).toMatchObject([{ prefix: 'other-2' }]);
    expect(isLinked('other-2/a', loose)).toBe(false);
    expect(existsSync(layout.blob(layer))).toBe(true);
    expect(damagedFiles()).toEqual([file]);
    expect(damage.detail()).toBe(`; cannot read ${file}`);
  });

  it('of a blob without a link is kept and reported, and other blobs are deleted', async () => {
    const [broken, other] = [await storage.blob('broken'), await storage.blob('other')];
    await storage.age();
    const file = layout.data(broken);
    await breakFile(file);
    await pass();
    expect([existsSync(layout.blob(broken)), isStored(other)]).toEqual([true, false]);
    expect(damagedFiles()).toEqual([file]);
    await rm(file);
    await pass();
    expect(damage.detail()).toBe('');
  });

  it('that contains the links of a registry keeps all blobs', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const loose = await storage.blob('loose');
    await storage.age();
    await breakFile(join(layout.repositories, 'app-1/a/_layers/sha256'));
    await pass();
    expect([isStored(layer), isStored(loose)]).toEqual([true, true]);
  });
});

describe('removals', () => {
  it('remove a tag, a manifest with its tags, or a repository without those below it', async () => {
    const layer = await storage.layer('app-1/a', 'layer');
    const digest = await storage.image('app-1/a', 'v1', [layer]);
    await storage.image('app-1/a', 'v2', [layer]);
    await storage.image('app-1/a/b', 'v1', [await storage.layer('app-1/a/b', 'layer')]);
    const remove = (tag: string | null, of: string | null) =>
      removeContents(layout, { prefix: 'app-1', repository: 'a', digest: of, tag });
    const tags = async () => (await pass())[0]!.repositories.map((each) => [each.name, each.tags.map((t) => t.name)]);
    await remove('v1', digest);
    await remove('v1', digest);
    expect(await tags()).toEqual([
      ['a', ['v2']],
      ['a/b', ['v1']],
    ]);
    await remove(null, digest);
    expect(await tags()).toEqual([
      ['a', []],
      ['a/b', ['v1']],
    ]);
    await remove(null, null);
    await remove(null, null);
    expect(await tags()).toEqual([['a/b', ['v1']]]);
  });

  it('keep a tag that a push has moved to another manifest since the request', async () => {
    const [old, moved] = [await storage.image('app-1/a', 'v1', []), await storage.layer('app-1/a', 'layer')];
    const current = await storage.image('app-1/a', 'v1', [moved]);
    await removeContents(layout, { prefix: 'app-1', repository: 'a', digest: old, tag: 'v1' });
    expect((await pass())[0]!.repositories[0]!.tags).toMatchObject([{ name: 'v1', digest: current }]);
  });

  it('reject names that leave the registry', async () => {
    const removal = { prefix: 'app-1', repository: '../../x', digest: null, tag: null };
    await expect(removeContents(layout, removal)).rejects.toMatchObject({ retryable: false });
    await expect(
      removeContents(layout, { ...removal, repository: 'a', digest: 'sha256:x', tag: '..' }),
    ).rejects.toMatchObject({ retryable: false });
  });
});
