/** Changes under load, crashes and drains: unaffected clients notice nothing. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { startTraffic } from '../../../test/traffic.ts';
import { liveProcess } from '../../platform/running-processes.ts';
import type { DesiredLoadBalancer, DesiredMember } from '../load-balancer.ts';
import { until } from '../../../test/until.ts';
import type { HaproxyDriver } from './driver.ts';
import {
  balancer,
  effectOf,
  freeAddress,
  listener,
  member,
  noEffect,
  pool,
  testHost,
  type TestHost,
  withListener,
  withPool,
} from './test-host.ts';
import { ask, authority, closeMembers, httpMember, stream, type Stream, tcpMember } from './test-members.ts';

const signal = new AbortController().signal;

describe.skipIf(!requires('haproxy', 'openssl', 'root'))(skipReason('haproxy', 'openssl', 'root') ?? 'changes', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const healthOf = async (desired: DesiredLoadBalancer) =>
    (await driver.read()).find(({ id }) => id === desired.id)!.members;

  beforeAll(async () => {
    host = testHost();
    driver = host.driver({ drainSeconds: 1 });
    await driver.start();
  });
  afterEach(closeMembers);
  afterAll(() => driver.stop().finally(host.cleanUp));

  describe('under load', () => {
    it('a hundred member updates break no stream, fail no request and need no reload', async () => {
      const { desired, made } = await httpAndTcp();
      await apply(desired);
      const streams = Array.from({ length: 20 }, () => stream(desired.address, 8080));
      expect(new Set(await Promise.all(streams.map(({ name }) => name)))).toEqual(new Set(['kept']));
      const load = startTraffic(() => connectTo(desired.address));
      const { reloads } = driver.counters();
      const others = made.others.map(({ port }) => port);
      for (let at = 0; at < 100; at += 1) {
        const coming = [others[at % 3]!, others[(at + 1) % 3]!].map((port) => member(port, { weight: 1 + (at % 5) }));
        const [http, tcp] = desired.pools;
        const kept = { ...http!.members[0]!, weight: 1 + (at % 7) };
        const members = at % 2 === 0 ? [...coming, kept] : [kept, coming[0]!];
        await apply({
          ...desired,
          pools: [
            { ...http!, members },
            { ...tcp!, members: at % 2 ? tcp!.members : [...tcp!.members, member(1)] },
          ],
        });
      }
      await load.stop();
      expect(load.failures()).toEqual([]);
      expect(load.answered()).toBeGreaterThan(100);
      expect(driver.counters().reloads).toBe(reloads);
      const alive = await Promise.all(streams.map((each, at) => each.echoes(`still ${at}`)));
      expect(alive.filter(Boolean)).toHaveLength(20);
      for (const { socket } of streams) socket.destroy();
    }, 60_000);

    it('twenty changes of listeners and certificates fail no new connection and break no stream', async () => {
      const { desired } = await httpAndTcp();
      const ca = authority(host.dataDir, 'changes');
      const certificates = Array.from({ length: 3 }, (_, at) => ({ id: `c${at}`, pem: ca.issue(`c${at}.test`) }));
      const secure = listener({
        port: 443,
        protocol: 'TERMINATED_HTTPS',
        certificate: certificates[0]!,
        defaultPoolId: desired.pools[0]!.id,
      });
      await apply({ ...desired, listeners: [...desired.listeners, secure] });
      const streams = Array.from({ length: 20 }, () => stream(desired.address, 8080));
      await Promise.all(streams.map(({ name }) => name));
      const load = startTraffic(() => connectTo(desired.address));
      for (let at = 0; at < 20; at += 1) {
        const changed = { ...secure, certificate: certificates[at % 3]!, sniCertificates: certificates.slice(at % 2) };
        const [http, tcp] = desired.listeners;
        const next = { ...desired, listeners: [{ ...http!, connectionLimit: 1000 + at }, tcp!, changed] };
        expect(await effectOf(driver, () => apply(next))).toMatchObject({ reloads: 1 });
      }
      await load.stop();
      expect(load.failures()).toEqual([]);
      expect(load.answered()).toBeGreaterThan(100);
      expect((await Promise.all(streams.map((each) => each.echoes('still')))).filter(Boolean)).toHaveLength(20);
      for (const { socket } of streams) socket.destroy();
    }, 60_000);

    it('waiting changes share one reload', async () => {
      const many = Array.from({ length: 12 }, () => balancer());
      const { reloads } = driver.counters();
      await Promise.all(many.map(apply));
      expect(driver.counters().reloads - reloads).toBeLessThanOrEqual(2);
      await Promise.all(many.map(({ id }) => driver.remove(id, signal)));
    });
  });

  describe('removed members', () => {
    it('drain: they get no new connections, and open ones end by themselves or after the drain time', async () => {
      const { desired, streams, goes } = await twoTcp();
      const before = goes.connections();
      await apply(withPool(desired, { members: [desired.pools[0]!.members[0]!] }));
      for (let at = 0; at < 4; at += 1) expect(await nameOf(desired.address)).toBe('stays');
      expect(goes.connections()).toBe(before);
      expect(await streams.goes.echoes('still here')).toBe(true);
      await until(() => !streams.goes.isOpen(), 20, 'end of the drain time');
      expect(await streams.stays.echoes('still here')).toBe(true);
      await until(async () => !(await state(desired)).includes(desired.pools[0]!.members[1]!.id), 5, 'server deleted');
      streams.stays.socket.destroy();
    });

    it('drain on the old worker, too, after a reload', async () => {
      const { desired, streams, goes, stays } = await twoTcp();
      const next = withListener(withPool(desired, { members: [desired.pools[0]!.members[0]!] }), {
        connectionLimit: 9,
      });
      expect(await effectOf(driver, () => apply(next))).toMatchObject({ reloads: 1 });
      expect(await streams.goes.echoes('still here')).toBe(true);
      await until(() => !streams.goes.isOpen(), 20, 'end of the drain time');
      expect(await streams.stays.echoes('still here')).toBe(true);
      expect([goes.open(), stays.open() > 0]).toEqual([0, true]);
      streams.stays.socket.destroy();
    });

    it('can be added again while they drain', async () => {
      const { desired, streams } = await twoTcp();
      await apply(withPool(desired, { members: [desired.pools[0]!.members[0]!] }));
      await apply(desired);
      await drainAnother();
      expect(await streams.goes.echoes('still here')).toBe(true);
      for (const { socket } of Object.values(streams)) socket.destroy();
    });

    it('do not include members with a new address, role or weight', async () => {
      const { desired, streams, stays } = await twoTcp();
      const [first, second] = desired.pools[0]!.members;
      await apply(
        withPool(desired, {
          members: [
            { ...second!, backup: true, weight: 9 },
            { ...first!, monitorPort: stays.port },
          ],
        }),
      );
      await drainAnother();
      expect(await streams.goes.echoes('still here')).toBe(true);
      expect(await streams.stays.echoes('still here')).toBe(true);
      for (const { socket } of Object.values(streams)) socket.destroy();
    });
  });

  describe('crashes', () => {
    it('of HAProxy or only its worker are repaired', async () => {
      const one = await httpMember('a');
      const desired = balancer({ members: [member(one.port)] });
      await apply(desired);
      const answers = () =>
        ask(desired.address).then(
          ({ name }) => name === 'a',
          () => false,
        );
      process.kill(host.pid(), 'SIGKILL');
      await until(answers, 10, 'HAProxy back');
      const worker = Number(/^Pid: (\d+)$/m.exec(await host.ask('show info'))?.[1]);
      process.kill(worker, 'SIGKILL');
      await until(async () => liveProcess(worker) === null && (await answers()), 10, 'worker back');
      expect(await effectOf(driver, () => apply(desired))).toEqual(noEffect);
    });

    it('with lost sockets are reported, and repaired by a restart', async () => {
      const { desired } = await httpAndTcp();
      await apply(desired);
      rmSync(host.layout.sockets, { recursive: true });
      expect(driver.status().detail).toContain(`the socket ${host.layout.masterSocket} was removed`);
      process.kill(host.pid(), 'SIGKILL');
      const answers = () => ask(desired.address).then(({ status }) => status === 200);
      await until(() => answers().catch(() => false), 20, 'HAProxy back');
      await until(
        () =>
          apply(desired).then(
            () => true,
            () => false,
          ),
        10,
        'the sockets to respond',
      );
    });

    it('of the driver are invisible to clients, and the next driver adopts HAProxy', async () => {
      const { desired, streams } = await twoTcp();
      const pid = host.pid();
      await driver.release();
      expect(await nameOf(desired.address)).toMatch(/goes|stays/);
      driver = host.driver({ drainSeconds: 1 });
      await driver.start();
      expect(host.pid()).toBe(pid);
      expect(driver.counters().reloads).toBe(0);
      expect(await streams.goes.echoes('still here')).toBe(true);
      expect(await effectOf(driver, () => apply(desired))).toEqual(noEffect);
      for (const { socket } of Object.values(streams)) socket.destroy();
    });

    it('between the spec and the reload are repaired by the next start', async () => {
      const { desired } = await httpAndTcp();
      await apply(desired);
      await driver.release();
      // The state after a crash right after the spec was written.
      const file = host.layout.spec(desired.id);
      const spec = JSON.parse(readFileSync(file, 'utf8')) as DesiredLoadBalancer;
      const next = withListener(withPool(spec, { members: [] }), { port: 81 });
      writeFileSync(file, JSON.stringify(next));
      driver = host.driver({ drainSeconds: 1 });
      await driver.start();
      expect((await ask(desired.address, {}, '/', 81)).status).toBe(503);
      const same = { ...desired, listeners: next.listeners, pools: next.pools };
      expect(await effectOf(driver, () => apply(same))).toEqual(noEffect);
    });

    it('stop and start restore everything', async () => {
      const { desired } = await httpAndTcp();
      await apply(desired);
      await driver.stop();
      await expect(ask(desired.address)).rejects.toThrow();
      driver = host.driver({ drainSeconds: 1 });
      await driver.start();
      expect((await ask(desired.address)).status).toBe(200);
      expect((await healthOf(desired)).size).toBe(2);
    });
  });

  describe('an invalid change', () => {
    it('does not affect running load balancers: an invalid certificate', async () => {
      const { desired } = await httpAndTcp();
      await apply(desired);
      const bad = listener({ port: 443, protocol: 'TERMINATED_HTTPS', certificate: { id: 'x', pem: 'nonsense' } });
      const failed = apply({ ...desired, listeners: [...desired.listeners, bad] });
      await expect(failed).rejects.toMatchObject({
        retryable: false,
        message: expect.stringContaining('rejects the configuration'),
      });
      expect((await ask(desired.address)).status).toBe(200);
      expect(await effectOf(driver, () => apply(desired))).toEqual(noEffect);
    });

    it('does not affect others: load balancers that are members of each other', async () => {
      const [one, other] = [balancer({}, { port: 80 }), balancer({}, { port: 80 })];
      const to = (address: string) => ({ members: [member(80, { address })] });
      const results = await Promise.allSettled([
        apply(withPool(one, to(other.address))),
        apply(withPool(other, to(one.address))),
      ]);
      const leftOut = (address: string) => ({
        reason: { retryable: false, customerMessage: expect.stringContaining(`${address} is a load balancer`) },
      });
      expect(results).toMatchObject([leftOut(other.address), leftOut(one.address)]);
      expect((await ask(one.address)).status).toBe(503);
    });

    it('does not affect others: a port in use by another program', async () => {
      const desired = balancer();
      const thief = createServer();
      await new Promise<void>((resolve) => thief.listen(80, desired.address, resolve));
      const other = balancer();
      const [failed, done] = await Promise.allSettled([apply(desired), apply(other)]);
      expect(failed).toMatchObject({
        reason: {
          ...{ retryable: true, maxRetrySeconds: 5 },
          customerMessage: 'another program of the host uses port 80',
        },
      });
      expect(done).toMatchObject({ status: 'fulfilled' });
      await new Promise((resolve) => thief.close(resolve));
      expect(await effectOf(driver, () => apply(desired))).toMatchObject({ reloads: 1 });
    });

    it('names an address that the host does not have', async () => {
      const customerMessage = 'the host does not have the address 2001:db8::1; the operator must add it';
      for (const addresses of [{ address: '2001:db8::1' }, { additionalAddresses: ['2001:db8::1'] }]) {
        const desired = { ...balancer(), ...addresses };
        await expect(apply(desired)).rejects.toMatchObject({ retryable: false, customerMessage });
      }
    });

    it('is excluded from a start, reported, and served as soon as the port is free', async () => {
      const [good, bad] = [balancer(), balancer()];
      await apply(good);
      await apply(bad);
      await driver.stop();
      const thief = createServer();
      await new Promise<void>((resolve) => thief.listen(80, bad.address, resolve));
      driver = host.driver({ drainSeconds: 1 });
      await driver.start();
      expect(driver.status()).toMatchObject({
        healthy: false,
        detail: expect.stringMatching(/\b1 of \d+ load balancers/),
      });
      expect((await ask(good.address)).status).toBe(503);
      await new Promise((resolve) => thief.close(resolve));
      await vi.waitFor(() => expect(driver.status()).toMatchObject({ healthy: true }), {
        timeout: 60_000,
        interval: 100,
      });
      expect((await ask(bad.address)).status).toBe(503);
    });
  });

  it('protects private keys, and deletes unused ones', async () => {
    const ca = authority(host.dataDir, 'keys');
    const certificate = { id: 'x', pem: ca.issue('x.test') };
    const made = balancer({}, { protocol: 'TERMINATED_HTTPS', certificate });
    const desired = { ...made, pools: [pool({ id: made.pools[0]!.id })] };
    await apply(desired);
    const spec = readFileSync(host.layout.spec(desired.id), 'utf8');
    expect(spec).not.toContain('PRIVATE KEY');
    const [name = ''] = /[0-9a-f]{64}\.pem/.exec(spec) ?? [];
    expect(statSync(host.layout.certificate(name)).mode & 0o777).toBe(0o600);
    await driver.remove(desired.id, signal);
    expect(existsSync(host.layout.certificate(name))).toBe(false);
    expect(readdirSync(host.layout.candidates)).toEqual([]);
  });

  async function httpAndTcp() {
    const [kept, ...others] = await Promise.all(['kept', 'b', 'c', 'd'].map((name) => httpMember(name)));
    const tcp = await tcpMember('kept');
    const behind = [pool({ members: [member(kept!.port)] }), pool({ protocol: 'TCP', members: [member(tcp.port)] })];
    const fronts = [
      listener({ defaultPoolId: behind[0]!.id }),
      listener({ port: 8080, protocol: 'TCP', defaultPoolId: behind[1]!.id }),
    ];
    const desired = { ...balancer(), address: freeAddress(), listeners: fronts, pools: behind };
    return { desired, made: { kept: kept!, others } };
  }

  async function twoTcp() {
    const [stays, goes] = [await tcpMember('stays'), await tcpMember('goes')];
    const members: DesiredMember[] = [member(stays.port), member(goes.port)];
    const desired = balancer({ protocol: 'TCP', members }, { protocol: 'TCP' });
    await apply(desired);
    const found: Record<string, Stream> = {};
    while (!found['stays'] || !found['goes']) {
      const one = stream(desired.address);
      const name = (await one.name) ?? '';
      if (found[name]) one.socket.destroy();
      else found[name] = one;
    }
    return { desired, streams: { stays: found['stays'], goes: found['goes'] }, stays, goes };
  }

  /** Resolves when a drain that begins now has ended, so that earlier ones are over, too. */
  async function drainAnother(): Promise<void> {
    const { desired, streams } = await twoTcp();
    await apply(withPool(desired, { members: [desired.pools[0]!.members[0]!] }));
    await until(() => !streams.goes.isOpen(), 20, 'end of another drain');
    streams.stays.socket.destroy();
  }

  async function nameOf(address: string): Promise<string | null> {
    const one = stream(address);
    const name = await one.name;
    one.socket.destroy();
    return name;
  }

  async function state(desired: DesiredLoadBalancer): Promise<string> {
    return host.ask(`show servers state pool_${desired.pools[0]!.id}`);
  }
});

/** One request on a new connection. */
async function connectTo(address: string): Promise<void> {
  const { status } = await ask(address);
  if (status !== 200) throw new Error(`status ${status}`);
}
