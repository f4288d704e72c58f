/** Repair of the files that distribution leaves incomplete when it is killed during a write. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { hexOf, type Layout } from './layout.ts';
import { newFolders } from './test-host.ts';
import { repair, repairManifest, repairRepository } from './repair.ts';
import { testStorage, type TestStorage } from './test-storage.ts';

let layout: Layout;
let storage: TestStorage;
const repository = () => join(layout.repositories, 'app-1/a');
const layerLink = (digest: string) => join(repository(), '_layers/sha256', hexOf(digest), 'link');
const current = (tag: string) => join(repository(), '_manifests/tags', tag, 'current/link');
const indexed = async (tag: string, digest: string, at: Date) => {
  const link = join(repository(), '_manifests/tags', tag, 'index/sha256', hexOf(digest), 'link');
  await mkdir(dirname(link), { recursive: true });
  await writeFile(link, digest);
  await utimes(link, at, at);
};

beforeEach(async () => {
  layout = await newFolders();
  storage = testStorage(layout);
});

it('leaves complete files unchanged', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  const manifest = await storage.image('app-1/a', 'v1', [layer]);
  await repair(layout, silentLogger);
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer);
  expect(await readFile(current('v1'), 'utf8')).toBe(manifest);
  for (const digest of [layer, manifest]) expect(existsSync(join(layout.blob(digest), 'data'))).toBe(true);
});

it('writes an empty link of a complete blob again', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  await writeFile(layerLink(layer), '');
  await repair(layout, silentLogger);
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer);
});

it('removes an empty link without a blob, so that a push can write it again', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  await writeFile(layerLink(layer), '');
  await rm(layout.blob(layer), { recursive: true });
  await repair(layout, silentLogger);
  expect(existsSync(layerLink(layer))).toBe(false);
});

it('keeps the link of a blob that cannot be read at the moment', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  await writeFile(layerLink(layer), '');
  const data = join(layout.blob(layer), 'data');
  await rm(data);
  // Fails with ELOOP, as a file of a broken disk or mount fails.
  await symlink(data, data);
  await repair(layout, silentLogger);
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer);
});

it('repairs the other registries if one has a damaged folder', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  await storage.layer('app-0/a', 'other');
  const folder = join(layout.repositories, 'app-0/a/_layers/sha256');
  await rm(folder, { recursive: true });
  await symlink(folder, folder);
  await writeFile(layerLink(layer), '');
  await repair(layout, silentLogger);
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer);
});

it('leaves a file of one repository that may be written at the moment unchanged', async () => {
  const layer = await storage.layer('app-1/a', 'layer');
  const one = { name: 'a', folder: repository() };
  await writeFile(layerLink(layer), layer.slice(0, 20));
  expect(await repairRepository(layout, one)).toBe('pending');
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer.slice(0, 20));
  await storage.age();
  expect(await repairRepository(layout, one)).toBe('repaired');
  expect(await readFile(layerLink(layer), 'utf8')).toBe(layer);
  expect(await repairRepository(layout, one)).toBe('sound');
});

it('removes the truncated manifest of a tag', async () => {
  const manifest = await storage.image('app-1/a', 'v1', []);
  await writeFile(join(layout.blob(manifest), 'data'), '{"sche');
  await storage.age();
  expect(await repairManifest(layout, { name: 'a', folder: repository() }, 'v1')).toBe('repaired');
  expect(existsSync(layout.blob(manifest))).toBe(false);
});

it('removes a truncated manifest', async () => {
  const manifest = await storage.image('app-1/a', 'v1', []);
  await writeFile(join(layout.blob(manifest), 'data'), '{"sche');
  await repair(layout, silentLogger);
  expect(existsSync(layout.blob(manifest))).toBe(false);
});

it('sets an incomplete tag to the newest digest of its index', async () => {
  const [before, after] = [await storage.image('app-1/a', 'v1', []), await storage.blob('the next manifest')];
  await indexed('v1', before, new Date(Date.now() - 5000));
  await indexed('v1', after, new Date());
  await writeFile(current('v1'), '');
  await repair(layout, silentLogger);
  expect(await readFile(current('v1'), 'utf8')).toBe(after);
});

it('removes an incomplete tag without an index', async () => {
  await storage.image('app-1/a', 'v1', []);
  await writeFile(current('v1'), 'sha256:');
  await repair(layout, silentLogger);
  expect(existsSync(dirname(dirname(current('v1'))))).toBe(false);
});
