/** Health monitors: requests, and the results of responses. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import type { DesiredLoadBalancer, DesiredMonitor, MemberHealth } from '../load-balancer.ts';
import { until } from '../../../test/until.ts';
import type { HaproxyDriver } from './driver.ts';
import { balancer, effectOf, member, monitor, testHost, type TestHost, withListener, withPool } from './test-host.ts';
import {
  ask,
  authority,
  closeMembers,
  firstBytesMember,
  httpMember,
  httpsMember,
  stream,
  tcpMember,
} from './test-members.ts';

const signal = new AbortController().signal;
/** Nothing responds there, and no packet leaves this host. */
const NOWHERE = '::2';

describe.skipIf(!requires('haproxy', 'openssl', 'root'))(skipReason('haproxy', 'openssl', 'root') ?? 'health', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const health = async (desired: DesiredLoadBalancer): Promise<(MemberHealth | undefined)[]> => {
    const reading = (await driver.read()).find(({ id }) => id === desired.id);
    return desired.pools[0]!.members.map(({ id }) => reading?.members.get(id));
  };
  const becomes = async (desired: DesiredLoadBalancer, ...expected: MemberHealth[]) => {
    let last: unknown;
    await until(
      async () => JSON.stringify((last = await health(desired))) === JSON.stringify(expected),
      8,
      'health',
    ).catch(() => expect(last).toEqual(expected));
  };
  const http = (changes: Partial<DesiredMonitor> = {}) => monitor({ type: 'HTTP', ...changes });

  beforeAll(async () => {
    host = testHost();
    driver = host.driver();
    await driver.start();
  });
  afterEach(closeMembers);
  afterAll(() => driver.stop().finally(host.cleanUp));

  it('detects members that fail and recover', async () => {
    const [a, b] = [await httpMember('a'), await httpMember('b')];
    const desired = balancer({ members: [member(a.port), member(b.port)], monitor: monitor() });
    await apply(desired);
    await becomes(desired, 'UP', 'UP');
    await b.close();
    await becomes(desired, 'UP', 'DOWN');
    for (let at = 0; at < 4; at += 1) expect((await ask(desired.address)).name).toBe('a');
    await httpMember('b', b.port);
    await becomes(desired, 'UP', 'UP');
  });

  it('sends the configured HTTP request and expects the configured codes', async () => {
    const one = await httpMember('a');
    const requests = {
      httpMethod: 'HEAD',
      urlPath: "/a b/it's;#$x%[src]\\",
      domainName: 'name.test',
      expectedCodes: '200,300-399',
    };
    const desired = balancer({ members: [member(one.port)], monitor: http(requests) });
    await apply(desired);
    await becomes(desired, 'UP');
    await until(() => one.requests.length > 0, 5, 'a check');
    expect(one.requests[0]).toBe("HEAD /a%20b/it's;#$x%[src]\\ name.test");
    one.answer(302);
    await until(() => one.requests.length > 6, 5, 'checks');
    await becomes(desired, 'UP');
    one.answer(404);
    await becomes(desired, 'DOWN');
    one.answer(200);
    await becomes(desired, 'UP');
  });

  it('requires consecutive failures', async () => {
    const one = await httpMember('a');
    const desired = balancer({ members: [member(one.port)], monitor: http({ maxRetriesDown: 8, delay: 100 }) });
    await apply(desired);
    await until(() => one.requests.length > 5, 5, 'checks');
    const before = one.requests.length;
    one.answer(500);
    await becomes(desired, 'DOWN');
    expect(one.requests.length - before).toBeGreaterThanOrEqual(7);
  });

  it('supports HTTPS and TLS handshakes', async () => {
    const pem = authority(host.dataDir, 'health').issue('member.test');
    const [plain, tls] = [await tcpMember('plain'), await httpsMember('a', pem)];
    const members = [member(tls.port), member(plain.port)];
    const desired = balancer(
      { protocol: 'HTTPS', members, monitor: monitor({ type: 'TLS-HELLO' }) },
      { protocol: 'HTTPS' },
    );
    await apply(desired);
    await becomes(desired, 'UP', 'DOWN');
    const next = withPool(desired, { monitor: http({ type: 'HTTPS', domainName: 'member.test' }) });
    await apply(next);
    await becomes(next, 'UP', 'DOWN');
    await until(() => tls.requests.length > 0, 5, 'a check');
    tls.answer(500);
    await becomes(next, 'DOWN', 'DOWN');
  });

  it('sends a PROXY header to members that expect one', async () => {
    const { port } = await firstBytesMember();
    const desired = balancer({ protocol: 'PROXY', members: [member(port)], monitor: monitor() }, { protocol: 'TCP' });
    await apply(desired);
    await becomes(desired, 'UP');
  });

  it('checks another address and port, changed without a reload', async () => {
    const [one, other] = [await httpMember('a'), await httpMember('b')];
    const mine = member(one.port, { monitorAddress: '127.0.0.1', monitorPort: other.port });
    const desired = balancer({ members: [mine], monitor: monitor() });
    await apply(desired);
    await other.close();
    await becomes(desired, 'DOWN');
    const next = withPool(desired, { members: [{ ...mine, monitorPort: null }] });
    expect(await effectOf(driver, () => apply(next))).toMatchObject({ reloads: 0 });
    await becomes(next, 'UP');
  });

  it('checks members that are added or enabled at run time', async () => {
    const one = await httpMember('a');
    const dead = member(1);
    const desired = balancer({ members: [member(one.port)], monitor: monitor() });
    await apply(desired);
    const grown = withPool(desired, { members: [...desired.pools[0]!.members, dead] });
    expect(await effectOf(driver, () => apply(grown))).toMatchObject({ reloads: 0 });
    await becomes(grown, 'UP', 'DOWN');
    const off = withPool(grown, { members: [desired.pools[0]!.members[0]!, { ...dead, enabled: false }] });
    await apply(off);
    await becomes(off, 'UP', 'MAINT');
    await apply(grown);
    await becomes(grown, 'UP', 'DOWN');
  });

  it('serves and checks a member that was disabled at the last reload as soon as it is enabled', async () => {
    const [one, other] = [await httpMember('a'), await httpMember('b')];
    const off = member(other.port, { enabled: false });
    const names = async ({ address }: DesiredLoadBalancer) =>
      [(await ask(address)).name, (await ask(address)).name].sort();
    for (const [checks, up] of [[null, 'UNCHECKED'] as const, [monitor(), 'UP'] as const]) {
      const desired = balancer({ members: [member(one.port), off], monitor: checks });
      expect(await effectOf(driver, () => apply(desired))).toMatchObject({ reloads: 1 });
      const on = withPool(desired, { members: [desired.pools[0]!.members[0]!, { ...off, enabled: true }] });
      expect(await effectOf(driver, () => apply(on))).toMatchObject({ reloads: 0 });
      await becomes(on, up, up);
      expect(await names(on)).toEqual(['a', 'b']);
      await apply(desired);
      await becomes(desired, up, 'MAINT');
      expect(await names(desired)).toEqual(['a', 'a']);
    }
  });

  it('checks all members soon after a reload, also those with long intervals', async () => {
    const slow = monitor({ delay: 60_000, maxRetriesDown: 1 });
    const desired = balancer({ members: [1, 2, 3, 4].map((port) => member(port)), monitor: slow });
    expect(await effectOf(driver, () => apply(desired))).toMatchObject({ reloads: 1 });
    await becomes(desired, 'DOWN', 'DOWN', 'DOWN', 'DOWN');
  });

  it('keeps a member down over a reload', async () => {
    const one = await httpMember('a');
    const desired = balancer({ members: [member(one.port), member(1)], monitor: monitor({ delay: 3_000 }) });
    await apply(desired);
    await becomes(desired, 'UP', 'DOWN');
    await apply(withListener(desired, { connectionLimit: 99 }));
    expect(await health(desired)).toEqual(['UP', 'DOWN']);
  });

  it('does not check with a disabled or deleted monitor', async () => {
    const desired = balancer({ members: [member(1)], monitor: monitor({ enabled: false }) });
    await apply(desired);
    await becomes(desired, 'UNCHECKED');
    await apply(withPool(desired, { monitor: monitor() }));
    await becomes(desired, 'DOWN');
    await apply(withPool(desired, { monitor: null }));
    await becomes(desired, 'UNCHECKED');
  });

  it.runIf(requires('iputils-ping'))('pings, over reloads', async () => {
    const one = await httpMember('a');
    const members = [member(one.port), member(one.port, { address: '127.0.0.3', monitorAddress: NOWHERE })];
    const desired = balancer({ members, monitor: monitor({ type: 'PING', timeout: 300 }) });
    await apply(desired);
    await becomes(desired, 'UP', 'DOWN');
    const stat = () => host.ask(`show stat pool_${desired.pools[0]!.id} 4 -1`);
    await until(async () => /,DOWN,/.test(await stat()), 5, 'HAProxy knows');
    await apply(withListener(desired, { connectionLimit: 99 }));
    expect(await stat()).toMatch(/,DOWN,/);
    await apply(withPool(desired, { monitor: null }));
    expect(await stat()).not.toMatch(/,DOWN,/);
    await becomes(desired, 'UNCHECKED', 'UNCHECKED');
  });

  it('counts the traffic of listeners over reloads', async () => {
    const one = await httpMember('a');
    const desired = balancer({ members: [member(one.port)] });
    await apply(desired);
    const counters = async () =>
      (await driver.read()).find(({ id }) => id === desired.id)!.listeners.get(desired.listeners[0]!.id)!;
    await ask(desired.address);
    await ask(desired.address);
    const before = await counters();
    expect(before.totalConnections).toBe(2);
    expect(before.bytesIn).toBeGreaterThan(0);
    await apply(withListener(desired, { connectionLimit: 99 }));
    expect((await counters()).totalConnections).toBe(2);
    await ask(desired.address);
    expect((await counters()).totalConnections).toBe(3);
    // The next process does not know the replaced worker: with its part of the sum alone, the sum would seem to start again.
    await driver.release();
    driver = host.driver();
    await driver.start();
    expect((await counters()).totalConnections).toBe(0);
    await ask(desired.address);
    expect((await counters()).totalConnections).toBe(1);
  });

  it('counts requests, and those that no member answered', async () => {
    const [working, closed] = [await httpMember('a'), await httpMember('b')];
    await closed.close();
    const desired = balancer({ members: [member(working.port)] });
    const dead = balancer({ members: [member(closed.port)] });
    const tcp = balancer({ protocol: 'TCP', members: [member(closed.port)] }, { protocol: 'TCP' });
    for (const each of [desired, dead, tcp]) await apply(each);
    const counters = async (of: DesiredLoadBalancer) =>
      (await driver.read()).find(({ id }) => id === of.id)!.listeners.get(of.listeners[0]!.id)!;
    await ask(desired.address);
    expect((await ask(dead.address)).status).toBe(503);
    await stream(tcp.address).name;
    expect(await counters(desired)).toMatchObject({ requests: 1, serverErrors: 0 });
    expect(await counters(dead)).toMatchObject({ requests: 1, requestErrors: 0, serverErrors: 1 });
    const refused = { totalConnections: 1, requests: 0, serverErrors: 1 };
    expect(await counters(tcp)).toMatchObject(refused);
    await apply(withListener(tcp, { connectionLimit: 99 }));
    expect(await counters(tcp)).toMatchObject(refused);
    await apply(withListener(tcp, { allowedNetworks: [] }));
    await stream(tcp.address).name;
    expect(await counters(tcp)).toMatchObject({ ...refused, requestErrors: 1 });
  });
});
