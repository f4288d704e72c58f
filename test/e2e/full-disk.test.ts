/** A full disk of the database: 503 with the reason, never 500; reads go on, and writes work again when there is space. */
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { copyPreparedCluster } from '../prepared-cluster.ts';
import { openYard } from '../processes.ts';
import type { Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { defaultNetwork, newShare } from './storm.ts';

const shares = '/cloud/v1/file_shares/1/1';

describe.skipIf(!requires('root'))(skipReason('root') ?? 'a full disk of the database', () => {
  let yard: Yard;
  const filler = () => join(yard.dataDir, 'filler');
  const fill = () => {
    const { bavail, bsize } = statfsSync(yard.dataDir);
    expect(() => writeFileSync(filler(), Buffer.alloc(bavail * bsize + 1))).toThrow(/ENOSPC/);
  };
  afterEach(() => {
    execFileSync('umount', ['-l', yard.dataDir]);
    yard.cleanUp();
  });

  it('is answered with 503 and the reason, and ends when there is space again', { timeout: 120_000 }, async () => {
    const settings = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '0' };
    yard = await openYard(settings, { isEmpty: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m,mode=755', 'tmpfs', yard.dataDir]);
    await copyPreparedCluster(yard.dataDir);
    await yard.start(['start']);
    const share = newShare('share', await defaultNetwork(yard), { tags: { filler: 'x'.repeat(255) } });
    const first = await yard.post(shares, share);
    expect((await yard.ended(first)).state).toBe('FINISHED');
    fill();

    const refused: { status: number; message: string }[] = [];
    await until(
      async () => {
        const { status, body } = await yard.post(shares, share);
        if (status !== 200) refused.push({ status, message: body.message });
        return refused.length > 0;
      },
      60,
      'a write to fail',
    );
    expect(refused).toEqual([{ status: 503, message: expect.stringContaining('no space left on its disk') }]);
    const ready = await yard.get('/readyz');
    expect([ready.status, ready.body.message]).toEqual([503, 'the database has no space left on its disk']);
    expect((await yard.get(shares)).status).toBe(200);

    rmSync(filler());
    await until(async () => (await yard.get('/readyz')).status === 200, 30, 'readiness');
    const last = await yard.post(shares, share);
    expect((await yard.ended(last)).state).toBe('FINISHED');
  });
});
