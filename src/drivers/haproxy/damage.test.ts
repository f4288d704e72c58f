/** Files and sockets that something else removes or edits while HAProxy runs: nothing stops, and everything can be changed again. */
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { until } from '../../../test/until.ts';
import type { DesiredLoadBalancer } from '../load-balancer.ts';
import type { HaproxyDriver } from './driver.ts';
import { balancer, listener, member, pool, testHost, type TestHost } from './test-host.ts';
import { ask, authority, closeMembers, httpMember } from './test-members.ts';

const signal = new AbortController().signal;
const parts = ['haproxy', 'openssl', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'removed files of load balancers', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const served = async (name: string) => balancer({ members: [member((await httpMember(name)).port)] });
  const nameOf = async ({ address }: DesiredLoadBalancer, port = 80) => (await ask(address, {}, '/', port)).name;
  const withPort81 = (desired: DesiredLoadBalancer): DesiredLoadBalancer => {
    const second = pool({ members: desired.pools[0]!.members.map(({ port }) => member(port)) });
    const listeners = [...desired.listeners, listener({ port: 81, defaultPoolId: second.id })];
    return { ...desired, listeners, pools: [...desired.pools, second] };
  };
  const secured = async (name: string) => {
    const desired = await served(name);
    const pem = authority(host.dataDir, name).issue(`${name}.test`);
    const front = { port: 443, protocol: 'TERMINATED_HTTPS', certificate: { id: name, pem } } as const;
    const secure = listener({ ...front, defaultPoolId: desired.pools[0]!.id });
    return { ...desired, listeners: [...desired.listeners, secure] };
  };
  const certificates = () => readdirSync(host.layout.certificates).map((name) => host.layout.certificate(name));

  beforeEach(async () => {
    host = testHost();
    driver = host.driver();
    await driver.start();
  });
  afterEach(async () => {
    await closeMembers();
    await driver.stop();
    host.cleanUp();
  });

  it.each<[string, (file: string) => void]>([
    ['removed', rmSync],
    ['edited', (file) => writeFileSync(file, readFileSync(file, 'utf8').replaceAll(':80', ':8080'))],
    ['broken', (file) => writeFileSync(file, 'not a configuration\n')],
  ])('are written again before the reload of another load balancer when they were %s', async (_, damage) => {
    const [one, other] = [await served('one'), await served('other')];
    await apply(one);
    for (const file of [host.layout.balancerFile(one.id), host.layout.globalFile]) damage(file);
    await apply(other);
    expect([await nameOf(one), await nameOf(other)]).toEqual(['one', 'other']);
  });

  it('are written again by a recheck, which also restores servers', async () => {
    const one = await served('one');
    await apply(one);
    const files = [host.layout.balancerFile(one.id), host.layout.globalFile];
    const texts = () => files.map((file) => readFileSync(file, 'utf8'));
    const before = texts();
    for (const file of files) writeFileSync(file, 'not a configuration\n');
    await host.ask(`set server pool_${one.pools[0]!.id}/member_${one.pools[0]!.members[0]!.id} state maint`);
    expect(await nameOf(one)).toBeNull();
    await driver.recheckMembers();
    expect(await nameOf(one)).toBe('one');
    expect(texts()).toEqual(before);
  });

  it('are found when they are a spec or a certificate, and written by an apply', async () => {
    const [one, other] = [await secured('one'), await served('other')];
    await apply(one);
    await apply(other);
    expect(await driver.findDamaged!()).toEqual([]);
    rmSync(host.layout.spec(other.id));
    for (const file of certificates()) rmSync(file);
    expect(new Set(await driver.findDamaged!())).toEqual(new Set([one.id, other.id]));
    for (const desired of [one, other]) await apply(desired);
    expect(await driver.findDamaged!()).toEqual([]);
    await apply(withPort81(other));
    expect([await nameOf(one), await nameOf(other, 81)]).toEqual(['one', 'other']);
  });

  it('are found when they are the folders of specs and certificates, and written by an apply', async () => {
    const one = await secured('one');
    await apply(one);
    for (const folder of [host.layout.specs, host.layout.certificates]) rmSync(folder, { recursive: true });
    expect(await driver.findDamaged!()).toEqual([one.id]);
    await apply(one);
    expect(await driver.findDamaged!()).toEqual([]);
  });

  it('are found when a certificate was damaged before the start, and repaired by an apply', async () => {
    const [one, other] = [await secured('one'), await served('other')];
    await apply(one);
    await apply(other);
    await driver.stop();
    for (const file of certificates()) truncateSync(file, 100);
    driver = host.driver();
    await driver.start();
    expect(await nameOf(other)).toBe('other');
    expect(await driver.findDamaged!()).toEqual([one.id]);
    await apply(one);
    expect(await nameOf(one)).toBe('one');
    expect(await driver.findDamaged!()).toEqual([]);
  });

  it('do not prevent changes when they are the socket of the worker', async () => {
    const desired = await served('one');
    await apply(desired);
    for (const name of readdirSync(host.layout.sockets)) {
      if (name.startsWith('admin-')) rmSync(join(host.layout.sockets, name));
    }
    const members = [...desired.pools[0]!.members, member((await httpMember('two')).port)];
    const changed = { ...desired, pools: [{ ...desired.pools[0]!, members }] };
    await apply(changed);
    const names = new Set([await nameOf(changed), await nameOf(changed)]);
    expect(names).toEqual(new Set(['one', 'two']));
    await apply(withPort81(changed));
    expect(await nameOf(changed, 81)).toMatch(/one|two/);
  });

  it('are created again when they are the socket of the metrics', async () => {
    const front = listener({ protocol: 'PROMETHEUS', port: 9101 });
    const desired: DesiredLoadBalancer = { ...(await served('one')) };
    desired.listeners.push(front);
    await apply(desired);
    const statusOf = () => fetch(`http://${desired.address}:9101/metrics`).then(({ status }) => status);
    await until(async () => (await statusOf()) === 200, 10, 'metrics');
    rmSync(host.layout.exporterSocket);
    await until(async () => (await statusOf()) === 200, 10, 'metrics again');
  });
});
