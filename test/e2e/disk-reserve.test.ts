/** The reserve of a host's disk: what needs space is refused with 507 before the disk is full, and everything else continues. */
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { copyPreparedCluster } from '../prepared-cluster.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const mib = 2 ** 20;
const volume = { name: 'volume', source: 'new-volume', size: 1 };

describe.skipIf(!requires('root'))(skipReason('root') ?? 'a host with less free space than its reserve', () => {
  let yard: Yard;
  afterEach(() => {
    try {
      execFileSync('umount', ['-l', yard.dataDir]);
    } finally {
      yard.cleanUp();
    }
  });

  it('refuses volumes, extensions and snapshots with 507 and its name until there is space', {
    timeout: 180_000,
  }, async () => {
    const drivers = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_VOLUME_DRIVER: 'disk' };
    yard = await openYard({ ...drivers, CLOUDYARD_DISK_RESERVE: '25' }, { isEmpty: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m,mode=755', 'tmpfs', yard.dataDir]);
    await copyPreparedCluster(yard.dataDir);
    await yard.start(['start']);
    const made = await yard.ended(await yard.post(volumes, volume));
    expect(made.state).toBe('FINISHED');
    const id = made.created_resources.volumes[0];
    const filler = join(yard.dataDir, 'filler');
    const { bavail, bsize } = statfsSync(yard.dataDir);
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 60 * mib));

    const answers: { status: number; body: { exception_class: string; message: string } }[] = [];
    const refused = async () => {
      answers.push(await yard.post(volumes, volume));
      return answers.at(-1)!.status !== 200;
    };
    await until(refused, 30, 'a refusal');
    const { status, body } = answers.at(-1)!;
    expect([status, body.exception_class]).toEqual([507, 'InsufficientStorage']);
    expect(body.message).toContain(`host ${hostname()} has `);
    expect((await yard.post(`${volumes}/${id}/extend`, { size: 2 })).status).toBe(507);
    expect((await yard.post(snapshots, { name: 'snapshot', volume_id: id })).status).toBe(507);

    const { data_directories: found } = (await yard.get('/healthz/drivers')).body;
    expect(found).toMatchObject([{ healthy: false, region_ids: expect.arrayContaining([1]) }]);
    expect(found[0].free_bytes).toBeLessThan(found[0].reserve_bytes);
    const metrics = await (await fetch(`http://127.0.0.1:${yard.port}/metrics`)).text();
    expect(metrics).toMatch(/^cloudyard_data_directory_bytes\{kind="free"\} \d+$/m);
    // A simulated driver needs no space, and deletes make some.
    const share = await yard.post(shares, newShare('share', await defaultNetwork(yard)));
    expect((await yard.ended(share)).state).toBe('FINISHED');
    expect((await yard.get(`${volumes}/${id}`)).body.status).toBe('available');
    expect((await yard.ended(await yard.delete(`${volumes}/${id}`))).state).toBe('FINISHED');

    rmSync(filler);
    await until(async () => (await yard.post(volumes, volume)).status === 200, 30, 'a create');
  });
});
