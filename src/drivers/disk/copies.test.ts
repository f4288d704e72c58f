import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCopies } from './copies.ts';

const signal = new AbortController().signal;

describe('copies, while a client has many that take long', () => {
  let folder: string;
  let copies: ReturnType<typeof createCopies>;
  let long: Promise<boolean>[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cloudyard-copies-'));
    copies = createCopies(async () => false, 20);
    // `cp` waits for a writer.
    execFileSync('mkfifo', [join(folder, 'endless')]);
    long = Array.from({ length: 20 }, (_, i) => copy('endless', `long-${i}`));
  });
  afterEach(async () => {
    await copies.cancelAll();
    rmSync(folder, { recursive: true });
  });
  const copy = (from: string, to: string, clientId = 1) =>
    copies.copy({ ...{ clientId, bytes: 0 }, from: join(folder, from), to: join(folder, to) }, signal);

  it('of another client do not wait for them', async () => {
    writeFileSync(join(folder, 'image'), 'data');
    expect(await Promise.all(long)).not.toContain(true);
    await expect.poll(() => copy('image', 'copy', 2)).toBe(true);
  });

  it('that wait for their turn are cancelled at once', async () => {
    await Promise.all(long);
    await Promise.all([copies.cancel(join(folder, 'long-18')), copies.cancel(join(folder, 'long-19'))]);
  });
});
