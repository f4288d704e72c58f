/** Power loss at every file operation of a backup: one that was reported as complete can be read. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { recordTree } from '../../test/power-loss.ts';
import { withLayer } from '../../test/storage-layer.ts';
import { openBackupDirectory, readBackupDirectory } from './block-store.ts';
import { blocksOf, formatVersion, type Manifest } from './format.ts';

vi.mock('node:fs/promises', async (original) =>
  (await import('../../test/storage-layer.ts')).layered(await original()),
);

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'cloudyard-backups-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const [first, second] = ['20261122T030000.000Z', '20261123T030000.000Z'];

/** Different texts for each backup, and one that both share. */
async function backUp(store: string, id: string): Promise<void> {
  const directory = await openBackupDirectory(store);
  const blocks = [];
  for (const text of ['shared', `rows of ${id}`, `more rows of ${id}`]) {
    blocks.push(await directory.putBlock(Buffer.from(text)));
  }
  const manifest: Manifest = {
    ...{ format: formatVersion, id, createdAt: '2026-11-22T03:00:00Z', version: '1', reason: 'command' as const },
    schema: { migration: '0001_first', when: 1 },
    tables: [{ schema: 'public', name: 'one', columns: ['id'], rows: 1, blocks }],
    ...{ sequences: [], configuration: [], keys: null, files: null },
  };
  await directory.putManifest(manifest);
}

async function expectReadable(store: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const directory = await readBackupDirectory(store);
  expect(await directory.list()).toEqual(expect.arrayContaining(ids));
  // Others that are listed are complete, too.
  for (const id of await directory.list()) {
    for (const hash of blocksOf(await directory.manifest(id))) await directory.block(hash);
  }
}

it.each([
  ['the first backup', [], first],
  ['another backup', [first], second],
])('%s is complete or absent after a power loss at any moment', async (_, earlier, id) => {
  const tree = join(folder, 'live');
  mkdirSync(tree);
  let [losses, isRunning] = [0, false];
  const lose = async (when: string, complete: string[]): Promise<void> => {
    for (const { what, restore } of recorder.states()) {
      const copy = join(folder, `copy ${(losses += 1)}`);
      restore(copy);
      const store = join(copy, 'backups');
      await expectReadable(store, complete).catch((error: Error) => {
        throw new Error(`${when}, the disk has ${what}: ${error.message}`, { cause: error });
      });
      await backUp(store, id);
      await expectReadable(store, [...earlier, id]);
      rmSync(copy, { recursive: true });
    }
  };
  const recorder = recordTree(tree, async (when) => {
    if (isRunning) await lose(when, earlier);
  });
  await withLayer(recorder.layer, async () => {
    for (const each of earlier) await backUp(join(tree, 'backups'), each);
    isRunning = true;
    await backUp(join(tree, 'backups'), id);
  });
  await lose('after the backup', [...earlier, id]);
  recorder.close();
  expect(losses).toBeGreaterThan(10);
});
