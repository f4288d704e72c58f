/** A full disk of the database: 503 with the reason, never 500; reads go on, and writes work again when there is space. */
import { execFileSync } from 'node:child_process';
import { globSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { copyPreparedCluster } from '../prepared-cluster.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { startSystemPostgres } from '../system-postgres.ts';
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

  const openSmallYard = async () => {
    const settings = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '0' };
    yard = await openYard(settings, { isEmpty: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m,mode=755', 'tmpfs', yard.dataDir]);
  };

  it('is answered with 503 and the reason, and ends when there is space again', { timeout: 120_000 }, async () => {
    await openSmallYard();
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

  it.skipIf(!requires('postgresql'))('is answered with 503 by a new connection', { timeout: 120_000 }, async () => {
    await openSmallYard();
    const postgres = await startSystemPostgres(yard.dataDir);
    await yard.start(['start'], { DATABASE_URL: postgres.url });
    expect((await yard.get(shares)).status).toBe(200);
    const operator = new pg.Client({ connectionString: postgres.url });
    operator.on('error', () => undefined);
    await operator.connect();
    const files = join(yard.dataDir, 'system-postgres/{base/*,global}/pg_internal.init*');
    const sessions = `pg_stat_activity where application_name = 'cloudyard api'`;
    const reason = /the database (has no space left on|cannot write to) its disk/;
    await until(
      async () => {
        // PostgreSQL removes them when the catalog changes. The next session writes them, which may be one of the worker.
        rmSync(filler(), { force: true });
        for (const file of globSync(files)) rmSync(file, { force: true });
        fill();
        await operator.query(`select pg_terminate_backend(pid) from ${sessions}`);
        const { status, body } = await yard.get(shares);
        expect(status).not.toBe(500);
        return reason.test(body.message);
      },
      60,
      'a connection that PostgreSQL refuses',
    );
    await operator.end();

    rmSync(filler());
    await until(async () => (await yard.get(shares)).status === 200, 30, 'connections');
  });
});
