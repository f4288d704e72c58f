import { appendFileSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createSessionCounters } from './session-counters.ts';

it('sessions are counted once, also if the log cannot be opened for a while', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-sessions-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [log, aside] = [join(folder, 'access.log'), join(folder, 'aside')];
  const counters = createSessionCounters(log);
  const sessions = async () => (await counters.read(['one'])).get('one')!.totalConnections;
  expect(await sessions()).toBe(0);
  appendFileSync(log, 'one 10 20 200\none 10 20 200\n');
  expect(await sessions()).toBe(2);
  renameSync(log, aside);
  // Fails with ELOOP, as every file fails while the process has no descriptor left.
  symlinkSync(log, log);
  await expect(sessions()).rejects.toThrow('ELOOP');
  renameSync(aside, log);
  appendFileSync(log, 'one 10 20 200\n');
  expect(await sessions()).toBe(3);
});
