/**
 * A tenant who controls where HAProxy, nginx or distribution connects, or who controls one of them, gains neither the
 * trust of this host in loopback, nor root, nor access to the other data planes.
 */
import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACCOUNTS, accountFor } from '../../src/drivers/confined.ts';
import { registryTestHost, testHosting } from '../../src/drivers/distribution/test-host.ts';
import {
  createEgressFilter,
  type EgressFilter,
  egressTable,
  renderEgressFilter,
} from '../../src/drivers/egress-filter.ts';
import type { OwnPort } from '../../src/platform/own-ports.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { followCertificateFiles } from '../../src/platform/tls/certificate-files.ts';
import type { GaneshaDriver } from '../../src/drivers/ganesha/driver.ts';
import { type TestHost as NfsHost, testHost as nfsTestHost } from '../../src/drivers/ganesha/test-host.ts';
import type { HaproxyDriver } from '../../src/drivers/haproxy/driver.ts';
import { balancer, member, testHost, type TestHost } from '../../src/drivers/haproxy/test-host.ts';
import { udpMember } from '../../src/drivers/haproxy/test-members.ts';
import { openYard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';

const execute = promisify(execFile);
const signal = new AbortController().signal;
const filterParts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'haproxy', 'nftables', 'root'] as const;
const planeParts = ['nfs-ganesha', 'xfsprogs', 'haproxy', 'nginx', 'docker-registry', 'openssl', 'root'] as const;
/** Data directories are in a folder of this user, which others can enter only with a capability. */
const CLOSED_HOME = 65_534;
const accounts = Object.keys(ACCOUNTS) as (keyof typeof ACCOUNTS)[];

/** Runs a program as the account of a data plane. */
function as(account: keyof typeof ACCOUNTS, file: string, ...args: string[]): Promise<{ stdout: string }> {
  const { uid, gid } = accountFor(account)!;
  const identity = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--'];
  return execute('setpriv', [...identity, file, ...args], { timeout: 20_000 });
}

const fetchAs = (account: keyof typeof ACCOUNTS, url: string) => as(account, 'curl', '-sS', '-m', '10', url);

