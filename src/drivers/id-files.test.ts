import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { removeDurably } from './id-files.ts';

it('a file in quarantine is never replaced by a later one of its name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-files-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [file, quarantine] = [join(folder, 'spec.json'), join(folder, 'quarantine')];
  mkdirSync(quarantine);
  for (const text of ['first', 'second']) {
    writeFileSync(file, text);
    await removeDurably(file, quarantine);
  }
  await removeDurably(file, quarantine);
  const kept = readdirSync(quarantine).map((name) => readFileSync(join(quarantine, name), 'utf8'));
  expect(kept.sort()).toEqual(['first', 'second']);
});
