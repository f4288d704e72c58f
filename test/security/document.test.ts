/** docs/security.md names a test for each claim. These tests must exist, and it must name every file of this folder. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync('docs/security.md', 'utf8');
/** Rows of claims: their last cell names a test file. */
const rows = text.split('\n').filter((line) => /^\|.*`[\w./-]+\.test\.ts`:/.test(line));
const cited = rows.flatMap((row) => {
  const cell = row.split('|').at(-2)!;
  return [...cell.matchAll(/`([\w./-]+\.test\.ts)`: ((?:"[^"]+"(?:, )?)+)/g)].map(([, file, names]) => ({
    file: file!,
    names: [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => name!),
  }));
});

describe('docs/security.md', () => {
  it('has a test for each claim', () => {
    const claims = text.slice(text.indexOf('## Claims and tests'), text.indexOf('## Out of scope'));
    const unproven = claims
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.startsWith('| Claim ') && !rows.includes(line));
    expect(unproven).toEqual([]);
    expect(rows.length).toBeGreaterThan(10);
  });

  it.each(cited)('$file has the tests that it names', ({ file, names }) => {
    expect(existsSync(file)).toBe(true);
    const source = readFileSync(file, 'utf8');
    for (const name of names) expect(source.includes(name) ? null : name).toBeNull();
  });

  it('names every file of test/security', () => {
    const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'));
    const named = new Set(cited.map(({ file }) => file));
    const missing = files.filter((name) => name !== 'document.test.ts' && !named.has(`test/security/${name}`));
    expect(missing).toEqual([]);
  });
});
