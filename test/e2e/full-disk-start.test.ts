/** A start on a full data directory serves shares and load balancers, and unmounts nothing. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { copyPreparedCluster } from '../prepared-cluster.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { serveBoth, type Served } from './balanced.ts';

vi.setConfig({ testTimeout: 300_000 });

const parts = ['haproxy', 'nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a start on a full disk', () => {
  let yard: Yard;
  let postgres: EmbeddedPostgres;
  let served: Served;
  const filler = () => join(yard.dataDir, 'filler');

  afterEach(async () => {
    served?.close();
    try {
      await postgres?.stop();
      for (const path of [...yard.mounts(), yard.dataDir]) execFileSync('umount', ['-l', path]);
    } finally {
      yard.cleanUp();
    }
  });

  it.each([
    ['adopts shares and load balancers, and continues to serve them', 'kill'],
    ['reads, and serves load balancers that were stopped when there is space', 'stop'],
  ] as const)('%s', async (_, how) => {
    yard = await openYard({ CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy' }, { isEmpty: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=755', 'tmpfs', yard.dataDir]);
    // On another disk: a database that cannot write does not start.
    const other = join(yard.folder, 'database');
    mkdirSync(other);
    await copyPreparedCluster(other);
    postgres = await startEmbeddedPostgres({ dataDir: other, log: silentLogger });
    const env = { DATABASE_URL: postgres.url };
    const before = await yard.start(['start'], env);
    served = await serveBoth(yard);
    const [pids, mounts] = [yard.pids(), yard.mounts()];
    await before[how]();
    const { bavail, bsize } = statfsSync(yard.dataDir);
    expect(() => writeFileSync(filler(), Buffer.alloc(bavail * bsize + 1))).toThrow(/ENOSPC/);

    const server = await yard.start(['start'], env);
    if (how === 'kill') await served.request();
    await served.readFile();
    expect((await yard.get('/cloud/v1/file_shares/1/1')).body.count).toBe(1);
    expect(yard.mounts()).toEqual(mounts);
    if (how === 'kill') expect(yard.pids()).toMatchObject({ haproxy: pids.haproxy, ganesha: pids.ganesha });

    rmSync(filler());
    const balancer = '/cloud/v1/loadbalancers/1/1';
    const later = await yard.ended(await yard.post(balancer, { name: 'a balancer' }), 120);
    expect(later.state).toBe('FINISHED');
    const healthy = async () =>
      (await yard.get('/healthz/drivers')).body.drivers.every((each: { healthy: boolean }) => each.healthy);
    await until(healthy, 120, 'healthy drivers');
    await served.request();
    expect((await server.stop()).code).toBe(0);
    expect(yard.mounts()).toEqual([]);
  });
});
