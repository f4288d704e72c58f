/**
 * The upgrade of one host: with CLOUDYARD_KEEP_DATA_PLANES=1, `start` that receives SIGTERM hands its data planes over to the
 * next start. A driver that does not start does not affect the others.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { startTraffic, type Traffic } from '../traffic.ts';
import { balancers, serveBoth, type Served } from './balanced.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

vi.setConfig({ testTimeout: 300_000 });

const parts = ['haproxy', 'nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'one host', () => {
  let yard: Yard;
  let served: Served;
  let loads: Traffic[] = [];
  const settings = { CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy', CLOUDYARD_KEEP_DATA_PLANES: '1' };

  afterEach(async () => {
    await Promise.all(loads.map((load) => load.stop()));
    loads = [];
    served?.close();
    yard?.cleanUp();
  });

  it('is upgraded without a failed request and without a failed read of a share', async () => {
    yard = await openYard(settings);
    const before = await yard.start(['start']);
    served = await serveBoth(yard);
    const { readFile, request } = served;
    loads = [startTraffic(request), startTraffic(readFile, 1)];
    const [http, files] = loads as [Traffic, Traffic];
    await until(() => http.answered() > 200 && files.answered() > 5, 60, 'traffic');
    const { haproxy, ganesha } = yard.pids();

    before.signal('SIGTERM');
    expect((await before.ended).code).toBe(0);
    expect(yard.pids()).toMatchObject({ postgres: null, haproxy, ganesha });
    const [answered, read] = [http.answered(), files.answered()];
    await until(() => http.answered() > answered + 200 && files.answered() > read + 5, 60, 'traffic without Cloudyard');
    const after = await yard.start(['start']);
    await until(() => http.answered() > answered + 400 && files.answered() > read + 10, 60, 'traffic after the start');
    expect(yard.pids()).toMatchObject({ haproxy, ganesha });
    await Promise.all(loads.map((load) => load.stop()));
    expect([http.failures(), files.failures()]).toEqual([[], []]);

    expect((await after.stop()).code).toBe(0);
    expect(yard.pids()).toMatchObject({ haproxy: null, ganesha: null });
    expect(yard.mounts()).toEqual([]);
  });

  it('serves shares while load balancers do not start, and starts these again when they can', async () => {
    yard = await openYard(settings);
    const before = await yard.start(['start']);
    served = await serveBoth(yard);
    const { readFile, request } = served;
    const { haproxy, ganesha } = yard.pids();
    await before.kill();
    // A folder in place of the file that the driver writes.
    const blocker = join(yard.dataDir, 'load-balancers', 'certificates');
    rmSync(blocker, { recursive: true });
    writeFileSync(blocker, '');

    const server = await yard.start(['start']);
    expect(server.stdout()).toMatch(/load balancers +haproxy +real, UNHEALTHY does not start, retrying/);
    expect(yard.pids()).toMatchObject({ haproxy, ganesha });
    await readFile();
    await request();
    // The killed worker is listed for some seconds, too.
    const isOwn = (each: { worker: string }) => each.worker.includes(`-${server.pid}-`);
    const status = async (kind: string) =>
      (await yard.get('/healthz/drivers')).body.drivers.filter(isOwn).find((each: any) => each.kind === kind);
    expect(await status('load balancers')).toMatchObject({ real: true, healthy: false });
    expect(await status('file shares')).toMatchObject({ real: true, healthy: true });
    const share = await yard.ended(await yard.post(shares, newShare('another', await defaultNetwork(yard))));
    expect(share.state).toBe('FINISHED');
    const delayed = await yard.post(balancers, { name: 'a balancer' });
    expect(delayed.status).toBe(200);

    rmSync(blocker);
    mkdirSync(blocker, { mode: 0o700 });
    expect((await yard.ended(delayed)).state).toBe('FINISHED');
    await until(async () => (await status('load balancers')).healthy, 60, 'load balancers to be managed again');
    expect(yard.pids()).toMatchObject({ haproxy, ganesha });
    await request();
  });

  it('starts the file server when the port that another program has is free', async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'ganesha' });
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen(yard.nfsPort, resolve));
    await yard.start(['start']);
    const { tasks } = (await yard.post(shares, newShare('a share', await defaultNetwork(yard)))).body;
    const task = async () => (await yard.get(`/cloud/v1/tasks/${tasks[0]}`)).body;
    await until(async () => (await task()).data?.last_error !== undefined, 30, 'the error');
    expect(await task()).toMatchObject({
      state: 'RUNNING',
      data: { last_error: expect.stringContaining(`another program of the host uses port ${yard.nfsPort}`) },
    });
    await new Promise((resolve) => stranger.close(resolve));
    expect((await yard.get(`/cloud/v1/tasks/${tasks[0]}?wait=60`)).body).toMatchObject({ state: 'FINISHED' });
  });
});
