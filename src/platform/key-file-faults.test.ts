/** Failing storage and power loss at every file operation on the key file. No key that was reported as written is lost. */
import { fstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordTree } from '../../test/power-loss.ts';
import { type Around, type StorageFault, storageFaults, withFault, withLayer } from '../../test/storage-layer.ts';
import { addKey, keyIds, openKeyFile, useKey } from './key-file.ts';

vi.mock('node:fs', async (original) => (await import('../../test/storage-layer.ts')).layered(await original()));

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-keys-'));
  file = join(folder, 'secret.keys');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What each command needs before, and what it changes. It returns the ids that must be there from then on. */
const commands: Record<string, { arrange(): string[]; act(file: string, ids: string[]): string[] }> = {
  'the first key is created': {
    arrange: () => [],
    act(at) {
      openKeyFile(at).encrypt(Buffer.from('secret'), 'context');
      return keyIds(at);
    },
  },
  'a key is added': {
    arrange: () => [addKey(file)],
    act: (at, ids) => [...ids, addKey(at)],
  },
  'another key is used': {
    arrange: () => [addKey(file), addKey(file)],
    act(at, ids) {
      useKey(at, ids[1]!);
      return ids;
    },
  },
};

describe.each(Object.entries(commands))('while %s', (_name, { arrange, act }) => {
  it.each(Object.keys(storageFaults) as StorageFault[])('%s any file operation loses no key', async (fault) => {
    let failed = 0;
    for (let at = 1; ; at++) {
      rmSync(file, { force: true });
      const ids = arrange();
      const { operation, error } = await withFault(fault, at, async () => act(file, ids));
      if (!operation) break;
      failed += 1;
      if (error === null) expect(keyIds(file)).toEqual(expect.arrayContaining(ids));
      if (ids.length > 0) expect(keyIds(file)).toEqual(expect.arrayContaining(ids));
      const later = act(file, ids);
      expect(keyIds(file)).toEqual(expect.arrayContaining(later));
      for (const line of readFileSync(file, 'utf8').trim().split('\n'))
        expect(line).toMatch(/^key-[0-9a-f]{8} \S{44}$/);
    }
    expect(failed).toBeGreaterThan(3);
  });

  it('a power loss at any moment loses no key', async () => {
    const copies = join(folder, 'copies');
    const tree = join(folder, 'live');
    mkdirSync(tree);
    file = join(tree, 'secret.keys');
    let phase: 'arrange' | 'act' = 'arrange';
    let losses = 0;
    const lose = (when: string, ids: string[]): void => {
      for (const { what, restore } of recorder.states()) {
        const copy = join(copies, String((losses += 1)));
        restore(copy);
        const there = join(copy, 'secret.keys');
        if (ids.length > 0) expect([when, what, keyIds(there)]).toEqual([when, what, expect.arrayContaining(ids)]);
        act(there, ids);
      }
    };
    let ids: string[] = [];
    const recorder = recordTree(tree, (what) => {
      if (phase === 'act') lose(what, ids);
    });
    await withLayer(recorder.layer, async () => {
      ids = arrange();
      phase = 'act';
      ids = act(file, ids);
    });
    lose('after the command', ids);
    recorder.close();
    expect(losses).toBeGreaterThan(10);
  });
});

describe('a folder whose sync failed', () => {
  it('is synced before a later process encrypts with the key', async () => {
    const tree = join(folder, 'live');
    mkdirSync(tree);
    file = join(tree, 'secret.keys');
    const recorder = recordTree(tree, () => {});
    let failures = 0;
    const failFirstSync: Around = (operation, perform) => {
      const [target] = operation.targets;
      const isFolder = operation.name === 'fsyncSync' && fstatSync(target as number).isDirectory();
      if (!isFolder || failures > 0) return recorder.layer(operation, perform);
      failures += 1;
      throw Object.assign(new Error('EIO: injected'), { code: 'EIO' });
    };
    const encrypt = () => openKeyFile(file).encrypt(Buffer.from('secret'), 'context');
    await withLayer(failFirstSync, async () => {
      expect(encrypt).toThrow('(EIO)');
      encrypt();
    });
    const ids = keyIds(file);
    for (const { what, restore } of recorder.states()) {
      const copy = join(folder, 'copies', what.replaceAll('/', ' '));
      restore(copy);
      expect([what, keyIds(join(copy, 'secret.keys'))]).toEqual([what, ids]);
    }
    recorder.close();
    expect(failures).toBe(1);
  });
});
