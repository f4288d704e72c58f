/** Volumes in a Ceph pool that was prepared as docs/guides/ceph.md says, with a server that is killed during jobs. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { imagesOf, type Images } from '../../src/drivers/ceph/images.ts';
import { createCephBridge } from '../../src/drivers/ceph/bridge.ts';
import { createCephMount } from '../../src/drivers/ceph/mount.ts';
import { ensureSubvolume } from '../../src/drivers/ceph/subvolumes.ts';
import { findDistribution } from '../../src/drivers/distribution/detect.ts';
import { createDistributionDriver } from '../../src/drivers/distribution/driver.ts';
import { type Layout, layoutOf } from '../../src/drivers/distribution/layout.ts';
import { freePort } from '../free-port.ts';
import type { RegistryDriver, RegistryHosting } from '../../src/drivers/registry.ts';
import { root } from '../../src/platform/program-files.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { deleteImage, makeImage, pull, push, type Skopeo } from '../images.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';
import { type CephCluster, startCephCluster } from '../several-hosts/ceph-cluster.ts';

const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const timeout = { timeout: 300_000 };
const registries = '/cloud/v1/registries/1/1';
/** Garbage collection would take the blobs of a push that stalls for longer. */
const patienceSeconds = 20;
const needed = ['ceph', 'ceph-mds', 'ceph-fuse', 'qemu-utils', 'docker-registry', 'skopeo', 'root'] as const;

/** The commands of the section "Prepare the cluster". */
function guideCommands(): string {
  const guide = readFileSync(join(root, 'docs', 'guides', 'ceph.md'), 'utf8');
  return /## Prepare the cluster[^]*?```sh\n([^]*?)```/.exec(guide)![1]!;
}

/** The settings with which the server has started distribution. */
function hostingOf({ configuration }: Layout): RegistryHosting {
  const file = readdirSync(configuration).find((each) => each.endsWith('.yml'))!;
  const { auth, http, notifications } = JSON.parse(readFileSync(join(configuration, file), 'utf8'));
  const { realm, service, issuer, rootcertbundle } = auth.token;
  const [{ url, headers }] = notifications.endpoints;
  const secret = headers.Authorization[0].slice('Bearer '.length);
  const certificate = readFileSync(rootcertbundle, 'utf8');
  return { realm, service, issuer, certificate, httpSecret: http.secret, events: { url, secret } };
}

