/** Images of shares, with mounts of the host and without a file server. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { silentLogger } from '../../platform/log.ts';
import { imageStorage } from './images.ts';
import type { Jail } from './jail.ts';
import { layoutOf, makeFolders } from './layout.ts';
import type { ShareStorage } from './storage.ts';

const ids = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];
const nothing = async () => {};
const noJail = {
  seen: { share: (id: string) => id },
  prepare: nothing,
  mount: nothing,
  unmount: nothing,
  close: nothing,
};

describe.skipIf(!requires('xfsprogs', 'root'))(skipReason('xfsprogs', 'root') ?? 'images', () => {
  let dataDir: string;
  let storage: ShareStorage;
  const layout = () => layoutOf(dataDir);

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-images-'));
    await makeFolders(layout());
    storage = imageStorage(layout(), noJail as unknown as Jail, silentLogger);
    await storage.prepare();
  });
  afterEach(async () => {
    await storage.close();
    rmSync(dataDir, { recursive: true });
  });

  it('of the first shares are created at the same time, also after their protofile was removed', async () => {
    rmSync(join(layout().root, 'mkfs.proto'));
    await Promise.all(ids.map((id) => storage.ensure(id, { gib: 1, settledGib: undefined })));
    for (const id of ids) expect(statSync(layout().mount(id)).mode & 0o777).toBe(0o777);
  });

  it('larger than the filesystem supports are refused permanently, and leave nothing behind', async () => {
    const [id, other] = ids as [string, string];
    const gib = 8_000_000_000;
    const refusal = { retryable: false, customerMessage: 'the storage host cannot store a file share of this size' };
    await expect(storage.ensure(other, { gib, settledGib: undefined })).rejects.toMatchObject(refusal);
    expect(await storage.list()).toEqual([]);
    await storage.ensure(id, { gib: 1, settledGib: undefined });
    await expect(storage.ensure(id, { gib, settledGib: 1 })).rejects.toMatchObject(refusal);
    expect(statSync(layout().image(id)).size).toBe(1024 ** 3);
  });
});
