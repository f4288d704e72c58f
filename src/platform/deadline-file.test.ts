import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeDeadline } from './deadline-file.ts';

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-deadline-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'own', 'until');
}

it('readers see the old time or the new one', () => {
  const file = newFile();
  writeDeadline(file, '99.50');
  const { ino } = statSync(file);
  writeDeadline(file, '100.25');
  expect(readFileSync(file, 'utf8')).toBe('0000000000100.25\n');
  expect(statSync(file).ino).not.toBe(ino);
});

it('without space for another file, the file is overwritten', () => {
  const file = newFile();
  writeDeadline(file, '99.50');
  const { ino } = statSync(file);
  mkdirSync(`${file}.new`);
  writeDeadline(file, '100.25');
  expect(readFileSync(file, 'utf8')).toBe('0000000000100.25\n');
  expect(statSync(file).ino).toBe(ino);
});

it('without space, a file that does not exist fails with the first error', () => {
  const file = newFile();
  mkdirSync(`${file}.new`, { recursive: true });
  expect(() => writeDeadline(file, '1')).toThrow(/EISDIR.*until\.new/);
});
