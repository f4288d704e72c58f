import { expect, it } from 'vitest';
import type { FileCopy, Manifest } from './format.ts';
import { formatManifest, parseManifest } from './manifest.ts';

const attributes = { mode: 0o600, uid: 0, gid: 0, size: 9, mtimeMs: 1.5 };
const empty: Manifest = {
  ...({ format: 1, id: '20261122T030000.000Z', createdAt: '2026-11-22T03:00:00.000Z' } as const),
  ...({ version: '1', reason: 'schedule', schema: { migration: '0000_initial', when: 1 } } as const),
  ...{
    tables: [],
    sequences: [],
    configuration: [{ name: 'a.yaml', text: 'a:\n  - "tables":[\n' }],
    keys: null,
    files: null,
  },
};
const table = (name: string) => ({ schema: 'public', name, columns: ['id', 'ä'], rows: 1, blocks: ['a', 'b'] });
const file = (path: string): FileCopy => ({ ...attributes, path, blocks: [null, 'c'.repeat(64)] });

/** Counts the turns of the event loop that the work left to others. */
async function withTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let [turns, ended] = [0, false];
  const count = () => {
    turns += 1;
    if (!ended) setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  ended = true;
  return { result, turns };
}

it.each([
  ['without tables and files', empty],
  ['with an empty list of files', { ...empty, files: [] }],
  [
    'with tables and files',
    { ...empty, tables: [table('a'), table('b\n{')], files: [file('x'), file('"files":[\n"ü')] },
  ],
])('a manifest %s is read as it was written, and is JSON', async (_, manifest) => {
  const bytes = Buffer.concat(await formatManifest(manifest));
  expect(await parseManifest(bytes, 'name')).toEqual(manifest);
  expect(JSON.parse(bytes.toString())).toEqual({ checksum: expect.any(String), manifest });
});

it('a manifest that was changed or cut short is refused, wherever that is', async () => {
  const bytes = Buffer.concat(await formatManifest({ ...empty, tables: [table('a')], files: [file('x')] }));
  for (let at = 0; at < bytes.length; at += 7) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    await expect(parseManifest(changed, 'name')).rejects.toThrow('the manifest name is damaged or was cut short');
    await expect(parseManifest(bytes.subarray(0, at), 'name')).rejects.toThrow('was cut short');
  }
});

it('a manifest of 120,000 files is written and read while the process serves others', async () => {
  const files = Array.from({ length: 120_000 }, (_, n) => file(`registries/storage/${n}`));
  const written = await withTurns(() => formatManifest({ ...empty, files }));
  const bytes = Buffer.concat(written.result);
  const read = await withTurns(() => parseManifest(bytes, 'name'));
  expect(read.result.files!.length).toBe(files.length);
  expect(written.turns).toBeGreaterThan(3);
  expect(read.turns).toBeGreaterThan(3);
});
