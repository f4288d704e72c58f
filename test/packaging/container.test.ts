/** The container image, on a base without Node. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildImage } from '../../packaging/container/build.ts';
import { buildDebianPackages } from '../../packaging/deb/build.ts';
import { buildPackage } from '../../packaging/npm-package.ts';
import { freePort } from '../free-port.ts';
import { version } from '../../src/main/version.ts';
import { httpClient } from '../http-client.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { debianRoot, prepareDebianRoot } from './debian-host.ts';
import { emptyFolder } from './installed.ts';

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 1_200_000 });

/** Of crun, which refuses a host that has cgroups of both versions. */
const inPureCgroups = `if [ -d /sys/fs/cgroup/unified ]; then
    umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
  fi
  exec podman "$@"`;
const parts = ['root', 'mmdebstrap', 'binutils', 'podman', 'util-linux'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'the container image', () => {
  let folder: string;
  let storage: string[];
  const tryPodman = (...args: string[]) => {
    const script = ['--mount', '--propagation', 'private', 'sh', '-c', inPureCgroups, 'sh'];
    return spawnSync('unshare', [...script, ...storage, ...args], { encoding: 'utf8' });
  };
  const podman = (...args: string[]) => {
    const { status, stdout, stderr } = tryPodman(...args);
    expect({ args, status, stderr }).toMatchObject({ status: 0 });
    return stdout.trim();
  };

  beforeAll(() => {
    folder = emptyFolder();
    storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
    storage.push('--cgroup-manager', 'cgroupfs');
    vi.stubEnv('BUILDAH_ISOLATION', 'chroot');
  });

  afterAll(() => {
    tryPodman('rm', '--all', '--force');
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('serves as an ordinary account, is healthy, and ends at a stop', async (context) => {
    const reason = prepareDebianRoot();
    if (reason) return context.skip(reason);
    const base = 'localhost/debian-base';
    const archive = join(folder, 'base.tar');
    execFileSync('tar', ['-C', debianRoot, '-cf', archive, '.']);
    podman('import', '--quiet', archive, base);
    rmSync(archive);
    const release = join(folder, 'release');
    mkdirSync(release);
    buildPackage();
    await buildDebianPackages({ folder: release, version, compression: 'none' });
    buildImage({ tool: 'podman', folder: release, version, base, storage });

    const port = await freePort();
    const name = `cloudyard-${port}`;
    // Without rights that a host in a container lacks: other networks, cgroups, higher limits.
    const limits = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'];
    const options = ['--network', 'host', '--cgroups', 'disabled', ...limits, '--env', `CLOUDYARD_PORT=${port}`];
    podman('run', '--detach', '--name', name, ...options, `localhost/cloudyard:${version}`);
    const logs = () => podman('logs', name);
    const isHealthy = () => tryPodman('healthcheck', 'run', name).status === 0;
    await until(isHealthy, 120, 'a healthy container');
    await until(() => /^ {2}Token +\S+\$\S+$/m.test(logs()), 60, 'a token');
    expect(podman('exec', name, 'id', '-u')).toBe('10001');
    const [, token] = /^ {2}Token +(\S+\$\S+)$/m.exec(logs())!;
    const { get, post } = httpClient(`http://127.0.0.1:${port}`, token!);
    const network = (await get('/cloud/v1/networks/1/1')).body['results'][0].id as string;
    const share = { name: 'first', protocol: 'NFS', size: 1, network: { network_id: network } };
    const [task] = (await post('/cloud/v1/file_shares/1/1', share)).body['tasks'] as string[];
    expect((await get(`/cloud/v1/tasks/${task}?wait=60`)).body).toMatchObject({ state: 'FINISHED' });
    const drivers = (await get('/healthz/drivers')).body as unknown;
    expect(JSON.stringify(drivers)).toContain('simulated');

    podman('exec', name, 'test', '-s', '/usr/lib/cloudyard/dist/drivers/ceph/bridge.py');
    const example = '/usr/share/cloudyard/several-hosts';
    podman('exec', name, `${example}/render`, `${example}/hosts.env`, 'h1', '/tmp/several-hosts');
    expect(podman('exec', name, 'cat', '/tmp/several-hosts/cloudyard.env')).toContain(
      'CLOUDYARD_HOST_ADDRESS=10.77.0.11',
    );

    podman('stop', '--time', '60', name);
    expect(podman('inspect', '--format', '{{.State.ExitCode}}', name)).toBe('0');
    expect(isHealthy()).toBe(false);
  });
});
