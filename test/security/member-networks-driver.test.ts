/** The driver refuses forbidden members even if the API accepted them. Real HAProxy and nginx, over loopback. */
import { createSocket } from 'node:dgram';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HaproxyDriver } from '../../src/drivers/haproxy/driver.ts';
import {
  balancer,
  effectOf,
  member,
  monitor,
  testHost,
  type TestHost,
  withPool,
} from '../../src/drivers/haproxy/test-host.ts';
import {
  ask,
  askUdp,
  closeMembers,
  httpMember,
  stream,
  tcpMember,
  udpMember,
} from '../../src/drivers/haproxy/test-members.ts';
import type { DesiredLoadBalancer, DesiredMember, DesiredPool } from '../../src/drivers/load-balancer.ts';
import { createMemberRules } from '../../src/platform/member-networks.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';

const parts = ['haproxy', 'nginx', 'iputils-ping', 'root'] as const;
const signal = new AbortController().signal;
const laptop = ['0.0.0.0/0', '::/0', '127.0.0.0/8', '::1/128'];

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a load balancer with a forbidden member', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  /** Ports, local networks and regions of the Cloudyard on this host; tests change them. */
  let own: { ports: number[]; local: string[]; regions: Map<number, { allowed?: string[]; denied?: string[] }> };
  const memberRules = (regionId: number) =>
    createMemberRules({
      regions: own.regions,
      vipRanges: ['127.64.0.0/16'],
      controlPlane: () => ['10.0.0.5'],
      ownPorts: () => own.ports.map((port) => ({ daemon: 'API', port })),
      localNetworks: () => own.local,
    })(regionId);
  const open = () => host.driver({ drainSeconds: 1, memberRules }, { ping: join(host.dataDir, 'ping') });
  const reopen = async (how: 'stop' | 'release') => {
    await driver[how]();
    driver = open();
    await driver.start();
  };
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const healthOf = async (desired: DesiredLoadBalancer, { id }: DesiredMember) =>
    (await driver.read()).find((each) => each.id === desired.id)!.members.get(id);
  const servers = async () => host.ask('show servers state');
  const nginxFile = () => join(host.layout.nginxConfiguration, 'nginx.conf');
  const omitted = (text: string) => ({ retryable: false, customerMessage: expect.stringContaining(text) });

  beforeAll(async () => {
    host = testHost();
    // A ping that always succeeds and records its destination.
    writeFileSync(
      join(host.dataDir, 'ping'),
      `#!/bin/sh\nfor last; do :; done; echo $last >> ${host.dataDir}/pinged\n`,
    );
    chmodSync(join(host.dataDir, 'ping'), 0o755);
    // It runs under a separate account.
    chmodSync(host.dataDir, 0o711);
    writeFileSync(join(host.dataDir, 'pinged'), '');
    chmodSync(join(host.dataDir, 'pinged'), 0o666);
  });
  beforeEach(async () => {
    own = { ports: [], local: ['127.0.0.0/8', '::1'], regions: new Map([[1, { allowed: laptop }]]) };
    driver = open();
    await driver.start();
  });
  afterEach(async () => {
    for (const id of await driver.list()) await driver.remove(id, signal);
    await driver.stop();
    await closeMembers();
  });
  afterAll(() => host?.cleanUp());

  it.each([
    ['the metadata service', { address: '169.254.169.254' }, '169.254.169.254 is link-local'],
    ['the metadata service, mapped', { address: '::ffff:169.254.169.254' }, 'is link-local'],
    ['link-local IPv6', { address: 'fe80::1' }, 'fe80::1 is link-local'],
    ['another load balancer', { address: '127.64.0.9' }, '127.64.0.9 is an address of load balancers'],
    ['the database’s host', { address: '10.0.0.5' }, '10.0.0.5 is an address of Cloudyard itself'],
    ['its own host', { address: '0.0.0.0' }, '0.0.0.0 is an unspecified address'],
    ['the API', { port: 8080 }, "port 8080 of 127.0.0.1 is Cloudyard's own (API)"],
    ['the API over IPv6', { address: '::1', port: 8080 }, "port 8080 of ::1 is Cloudyard's own (API)"],
    ['the API, mapped', { address: '::ffff:127.0.0.1', port: 8080 }, "is Cloudyard's own (API)"],
    ['the API as a monitor', { monitorPort: 8080 }, "port 8080 of 127.0.0.1 is Cloudyard's own (API)"],
    ['metadata service as a monitor', { monitorAddress: '169.254.169.254' }, '169.254.169.254 is link-local'],
  ])('does not connect: %s', async (_, changes, why) => {
    own.ports = [8080];
    const bad = member(9, changes);
    for (const protocol of ['HTTP', 'TCP', 'PROXY', 'UDP'] as const) {
      const front = protocol === 'UDP' ? 'UDP' : protocol === 'HTTP' ? 'HTTP' : 'TCP';
      const desired = balancer({ protocol, members: [bad] }, { protocol: front });
      await expect(apply(desired)).rejects.toMatchObject(omitted(why));
      expect(await healthOf(desired, bad)).toBe('DOWN');
      await driver.remove(desired.id, signal);
    }
    expect(await servers()).not.toContain(bad.id);
  });

  it('does not connect to it and serves its other members (HTTP)', async () => {
    const [victim, good] = [await httpMember('victim'), await httpMember('good')];
    own.ports = [victim.port];
    const desired = balancer({ members: [member(victim.port), member(good.port)] });
    await expect(apply(desired)).rejects.toMatchObject(omitted(`port ${victim.port} of 127.0.0.1`));
    for (let n = 0; n < 6; n += 1) expect(await ask(desired.address)).toMatchObject({ status: 200, name: 'good' });
    expect(victim.connections()).toBe(0);
  });

  it('does not send health checks to it, with any monitor', async () => {
    const [victim, good] = [await httpMember('victim'), await httpMember('good')];
    own.ports = [victim.port];
    const checks: Partial<DesiredPool>[] = [
      { monitor: monitor({ type: 'HTTP', httpMethod: 'GET', urlPath: '/metrics', expectedCodes: '200' }) },
      { monitor: monitor({ type: 'TLS-HELLO' }) },
    ];
    for (const check of checks) {
      const elsewhere = member(9, { monitorAddress: '127.0.0.1', monitorPort: victim.port });
      const desired = balancer({ ...check, members: [elsewhere, member(good.port)] });
      await expect(apply(desired)).rejects.toMatchObject(omitted(`port ${victim.port} of 127.0.0.1`));
      const before = good.connections();
      await until(() => good.connections() > before + 2, 20, `checks by ${check.monitor?.type}`);
    }
    expect(victim.connections()).toBe(0);
    // HAProxy closes TCP checks at once, and the member may not notice, so the test reads HAProxy's servers.
    const desired = balancer({ monitor: monitor(), members: [member(9, { monitorPort: victim.port })] });
    await expect(apply(desired)).rejects.toMatchObject(omitted(`port ${victim.port} of 127.0.0.1`));
    expect(await servers()).not.toContain(` ${victim.port} `);
  });

  it('does not ping it', async () => {
    const pinged = () =>
      existsSync(join(host.dataDir, 'pinged')) ? readFileSync(join(host.dataDir, 'pinged'), 'utf8') : '';
    const members = [member(9, { monitorAddress: '169.254.169.254' }), member(10, { address: '127.0.0.77' })];
    const desired = balancer({ monitor: monitor({ type: 'PING' }), members });
    await expect(apply(desired)).rejects.toMatchObject(omitted('169.254.169.254'));
    await until(() => pinged().split('127.0.0.77').length > 3, 20, 'pings of the allowed member');
    expect(pinged()).not.toContain('169.254');
  });

  it('does not connect to it or probe it and serves its other members (UDP)', async () => {
    const good = await udpMember('good');
    const victim = createSocket('udp4');
    let datagrams = 0;
    victim.on('message', () => (datagrams += 1));
    await new Promise<void>((resolve) => victim.bind(0, '127.0.0.1', resolve));
    const { port } = victim.address();
    try {
      own.ports = [port];
      const members = [member(port), member(good.port), member(good.port + 1, { monitorPort: port })];
      const check = monitor({ type: 'UDP-CONNECT' });
      const desired = balancer({ protocol: 'UDP', monitor: check, members }, { protocol: 'UDP', port: 5353 });
      await expect(apply(desired)).rejects.toMatchObject(omitted(`port ${port} of 127.0.0.1`));
      for (let n = 0; n < 6; n += 1) expect(await askUdp(desired.address, undefined, 3000)).toBe('good');
      await until(async () => (await healthOf(desired, members[1]!)) === 'UP', 20, 'probed');
      expect(datagrams).toBe(0);
      expect(readFileSync(nginxFile(), 'utf8')).not.toContain(`:${port} `);
    } finally {
      victim.close();
      good.close();
    }
  });

  it('does not bypass the allowed networks of another load balancer', async () => {
    const member1 = await tcpMember('secret');
    const guarded = balancer(
      { protocol: 'TCP', members: [member(member1.port)] },
      { protocol: 'TCP', allowedNetworks: [] },
    );
    await apply(guarded);
    const [same, mapped] = [
      member(80, { address: guarded.address }),
      member(80, { address: `::ffff:${guarded.address}` }),
    ];
    for (const around of [same, mapped]) {
      const attack = balancer({ protocol: 'TCP', members: [around] }, { protocol: 'TCP' });
      await expect(apply(attack)).rejects.toMatchObject(
        omitted('is a load balancer; a load balancer cannot be a member'),
      );
      expect(await stream(attack.address).name).toBeNull();
    }
    expect(member1.connections()).toBe(0);
  });

  it('later changes succeed while the member stays omitted', async () => {
    const [victim, good, next] = [await httpMember('victim'), await httpMember('good'), await httpMember('next')];
    own.ports = [victim.port];
    const out = member(victim.port);
    const desired = balancer({ members: [out, member(good.port)] });
    await expect(apply(desired)).rejects.toMatchObject(omitted(`${victim.port}`));
    await apply(desired);
    await apply(withPool(desired, { members: [out, member(next.port)] }));
    await until(async () => (await ask(desired.address)).name === 'next', 10, 'changed');
    expect(await healthOf(desired, out)).toBe('DOWN');
    const moved = withPool(desired, { members: [{ ...out, monitorPort: victim.port }, member(next.port)] });
    await expect(apply(moved)).rejects.toMatchObject(omitted(`${victim.port}`));
    expect(victim.connections()).toBe(0);
  });

  describe('with a member from before the rules were stricter', () => {
    const both = async () => {
      const [victim, good] = [await httpMember('victim'), await httpMember('good')];
      const desired = balancer({ monitor: monitor(), members: [member(victim.port), member(good.port)] });
      await apply(desired);
      const names = async () =>
        new Set(await Promise.all([1, 2, 3, 4].map(async () => (await ask(desired.address)).name)));
      await until(async () => (await names()).size === 2, 10, 'both serve');
      return { victim, good, desired, names, out: desired.pools[0]!.members[0]! };
    };

    it.each(['stop', 'release'] as const)('omits the member from the next start (%s)', async (how) => {
      const { victim, desired, names, out } = await both();
      own.ports = [victim.port];
      await reopen(how);
      await until(async () => (await names()).has('good'), 10, 'served');
      expect(await names()).toEqual(new Set(['good']));
      expect(await healthOf(desired, out)).toBe('DOWN');
      const connections = victim.connections();
      await driver.read();
      expect(await names()).toEqual(new Set(['good']));
      expect(victim.connections()).toBe(connections);
      expect(await effectOf(driver, () => apply(desired))).toMatchObject({ reloads: 0 });
      own.ports = [];
      await reopen(how);
      await until(async () => (await names()).size === 2, 10, 'both serve again');
    });

    it('omits the member at the next sweep and restores it, without a reload', async () => {
      const { victim, names, desired, out } = await both();
      const { reloads } = driver.counters();
      own.ports = [victim.port];
      await driver.recheckMembers();
      expect(await names()).toEqual(new Set(['good']));
      expect(await healthOf(desired, out)).toBe('DOWN');
      own.ports = [];
      await driver.recheckMembers();
      await until(async () => (await names()).size === 2, 10, 'both serve again');
      expect(driver.counters().reloads).toBe(reloads);
    });

    it('omits a member whose address the host got later', async () => {
      const good = await httpMember('good');
      const later = member(80, { address: '198.18.0.7' });
      const desired = balancer({ members: [later, member(good.port)] });
      await apply(desired);
      expect(await servers()).toContain('198.18.0.7');
      own.local.push('198.18.0.7/32');
      await driver.recheckMembers();
      expect(await healthOf(desired, later)).toBe('DOWN');
      const line = () => servers().then((text) => text.split('\n').find((each) => each.includes(later.id)) ?? '');
      await until(async () => (await line()) === '', 20, 'drained and gone');
      expect((await ask(desired.address)).name).toBe('good');
    });

    it('omits UDP members', async () => {
      const [victim, good] = [await udpMember('victim'), await udpMember('good')];
      try {
        const members = [member(victim.port), member(good.port)];
        const desired = balancer({ protocol: 'UDP', members }, { protocol: 'UDP', port: 5353 });
        await apply(desired);
        own.ports = [victim.port];
        await driver.recheckMembers();
        for (let n = 0; n < 6; n += 1) expect(await askUdp(desired.address, undefined, 3000)).toBe('good');
        own.ports = [];
        await driver.recheckMembers();
        own.ports = [victim.port];
        await reopen('release');
        for (let n = 0; n < 6; n += 1) expect(await askUdp(desired.address, undefined, 3000)).toBe('good');
      } finally {
        victim.close();
        good.close();
      }
    });
  });
});