describe.skipIf(!requires(...needed))(skipReason(...needed) ?? 'volumes in Ceph', () => {
  let cluster: CephCluster;
  let images: Images;
  let yard: Yard;
  let server: Running;

  beforeAll(async () => {
    cluster = await startCephCluster({ pools: false });
    const keyring = join(cluster.folder, 'keyring.cloudyard');
    const commands = guideCommands().replace('/etc/ceph/ceph.client.cloudyard.keyring', keyring);
    execFileSync('sh', ['-ec', commands], { env: { ...process.env, CEPH_CONF: cluster.conf }, stdio: 'pipe' });
    images = imagesOf(cluster.admin, cluster.pool);
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_VOLUME_DRIVER: 'auto',
      CLOUDYARD_REGISTRY_DRIVER: 'distribution',
      CLOUDYARD_REGISTRY_PORT: String(await freePort()),
      CLOUDYARD_LOG_LEVEL: 'debug',
      // Garbage collection runs all the time.
      CLOUDYARD_REGISTRY_PATIENCE_SECONDS: String(patienceSeconds),
      CLOUDYARD_SWEEP_SECONDS: '1',
    });
    const regions = join(yard.folder, 'regions.yaml');
    const storage = `{ driver: ceph, conf: ${cluster.conf}, user: cloudyard, pool: volumes, filesystem: shares }`;
    writeFileSync(
      regions,
      readFileSync(join(root, 'config', 'regions.yaml'), 'utf8')
        .replace('    price_book: prices.yaml', '')
        .replace('    country: LU', `    country: LU\n    storage: ${storage}`),
    );
    yard.env['CLOUDYARD_REGIONS_FILE'] = regions;
    await cluster.ready();
    server = await yard.start(['start']);
  }, 120_000);
  afterAll(async () => {
    // Unmounts the directory of registries.
    await server?.stop();
    yard?.cleanUp();
    await cluster?.stop();
  });

  const created = async (kind: 'volumes' | 'snapshots', answer: Awaited<ReturnType<Yard['post']>>) => {
    const task = await yard.ended(answer);
    expect(task).toMatchObject({ state: 'FINISHED', error: null });
    return task.created_resources[kind][0] as string;
  };
  const create = (body: object = { source: 'new-volume', size: 1 }) =>
    yard.insist('POST', volumes, { name: 'a volume', ...body });
  const qemu = async (id: string, command: string) => {
    const file = `rbd:${cluster.pool}/${id}:id=cloudyard:conf=${cluster.conf}`;
    return (await promisify(execFile)('qemu-io', ['-f', 'raw', '-c', command, file])).stdout;
  };
  const expectBytes = async (id: string, pattern: number) =>
    expect(await qemu(id, `read -P ${pattern} 0 64k`)).not.toContain('verification failed');
  const restart = async () => {
    await server.kill();
    server = await yard.start(['start']);
  };

  it('have a driver that the start and doctor report as real', timeout, async () => {
    expect(server.stdout()).toMatch(/volumes +ceph +real +Ceph pool volumes; .* free/);
    const { stdout } = await yard.run(['doctor']);
    expect(stdout).toMatch(/Python module rbd +\/usr\/lib/);
    expect(stdout).toMatch(/storage of region 1 +ok +pool volumes: .* free/);
  });

  it('store bytes, restore them by a revert, and copy them to a new volume', timeout, async () => {
    const id = await created('volumes', await create());
    await qemu(id, 'write -P 1 0 64k');
    const snapshot = await created(
      'snapshots',
      await yard.insist('POST', snapshots, { name: 'a snapshot', volume_id: id }),
    );
    await qemu(id, 'write -P 2 0 64k');
    const copy = await created('volumes', await create({ source: 'snapshot', snapshot_id: snapshot }));
    await expectBytes(copy, 1);
    await expectBytes(id, 2);
    expect((await yard.post(`${volumes}/${id}/revert`, undefined)).status).toBe(200);
    await until(async () => (await yard.get(`${volumes}/${id}`)).body.status === 'available', 20, 'reverted');
    await expectBytes(id, 1);
  });

  it(
    'are made once if the server is killed during many creations, and leave nothing when deleted',
    timeout,
    async ({ onTestFailed }) => {
      onTestFailed(() => console.log(server.log().filter(({ msg }) => /keeps its data|trash|Ceph/.test(String(msg)))));
      const answers = await Promise.all(Array.from({ length: 30 }, () => create()));
      await restart();
      await restart();
      for (const answer of answers) await created('volumes', answer);
      const rows = await yard.sql<{ id: string }>('select id from volumes order by id::text');
      expect((await images.list()).sort()).toEqual(rows.map(({ id }) => id));
      const deletions = await Promise.all(rows.map(({ id }) => yard.delete(`${volumes}/${id}`)));
      await restart();
      for (const answer of deletions) expect((await yard.ended(answer)).state).toBe('FINISHED');
      expect(await images.list()).toEqual([]);
      // Until Ceph has noticed that the killed server no longer watches an image, which it may not do by itself.
      await expect.poll(() => images.trash(), { timeout: 180_000 }).toEqual([]);
      expect((await yard.run(['quota', 'audit'])).code).toBe(0);
      const { body } = await yard.get('/cloud/v2/regional_quotas/1/1');
      expect(body).toMatchObject({ volume_count_usage: 0, volume_size_usage: 0, volume_snapshots_count_usage: 0 });
    },
  );

  describe('with registries in a directory that two hosts serve', () => {
    const credentials = 'ci:pw';
    const other = { folder: '', port: 0, driver: null as RegistryDriver | null };

    beforeAll(async () => {
      other.folder = mkdtempSync(join(tmpdir(), 'cloudyard-replica-'));
      other.port = await freePort();
      const { conf, filesystem } = cluster;
      const address = `127.0.0.1:${other.port}`;
      const mounted = { conf, filesystem, user: 'cloudyard', subvolume: 'registries', log: silentLogger };
      other.driver = createDistributionDriver({
        ...{
          dataDir: other.folder,
          address,
          host: '127.0.0.1',
          port: other.port,
          openCertificate: null,
          log: silentLogger,
        },
        ...{ patience: patienceSeconds, diskReserve: 5, finding: findDistribution() },
        shared: { replica: 'other', mount: (places) => createCephMount({ ...mounted, ...places }) },
      });
      await other.driver.start();
      await other.driver.configure(hostingOf(layoutOf(yard.dataDir, hostname())));
    });
    afterAll(async () => {
      await other.driver?.stop();
      rmSync(other.folder, { recursive: true, force: true });
    });

    it('accept pushes through both while garbage is collected, and serve every image from both', timeout, async () => {
      const { body } = await yard.post(registries, { name: 'images' });
      const path = `${registries}/${body.id}`;
      await yard.post(`${path}/users/batch`, { users: [{ name: 'ci', duration: -1, secret: 'pw' }] });
      const [host, prefix] = (body.url as string).split('/');
      const hosts = [host!, `127.0.0.1:${other.port}`];
      const succeeds = async (skopeo: Skopeo) => {
        const { code, output } = await skopeo.ended;
        expect([code, output]).toEqual([0, expect.any(String)]);
      };
      const images = Array.from({ length: 6 }, (_, i) =>
        makeImage(join(yard.folder, `image-${i}`), [200_000, 1_000_000 * (1 + (i % 3))]),
      );
      const name = (i: number, at: number) => `${hosts[at % 2]}/${prefix}/team/app-${i % 2}:v${i}`;
      for (const half of [images.slice(0, 3), images.slice(3)]) {
        const from = images.indexOf(half[0]!);
        // Each image goes through the host that did not get the one before it in its repository.
        await Promise.all(
          half.map((image, i) => succeeds(push(image.source, name(from + i, (from + i) >> 1), credentials))),
        );
      }
      for (const at of [0, 1]) {
        for (const [i] of images.entries()) {
          await succeeds(pull(name(i, at), join(yard.folder, `pulled-${i}-${at}`), credentials));
        }
      }
      const stored = async () => (await yard.get(path)).body.storage_used as number;
      await until(async () => (await stored()) >= images.reduce((sum, { size }) => sum + size, 0), 60, 'counted');
      for (const [i] of images.entries()) await succeeds(deleteImage(name(i, i), credentials));
      await until(async () => (await stored()) === 0, 60, 'the garbage is collected');
      await succeeds(push(images[0]!.source, name(0, 1), credentials));
      await succeeds(pull(name(0, 0), join(yard.folder, 'pulled-again'), credentials));
    });

    it('serve again after their mount has died', timeout, async () => {
      const all = (await yard.get(registries)).body.results as { url: string }[];
      const image = `127.0.0.1:${other.port}/${all[0]!.url.split('/')[1]}/team/app-0:v0`;
      process.kill(Number(readFileSync(join(other.folder, 'registries', 'ceph-fuse.pid'), 'utf8')), 'SIGKILL');
      let attempts = 0;
      const served = async () =>
        (await pull(image, join(yard.folder, `remounted-${(attempts += 1)}`), credentials).ended).code === 0;
      // The pull that finds the mount dead fails.
      await until(served, 120, 'served again');
      expect(other.driver!.status()).toMatchObject({ healthy: true });
    });
  });

  it('are refused with 507 while the pool has less free space than the reserve', timeout, async () => {
    const id = await created('volumes', await create());
    await qemu(id, 'write -P 3 0 200M');
    // OSDs count as full from 30 % on, so that little of the pool is free beside 200 MiB.
    for (const [level, ratio] of Object.entries({ nearfull: 0.2, backfillfull: 0.25, full: 0.3 })) {
      await cluster.command({ prefix: `osd set-${level}-ratio`, ratio });
    }
    await server.stop();
    server = await yard.start(['start'], { CLOUDYARD_DISK_RESERVE: '90' });
    expect(server.stdout()).toMatch(/volumes +ceph +real, UNHEALTHY .*less than the reserve/);
    const refused = () => yard.post(volumes, { name: 'a volume', source: 'new-volume', size: 1 });
    await until(async () => (await refused()).status === 507, 20, 'refused');
    const message = expect.stringMatching(/the storage of volumes has .* free/);
    expect((await refused()).body).toMatchObject({ message });
    expect((await yard.delete(`${volumes}/${id}`)).status).toBe(200);
  });

  it('of the user of the guide are all that it may touch, besides subvolumes', timeout, async () => {
    const bridge = createCephBridge({ conf: cluster.conf, user: 'cloudyard', log: silentLogger });
    await bridge.start();
    const path = await ensureSubvolume(bridge, cluster.filesystem, 'one');
    expect(await ensureSubvolume(bridge, cluster.filesystem, 'one')).toBe(path);
    const admin = { prefix: 'osd pool create', pool: 'other', pg_num: 1 };
    await expect(bridge.call('command', { target: 'mon', command: admin })).rejects.toMatchObject({
      customerMessage: expect.stringContaining('permissions'),
    });
    await cluster.command(admin);
    await expect(bridge.call('omap.set', { pool: 'other', object: 'x', pairs: { a: '' } })).rejects.toMatchObject({
      customerMessage: expect.stringContaining('permissions'),
    });
    await bridge.stop();
  });
});