async function httpServer(text: string): Promise<{ port: number; close(): void }> {
  const server = createServer((_, response) => response.end(text));
  await new Promise<void>((resolve) => server.listen(0, resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

describe.skipIf(!requires(...filterParts))(skipReason(...filterParts) ?? 'connections of data planes', () => {
  let nfs: NfsHost;
  let shares: GaneshaDriver;
  let host: TestHost;
  let balancers: HaproxyDriver;
  let filter: EgressFilter;
  let api: Awaited<ReturnType<typeof httpServer>>;
  let ports: OwnPort[];
  const share = randomUUID();
  /** @throws if the client is refused */
  const list = async (address: string, port: number) =>
    (await execute('nfs-ls', [`nfs://${address}/shares/${share}?version=4&nfsport=${port}`], { timeout: 20_000 }))
      .stdout;
  const enforce = () =>
    filter.apply(
      accounts.map((name) => ({
        account: accountFor(name)!,
        ports: ports.filter(({ daemon }) => name !== 'registry' || daemon !== 'API'),
      })),
    );

  beforeAll(async () => {
    nfs = await nfsTestHost();
    shares = nfs.driver({}, { version3: false });
    await shares.start();
    const access = [{ network: '127.0.0.1', mode: 'rw' as const }];
    await shares.apply({ id: share, sizeGib: 1, settledGib: null, rootSquash: false, access }, signal);
    writeFileSync(nfs.inside(share, 'secret'), 'of the tenant');
    host = testHost();
    balancers = host.driver();
    await balancers.start();
    filter = createEgressFilter(host.dataDir);
    api = await httpServer('the API');
    ports = [
      { daemon: 'NFS', port: nfs.port },
      { daemon: 'API', port: api.port },
    ];
  });
  afterAll(async () => {
    await filter?.remove();
    api?.close();
    await balancers?.stop().finally(host.cleanUp);
    await shares?.stop().finally(nfs.cleanUp);
  });

  it('an NFS rule for 127.0.0.1 does not admit a client that comes through a load balancer', async () => {
    const desired = balancer({ protocol: 'TCP', members: [member(nfs.port)] }, { protocol: 'TCP', port: 2049 });
    await balancers.apply(desired, signal);
    expect(await list(desired.address, 2049), 'the attack without the filter').toContain('secret');
    await enforce();
    expect(filter.gap()).toBeNull();
    await expect(list(desired.address, 2049)).rejects.toThrow();
    expect(await list('127.0.0.1', nfs.port)).toContain('secret');
    await balancers.remove(desired.id, signal);
  });

  it('load balancers still reach members on loopback', async () => {
    await enforce();
    const web = await httpServer('a member');
    const desired = balancer({ members: [member(web.port)] });
    await balancers.apply(desired, signal);
    const answered = async () =>
      (await fetch(`http://${desired.address}/`).then((answer) => answer.text())) === 'a member';
    await until(() => answered().catch(() => false), 20, 'an answer through the load balancer');
    web.close();
  });

  it.each(accounts)(
    "the account of %s cannot connect to Cloudyard's daemons by any address of the host",
    async (name) => {
      await enforce();
      const refused = name === 'registry' ? [nfs.port] : [nfs.port, api.port];
      for (const port of refused) {
        for (const address of ['127.0.0.1', '127.1.2.3', '[::1]', '[::ffff:127.0.0.1]']) {
          await expect(fetchAs(name, `http://${address}:${port}/`), `${address}:${port}`).rejects.toThrow(/connect/i);
        }
      }
      const other = await httpServer('another program');
      expect((await fetchAs(name, `http://127.0.0.1:${other.port}/`)).stdout).toBe('another program');
      other.close();
      expect(await fetch(`http://127.0.0.1:${api.port}/`).then((answer) => answer.text())).toBe('the API');
    },
  );

  it('distribution reaches the API, which it notifies of pushes', async () => {
    await enforce();
    expect((await fetchAs('registry', `http://127.0.0.1:${api.port}/`)).stdout).toBe('the API');
  });

  it('datagrams to the ports of daemons are refused', async () => {
    await enforce();
    const received: string[] = [];
    const socket = createSocket('udp4', (data) => received.push(data.toString()));
    await new Promise<void>((resolve) => socket.bind(nfs.port, '127.0.0.1', resolve));
    const send = (text: string) => ['-c', `printf ${text} > /dev/udp/127.0.0.1/${nfs.port}`];
    await as('nginx', 'bash', ...send('bad')).catch(() => undefined);
    await execute('bash', send('good'));
    await until(() => received.length > 0, 10, 'a datagram of root');
    expect(received).toEqual(['good']);
    socket.close();
  });

  it('metadata services at link-local addresses are not reachable', async () => {
    const { uid, name } = accountFor('haproxy')!;
    const rules = renderEgressFilter('cloudyard_link_local', [{ account: { name, uid }, ports: [] }]);
    const get = 'curl -sS -m 10 -o /dev/null http://169.254.169.254/';
    const script = `ip link set lo up && ip address add 169.254.169.254/32 dev lo && nft '${rules}'
python3 -m http.server 80 --bind 169.254.169.254 >/dev/null 2>&1 & server=$!
${get} --retry 20 --retry-connrefused --retry-delay 1 && echo root may
setpriv --reuid ${uid} --clear-groups ${get} 2>/dev/null || echo haproxy may not
kill $server`;
    const { stdout } = await execute('unshare', ['--net', 'bash', '-c', script], { timeout: 60_000 });
    expect(stdout.split('\n')).toEqual(['root may', 'haproxy may not', '']);
  });

  it('a host that cannot enforce the filter reports it and names the package to install', async () => {
    const without = createEgressFilter(host.dataDir, null);
    await without.apply([]);
    expect(without.gap()).toMatchObject({
      detail: expect.stringContaining('nft is not installed'),
      remedy: 'apt-get install nftables && npm start',
    });
    const refusing = createEgressFilter(host.dataDir, '/bin/false');
    await refusing.apply([]);
    expect(refusing.gap()).not.toBeNull();
  });
});

describe.skipIf(!requires(...planeParts))(skipReason(...planeParts) ?? 'processes of data planes', () => {
  let folder: string;
  let host: TestHost;
  let balancers: HaproxyDriver;
  let nfs: NfsHost;
  let shares: GaneshaDriver;
  let registry: Awaited<ReturnType<typeof registryTestHost>>;
  let images: ReturnType<typeof registry.driver>;
  const pidIn = (file: string) => Number.parseInt(readFileSync(file, 'utf8'), 10);
  const childrenOf = (pid: number) =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  const statusOf = (pid: number) => {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
    return {
      uid: new Set(field('Uid').split('\t').map(Number)),
      gid: new Set(field('Gid').split('\t').map(Number)),
      groups: field('Groups'),
      capabilities: ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => Number.parseInt(field(name), 16)),
      noNewPrivileges: field('NoNewPrivs') === '1',
      caught: Number.parseInt(field('SigCgt'), 16),
    };
  };
  const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  const expectAccount = (pid: number, name: keyof typeof ACCOUNTS, capabilities: number) => {
    const { uid, gid } = accountFor(name)!;
    const status = statusOf(pid);
    expect(status).toMatchObject({ uid: new Set([uid]), gid: new Set([gid]), groups: '', noNewPrivileges: true });
    expect(status.capabilities[2]).toBe(capabilities);
  };

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cloudyard-privileges-'));
    host = testHost();
    chownSync(host.dataDir, CLOSED_HOME, CLOSED_HOME);
    balancers = host.driver();
    await balancers.start();
    const answering = await udpMember('a');
    await balancers.apply(
      balancer({ protocol: 'UDP', members: [member(answering.port)] }, { protocol: 'UDP', port: 53 }),
      signal,
    );
    answering.close();
    await balancers.apply(balancer({ members: [member(9)] }), signal);
    registry = await registryTestHost();
    // Files of an earlier version, which belong to root.
    mkdirSync(join(registry.layout.repositories, 'old/image/_uploads'), { recursive: true });
    writeFileSync(join(registry.layout.storage, 'file'), 'x', { mode: 0o600 });
    chownSync(dirname(registry.layout.root), CLOSED_HOME, CLOSED_HOME);
    const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1'];
    execFileSync('openssl', [...request, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
    chmodSync(key, 0o600);
    const files = { certificate, key };
    images = registry.driver({ openCertificate: async () => followCertificateFiles({ files, log: silentLogger }) });
    await images.start();
    await images.configure!(testHosting);
    nfs = await nfsTestHost();
    chownSync(nfs.dataDir, CLOSED_HOME, CLOSED_HOME);
    shares = nfs.driver({}, { version3: false });
    await shares.start();
  });
  afterAll(async () => {
    await images?.stop().finally(registry.cleanUp);
    await balancers?.stop().finally(host.cleanUp);
    await shares?.stop().finally(nfs.cleanUp);
    rmSync(folder, { recursive: true, force: true });
  });

  it('HAProxy workers run under a separate account without groups or capabilities; the master has seven capabilities', () => {
    const master = pidIn(join(host.layout.haproxy, 'haproxy.pid'));
    const workers = childrenOf(master);
    expect(workers.length).toBeGreaterThan(0);
    for (const worker of workers) expectAccount(worker, 'haproxy', 0);
    const { capabilities, noNewPrivileges } = statusOf(master);
    // CHOWN, DAC_READ_SEARCH, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE.
    expect(capabilities[3]).toBe((1 << 0) | (1 << 2) | (1 << 3) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 10));
    expect(noNewPrivileges).toBe(true);
  });

  it('nginx, including its master, runs under a separate account that may only bind low ports', () => {
    const master = pidIn(join(host.layout.nginx, 'nginx.pid'));
    for (const pid of [master, ...childrenOf(master)]) expectAccount(pid, 'nginx', 1 << 10);
    expect(statusOf(master).capabilities[3]).toBe(1 << 10);
  });

  it('distribution runs under a separate account without capabilities', () => {
    const pid = pidIn(join(registry.layout.distribution, 'distribution.pid'));
    expectAccount(pid, 'registry', 0);
    expect(statusOf(pid).capabilities).toEqual([0, 0, 0, 0, 0]);
    expect(environmentOf(pid)).toContain(`TMPDIR=${registry.layout.temporary}`);
  });

  it('the registry gate runs under the same account and drops its capabilities after it binds its port', () => {
    const pid = pidIn(join(registry.layout.distribution, 'gate.pid'));
    expectAccount(pid, 'registry', 0);
    const [inherited, permitted, effective] = statusOf(pid).capabilities;
    expect([inherited, permitted, effective]).toEqual([0, 0, 0]);
  });

  it('the registry gate does not catch SIGUSR1, with which Node would open its debugger', () => {
    const { caught } = statusOf(pidIn(join(registry.layout.distribution, 'gate.pid')));
    expect(caught & (1 << (constants.signals.SIGUSR1 - 1))).toBe(0);
  });

  it('distribution serves TLS with a key that only root can read', async () => {
    const { stdout } = await execute('curl', ['-ksS', '-m', '10', '-i', `https://127.0.0.1:${registry.port}/v2/`]);
    expect(stdout).toContain(testHosting.realm);
  });

  it('Ganesha is root without the capabilities that administer the host', () => {
    const { capabilities, noNewPrivileges } = statusOf(nfs.pid());
    const [inherited, ...others] = capabilities;
    // CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SETGID, SETUID, NET_BIND_SERVICE, SYS_RESOURCE, MKNOD.
    const allowed = 0b1101_1111 + 2 ** 10 + 2 ** 24 + 2 ** 27;
    expect(inherited).toBe(0);
    for (const set of others) expect(set & ~allowed).toBe(0);
    expect(noNewPrivileges).toBe(true);
  });

  it('files that root wrote to the image storage belong to distribution', () => {
    const { uid } = accountFor('registry')!;
    for (const path of ['file', 'docker/registry/v2/repositories/old/image/_uploads', 'docker/registry/v2/blobs']) {
      expect(statSync(join(registry.layout.storage, path)).uid, `path ${path}`).toBe(uid);
    }
  });

  it.each(accounts)('the account of %s cannot read files of the others or of Cloudyard', async (name) => {
    const own: Record<string, string[]> = {
      haproxy: [],
      nginx: [host.layout.nginxConfiguration, host.layout.nginxState],
      registry: [registry.layout.configuration, registry.layout.temporary],
    };
    const mine = own[name] ?? [];
    const everything = [
      ...[host.layout.specs, host.layout.certificates, host.layout.haproxy, host.layout.sockets, host.layout.nginx],
      ...[registry.layout.storage, registry.layout.trash, registry.layout.distribution],
      ...[dirname(nfs.inside(randomUUID()))],
      ...Object.values(own).flat(),
    ];
    for (const path of everything) {
      const listing = as(name, 'ls', path);
      if (mine.includes(path)) await listing;
      else await expect(listing, `path ${path}`).rejects.toThrow(/denied/);
    }
  });

  it('other accounts cannot write to the administrative sockets of HAProxy', async () => {
    for (const socket of [host.layout.masterSocket, host.layout.peerSocket]) {
      await execute('test', ['-w', socket]);
      for (const name of ['nginx', 'registry'] as const) await expect(as(name, 'test', '-w', socket)).rejects.toThrow();
    }
  });
});

const yardParts = ['haproxy', 'nftables', 'root'] as const;

describe.skipIf(!requires(...yardParts))(skipReason(...yardParts) ?? 'the egress filter of a worker', () => {
  it('stays after a crash, is restored at the next start, and is removed at a stop', async () => {
    const yard = await openYard({
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy',
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    });
    const table = () => {
      try {
        return execFileSync('nft', ['list', 'table', 'inet', egressTable(yard.dataDir)], {
          encoding: 'utf8',
          stdio: 'pipe',
        });
      } catch {
        return null;
      }
    };
    try {
      const first = await yard.start(['start']);
      for (const port of [yard.port, yard.nfsPort, yard.mountPort]) expect(table()).toContain(String(port));
      await expect(fetchAs('haproxy', `http://127.0.0.1:${yard.port}/healthz`)).rejects.toThrow(/connect/i);
      await first.kill();
      expect(table()).not.toBeNull();
      execFileSync('nft', ['delete', 'table', 'inet', egressTable(yard.dataDir)]);
      const second = await yard.start(['start']);
      expect(table()).toContain(String(yard.nfsPort));
      expect(second.stdout()).not.toContain('the kernel does not block');
      await second.stop();
      expect(table()).toBeNull();
    } finally {
      yard.cleanUp();
    }
  });
});
