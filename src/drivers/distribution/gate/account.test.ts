import { mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Layout } from '../layout.ts';
import { newFolders } from '../test-host.ts';
import { removeFolder } from '../storage.ts';
import { testStorage, type TestStorage } from '../test-storage.ts';
import { createAccount, limits as productionLimits } from './account.ts';

let layout: Layout;
let storage: TestStorage;
/** Tests do not wait between measurements. */
const limits = { ...productionLimits, measureEveryMs: 0 };
const grant = { mayPush: true, limit: 1000, issuedAt: 1 };

const upload = async (id: string, bytes: number) => {
  const path = join(layout.repositories, 'app-1/a/_uploads', id);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'data'), '');
  await truncate(join(path, 'data'), bytes);
};

beforeEach(async () => {
  layout = await newFolders();
  storage = testStorage(layout);
});

describe('the account of a registry', () => {
  it('starts from the disk: it counts each blob once, and unfinished uploads', async () => {
    const layer = await storage.layer('app-1/a', 'x'.repeat(100));
    await storage.layer('app-1/b', 'x'.repeat(100));
    await storage.layer('other-2/a', 'y'.repeat(500));
    await upload('one', 300);
    const account = createAccount(layout, 'app-1', limits);
    await account.ready(grant);
    expect(account.used()).toBe(400);
    expect(layer).toMatch(/^sha256:/);
  });

  it('is known for a registry with a damaged blob', async () => {
    const layer = await storage.layer('app-1/a', 'x'.repeat(100));
    await storage.layer('app-1/a', 'y'.repeat(50));
    await rm(layout.data(layer));
    // Fails with ELOOP.
    await symlink('data', layout.data(layer));
    const account = createAccount(layout, 'app-1', limits);
    await account.ready(grant);
    expect(account.used()).toBe(50);
  });

  it('accepts bytes up to exactly the limit from concurrent requests', async () => {
    await upload('one', 300);
    const account = createAccount(layout, 'app-1', limits);
    await account.ready(grant);
    const writer = { ended: false, abort: () => undefined };
    for (let i = 0; i < 20; i += 1) account.open(`upload-${i}`, 'a').writers.add(writer);
    const ids = Array.from({ length: 20 }, (_, i) => (i % 2 ? `upload-${i}` : null));
    const taken = await Promise.all(ids.map((id) => account.take(id, 'a', 100)));
    expect(taken.filter(Boolean)).toHaveLength(7);
    expect(account.used()).toBe(1000);
  });

  it('measures the registry again before it refuses bytes', async () => {
    await upload('one', 900);
    const account = createAccount(layout, 'app-1', limits);
    await account.ready(grant);
    expect(await account.take('two', 'a', 200)).toBe(false);
    await removeFolder(layout, join(layout.repositories, 'app-1/a/_uploads/one'));
    expect(await account.take('two', 'a', 200)).toBe(true);
  });

  it('counts a finished upload once, as a blob', async () => {
    const account = createAccount(layout, 'app-1', limits);
    await account.ready(grant);
    await account.take('one', 'a', 600);
    account.finish('one');
    expect([account.used(), account.uploads.size]).toEqual([600, 0]);
  });

  it('applies the limit of the most recently issued token', async () => {
    const account = createAccount(layout, 'app-1', limits);
    await account.ready({ ...grant, limit: 10, issuedAt: 5 });
    await account.ready({ ...grant, limit: 5000, issuedAt: 4 });
    expect(await account.take(null, 'a', 11)).toBe(false);
    await account.ready({ ...grant, limit: 5000, issuedAt: 6 });
    expect(await account.take(null, 'a', 11)).toBe(true);
  });

  it('measures again, and applies the limit of a new token, after the clock was set back', async () => {
    const account = createAccount(layout, 'app-1', productionLimits);
    const issuedAt = Date.now() / 1000;
    await account.ready({ ...grant, limit: 10, issuedAt });
    const clock = vi.spyOn(Date, 'now').mockReturnValue((issuedAt - 86_400) * 1000);
    onTestFinished(() => clock.mockRestore());
    expect(await account.take(null, 'a', 11)).toBe(false);
    await account.ready({ ...grant, limit: 5000, issuedAt: issuedAt - 86_400 });
    expect(await account.take(null, 'a', 11)).toBe(true);
  });

  it('limits concurrent new uploads, and layers, manifests and tags', async () => {
    const account = createAccount(layout, 'app-1', { ...limits, uploads: 3, objects: 5 });
    await account.ready(grant);
    const reasons = await Promise.all(Array.from({ length: 5 }, () => account.limitReached(true)));
    expect(reasons).toEqual([null, null, null, 'uploads', 'uploads']);
    for (let i = 0; i < 3; i += 1) account.releasePlace();
    // Five objects: a repository, two layers, a manifest and a tag.
    const layers = [await storage.layer('app-1/a', 'one'), await storage.layer('app-1/a', 'two')];
    await storage.image('app-1/a', 'v1', layers);
    const full = createAccount(layout, 'app-1', { ...limits, uploads: 3, objects: 5 });
    await full.ready(grant);
    expect(await full.limitReached(false)).toBe('objects');
  });
});
