/** UDP listeners through a real nginx. */
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { liveProcess } from '../../platform/running-processes.ts';
import type { HaproxyDriver } from '../haproxy/driver.ts';
import {
  balancer,
  effectOf,
  member,
  monitor,
  noEffect,
  testHost,
  type TestHost,
  withListener,
  withPool,
} from '../haproxy/test-host.ts';
import { askUdp, udpMember } from '../haproxy/test-members.ts';
import type { DesiredLoadBalancer, DesiredPool } from '../load-balancer.ts';
import { until } from '../../../test/until.ts';
import { errorLog } from './configuration.ts';
import { orphansOf } from './orphaned-workers.ts';

const signal = new AbortController().signal;

describe.skipIf(!requires('haproxy', 'nginx', 'root'))(skipReason('haproxy', 'nginx', 'root') ?? 'UDP', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  let open: { port: number; close(): void }[] = [];
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const members = async (...names: string[]) => {
    const made = await Promise.all(names.map(udpMember));
    open.push(...made);
    return made.map(({ port }) => member(port));
  };
  const udp = (changes: Partial<DesiredPool> = {}) =>
    balancer({ protocol: 'UDP', ...changes }, { protocol: 'UDP', port: 5353, timeoutMemberData: 500 });
  const pidFile = () => join(host.layout.nginx, 'nginx.pid');
  /** Another number after each change of the configuration. */
  const written = () => statSync(join(host.layout.nginxConfiguration, 'nginx.conf'), { bigint: true }).mtimeNs;
  /** 0 while it is down. */
  const pid = () => (existsSync(pidFile()) ? Number(readFileSync(pidFile(), 'utf8')) : 0);

  beforeAll(async () => {
    host = testHost();
    driver = host.driver();
    await driver.start();
  });
  afterEach(() => {
    for (const each of open) each.close();
    open = [];
  });
  afterAll(() => driver.stop().finally(host.cleanUp));

  it('starts no nginx without UDP listeners', () =>
    expect(existsSync(join(host.layout.nginx, 'nginx.pid'))).toBe(false));

  it('balances datagrams, and adds and removes members', async () => {
    const [a, b] = await members('a', 'b');
    const desired = udp({ members: [a!, b!] });
    await apply(desired);
    expect(await names(desired.address, 6)).toEqual(new Set(['a', 'b']));
    const first = written();
    const next = withPool(desired, { members: [{ ...a!, weight: 0 }, b!] });
    expect(await effectOf(driver, () => apply(next))).toEqual(noEffect);
    expect(await names(desired.address, 4)).toEqual(new Set(['b']));
    const second = written();
    expect(second).not.toBe(first);
    await apply(next);
    expect(written()).toBe(second);
    await apply(withPool(desired, { members: [] }));
    expect(await names(desired.address, 1)).toEqual(new Set([null]));
  });

  it('accepts the highest limit, and a pool of backups only', async () => {
    const [a, b] = await members('a', 'b');
    const backups = [a!, b!].map((each) => ({ ...each, backup: true }));
    const desired = udp({ members: backups });
    await apply(withListener(desired, { connectionLimit: 1_000_000 }));
    expect(await names(desired.address, 6)).toEqual(new Set(['a', 'b']));
    await apply(withPool(withListener(desired, { connectionLimit: 65_535 }), { members: [a!, backups[1]!] }));
    expect(await names(desired.address, 4)).toEqual(new Set(['a']));
  });

  it('keeps a source address on its member', async () => {
    const desired = udp({ algorithm: 'SOURCE_IP', members: await members('a', 'b', 'c') });
    await apply(desired);
    expect((await names(desired.address, 5, '127.0.0.9')).size).toBe(1);
  });

  it.each([
    ['255.255.255.0', ['127.0.9.1', '127.0.9.254'], '127.0.*.1'],
    ['255.255.240.0', ['127.0.160.1', '127.0.175.254'], '127.0.*.1'],
    ['255.0.0.0', ['127.1.2.3', '127.200.0.1'], null],
    ['255.255.255.255', ['127.0.9.1', '127.0.9.1'], '127.0.9.*'],
  ])('keeps the clients of a network by the netmask %s on one member', async (granularity, network, others) => {
    const persistence = { type: 'SOURCE_IP', cookieName: null, timeoutSeconds: 60, granularity } as const;
    const desired = udp({ persistence, members: await members('a', 'b', 'c') });
    await apply(desired);
    const seen = new Set<string | null>();
    for (const source of network) for (const name of await names(desired.address, 3, source)) seen.add(name);
    expect([seen.size, seen.has(null)]).toEqual([1, false]);
    if (others === null) return;
    const elsewhere = [8, 24, 40, 56, 72, 88, 104, 120, 136, 152, 184, 200].map((n) => others.replace('*', String(n)));
    const spread = await Promise.all(elsewhere.map((source) => names(desired.address, 1, source)));
    expect(new Set(spread.flatMap((one) => [...one])).size).toBeGreaterThan(1);
  });

  it('rejects clients outside the allowed networks', async () => {
    const desired = withListener(udp({ members: await members('a') }), { allowedNetworks: ['127.0.3.0/24'] });
    await apply(desired);
    expect(await names(desired.address, 1, '127.0.3.3')).toEqual(new Set(['a']));
    expect(await names(desired.address, 1, '127.0.4.4')).toEqual(new Set([null]));
  });

  it('does not use members that do not respond', async () => {
    const [a] = await members('a');
    const dead = member(1);
    const desired = udp({ members: [a!, dead], monitor: monitor({ type: 'UDP-CONNECT' }) });
    await apply(desired);
    const health = async () => (await driver.read()).find(({ id }) => id === desired.id)!.members;
    await until(async () => (await health()).get(dead.id) === 'DOWN', 5, 'down');
    await until(async () => (await health()).get(a!.id) === 'UP', 5, 'up');
    const onlyA = async () => [...(await names(desired.address, 4))].join() === 'a';
    await until(onlyA, 10, 'nothing for the dead one');
  });

  it('counts ended sessions', async () => {
    const desired = udp({ members: await members('a') });
    await apply(desired);
    await names(desired.address, 3);
    const counters = async () =>
      (await driver.read()).find(({ id }) => id === desired.id)!.listeners.get(desired.listeners[0]!.id);
    await until(async () => (await counters())?.totalConnections === 3, 5, 'three sessions');
    expect((await counters())!.bytesOut).toBe(3);
  });

  it('rejects a port in use, but UDP and TCP ports are separate', async () => {
    const desired = udp();
    await apply(desired);
    const thief = { ...udp(), address: desired.address };
    await expect(apply(thief)).rejects.toMatchObject({ retryable: false });
    await apply(balancer({}, { port: 5353 }, { address: desired.address }));
  });

  it('names a port that another program has, and can be retried until it is free', async () => {
    const desired = udp({ members: await members('a') });
    const stranger = createSocket('udp4');
    await new Promise<void>((resolve) => stranger.bind(5353, desired.address, resolve));
    await expect(apply(desired)).rejects.toMatchObject({
      ...{ retryable: true, maxRetrySeconds: 5 },
      customerMessage: 'another program of the host uses UDP port 5353',
    });
    await new Promise<void>((resolve) => stranger.close(resolve));
    await apply(desired);
    expect(await names(desired.address, 1)).toEqual(new Set(['a']));
  });

  it('names an address that the host does not have', async () => {
    const absent = '2001:db8::1';
    for (const addresses of [{ address: absent }, { additionalAddresses: [absent] }]) {
      await expect(apply({ ...udp(), ...addresses })).rejects.toMatchObject({
        ...{
          retryable: false,
          customerMessage: `the host does not have the address ${absent}; the operator must add it`,
        },
      });
    }
  });

  it('survives crashes of nginx and of the driver', async () => {
    const desired = udp({ members: await members('a') });
    await apply(desired);
    const died = pid();
    process.kill(died, 'SIGKILL');
    await until(() => pid() !== died && liveProcess(pid()), 10, 'nginx back');
    expect(orphansOf(errorLog(host.layout.nginx))).toEqual([]);
    await until(async () => (await names(desired.address, 1)).has('a'), 10, 'answers');
    const before = pid();
    await driver.release();
    driver = host.driver();
    await driver.start();
    expect(pid()).toBe(before);
    expect(await names(desired.address, 1)).toEqual(new Set(['a']));
  });

  it('continues without its log and its configuration', async () => {
    const desired = udp({ members: await members('a') });
    await apply(desired);
    rmSync(errorLog(host.layout.nginx));
    await apply(withPool(desired, { members: await members('b') }));
    expect(await names(desired.address, 2)).toEqual(new Set(['b']));
    rmSync(host.layout.nginxConfiguration, { recursive: true });
    await apply(udp());
    rmSync(host.layout.nginxConfiguration, { recursive: true });
    const died = pid();
    process.kill(died, 'SIGKILL');
    await until(() => pid() !== died && liveProcess(pid()), 20, 'nginx back');
    await until(async () => (await names(desired.address, 1)).has('b'), 10, 'answers');
  });

  it('serves the others at a start while another program has a port of one, and that one when it is free', async () => {
    const [blocked, other] = [udp({ members: await members('a') }), udp({ members: await members('b') })];
    const web = balancer({}, { port: 5353 }, { address: blocked.address });
    for (const each of [blocked, other, web]) await apply(each);
    await driver.stop();
    const stranger = createSocket('udp4');
    await new Promise<void>((resolve) => stranger.bind(5353, blocked.address, resolve));
    driver = host.driver();
    await driver.start();
    expect(await names(other.address, 1)).toEqual(new Set(['b']));
    expect(driver.status()).toMatchObject({
      healthy: false,
      detail: expect.stringContaining(`load balancer ${blocked.id} (cannot listen on ${blocked.address} UDP port 5353`),
    });
    expect((await driver.read()).map(({ id }) => id)).toContain(web.id);
    await expect(apply(blocked)).rejects.toMatchObject({ retryable: true });
    // A change of another one does not end the exclusion.
    await apply({ ...other, pools: [{ ...other.pools[0]!, algorithm: 'LEAST_CONNECTIONS' }] });
    expect(await names(other.address, 1)).toEqual(new Set(['b']));
    expect(driver.status().healthy).toBe(false);
    await new Promise<void>((resolve) => stranger.close(resolve));
    await until(async () => (await names(blocked.address, 1)).has('a'), 20, 'the port');
    expect(driver.status().healthy).toBe(true);
  });

  it('is rejected without nginx', async () => {
    const bare = testHost();
    const without = bare.driver({}, { nginx: null });
    await without.start();
    try {
      await expect(without.apply(udp(), signal)).rejects.toMatchObject({
        customerMessage: expect.stringMatching(/UDP is not available/),
      });
    } finally {
      await without.stop();
      bare.cleanUp();
    }
  });
});

/** The member that responds, each time from another port; null for none. */
async function names(address: string, times: number, from?: string): Promise<Set<string | null>> {
  const found = new Set<string | null>();
  for (let time = 0; time < times; time += 1) found.add(await askUdp(address, from));
  return found;
}
