import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { runsAsRoot } from '../drivers/confined.ts';

/** The nice value of an ordinary user's process after the call. */
function niceValue(before: number): number {
  const folder = mkdtempSync(join(tmpdir(), 'low-priority-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  copyFileSync(fileURLToPath(new URL('low-priority.ts', import.meta.url)), join(folder, 'low-priority.mts'));
  const script = `(await import('${folder}/low-priority.mts')).lowerPriority();
    console.log((await import('node:os')).getPriority())`;
  const args = ['-n', String(before), process.execPath, '--input-type=module', '-e', script];
  const account = runsAsRoot() ? { uid: 65_534, gid: 65_534 } : {};
  return Number(execFileSync('nice', args, { ...account, cwd: folder, encoding: 'utf8' }));
}

test('a process that has a lower priority than 10 keeps it', () => {
  expect(niceValue(19)).toBe(19);
});
