/** Volumes on the disk of this machine, with a server that is killed during jobs. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { read, write } from '../../src/drivers/disk/test-host.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';

const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const timeout = { timeout: 300_000 };

let yard: Yard;
let server: Running;
beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_VOLUME_DRIVER: 'disk' });
  server = await yard.start(['start']);
}, 60_000);
afterAll(() => yard?.cleanUp());

const folder = (name: 'images' | 'snapshots') => join(yard.dataDir, 'volumes', name);
const image = (id: string) => join(folder('images'), `${id}.raw`);
const onDisk = (name: 'images' | 'snapshots') => readdirSync(folder(name)).sort();
const created = async (kind: 'volumes' | 'snapshots', answer: Awaited<ReturnType<Yard['post']>>) => {
  const task = await yard.ended(answer);
  expect(task).toMatchObject({ state: 'FINISHED', error: null });
  return task.created_resources[kind][0] as string;
};
const aVolume = async () =>
  created('volumes', await yard.post(volumes, { name: 'a volume', source: 'new-volume', size: 1 }));
const snapshotOf = (volume_id: string) => yard.insist('POST', snapshots, { name: 'a snapshot', volume_id });
const at = async (id: string) => (await yard.get(`${volumes}/${id}`)).body;

describe('if the data directory cannot hold volumes', () => {
  it(
    'the driver auto simulates them and reports the reason, and the driver disk reports it and does not serve',
    timeout,
    async () => {
      const bare = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_VOLUME_DRIVER: 'auto' });
      try {
        writeFileSync(join(bare.dataDir, 'volumes'), 'in the way');
        const simulated = await bare.start(['start']);
        expect(simulated.stdout()).toMatch(/volumes +simulated +SIMULATED .*volumes/);
        await simulated.stop();
        const waiting = await bare.start(['start'], { CLOUDYARD_VOLUME_DRIVER: 'disk' });
        expect(waiting.stdout()).toMatch(/volumes +disk +real, UNHEALTHY does not start, retrying: .*volumes/);
        await waiting.stop();
      } finally {
        bare.cleanUp();
      }
    },
  );
});

describe('volumes of a server', () => {
  it('have a driver that the start reports as real', async () => {
    expect(server.stdout()).toMatch(/volumes +disk +real +raw images in /);
  });

  it('store bytes and restore them by a revert', timeout, async () => {
    const id = await aVolume();
    await write(image(id), 123_456, 'before');
    await created('snapshots', await snapshotOf(id));
    await write(image(id), 123_456, 'after!');
    expect((await yard.post(`${volumes}/${id}/revert`, undefined)).status).toBe(200);
    await until(async () => (await at(id)).status === 'available', 20, 'reverted');
    expect(await read(image(id), 123_456, 6)).toBe('before');
  });

  it('lose nothing when the server is killed during many snapshots, and none is created twice', timeout, async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, aVolume));
    for (const id of ids) await write(image(id), 4096, `bytes of ${id}`);
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => snapshotOf(ids[i % ids.length]!)));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    for (const _ of [1, 2]) {
      await server.kill();
      server = await yard.start(['start']);
    }
    for (const answer of answers) {
      const id = await created('snapshots', answer);
      const { volume_id } = (await yard.get(`${snapshots}/${id}`)).body;
      expect(await read(join(folder('snapshots'), `${id}.raw`), 4096, 45)).toBe(`bytes of ${volume_id}`);
    }
    const rows = await yard.sql<{ id: string }>('select id from snapshots order by id::text');
    expect(onDisk('snapshots')).toEqual(rows.map(({ id }) => `${id}.raw`));
    const { body } = await yard.get('/cloud/v2/regional_quotas/1/1');
    expect(body).toMatchObject({ volume_snapshots_count_usage: rows.length, volume_snapshots_size_usage: rows.length });
  });

  it('are deleted with their snapshots and leave nothing on the disk', timeout, async () => {
    const all = (await yard.get(volumes)).body.results as { id: string; snapshot_ids: string[] }[];
    const deletions = await Promise.all(
      all.map(({ id, snapshot_ids }) => yard.delete(`${volumes}/${id}?snapshots=${snapshot_ids.join(',')}`)),
    );
    await server.kill();
    server = await yard.start(['start']);
    for (const answer of deletions) expect((await yard.ended(answer)).state).toBe('FINISHED');
    expect([onDisk('images'), onDisk('snapshots')]).toEqual([[], []]);
    const { body } = await yard.get('/cloud/v2/regional_quotas/1/1');
    expect(body).toMatchObject({
      volume_count_usage: 0,
      volume_size_usage: 0,
      volume_snapshots_count_usage: 0,
      volume_snapshots_size_usage: 0,
    });
  });
});
