/**
 * File shares and load balancers of one region of three hosts, one of which has a clock that is 5 minutes ahead. Hosts and
 * programs fail while clients create, change and write. After each failure `expectSound` compares what is served with the rows.
 * The cases run in order: each one begins with the region that the one before has left.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';
import { fetchText } from './balancer-region.ts';
import { labWorks, type LabNode } from './lab.ts';
import { GROUP, GROUP6, startWriter, type Writer } from './nfs-hosts.ts';
import { createWholeRegion, memberPorts, type WholeRegion } from './shares-and-balancers.ts';

vi.setConfig({ testTimeout: 200_000, hookTimeout: 240_000 });

const parts = [
  ...(['ceph', 'ceph-mds', 'nfs-ganesha', 'nfs-ganesha-ceph', 'iputils-arping'] as const),
  ...(['haproxy', 'keepalived', 'nginx', 'curl', 'root'] as const),
] as const;
const runs = requires(...parts) && labWorks();
const SHARES = '/cloud/v1/file_shares/1/1';
const BALANCERS = '/cloud/v1/loadbalancers/1/1';
const POOLS = '/cloud/v1/lbpools/1/1';
/** Changes while a host dies: an eighth creates shares, an eighth load balancers, and the others change members of pools. */
const CHANGES = 200;
const MONITOR_AWAY_MS = 30_000;

describe.skipIf(!runs)(skipReason(...parts) ?? 'file shares and load balancers of a region of three hosts', () => {
  let region: WholeRegion;
  let writer: Writer;
  let network: string;
  /** The share that the writer writes to. */
  let share: string;
  let updatePool: () => Promise<unknown>;
  let address: string;
  let created = 0;

  beforeAll(async () => {
    region = await createWholeRegion();
    const { body } = await region.request('GET', '/cloud/v1/networks/1/1');
    network = (JSON.parse(body) as { results: { id: string }[] }).results[0]!.id;
  });
  let hasFailed = false;
  beforeEach(({ skip, onTestFailed }) => {
    if (hasFailed) skip('an earlier case failed');
    onTestFailed(() => void (hasFailed = true));
  });
  afterAll(() => region?.remove(), 60_000);

  const get = async <T>(path: string) => JSON.parse((await region.request('GET', path)).body) as T;
  const member = (port: number) => ({ address: region.members.address, protocol_port: port });
  const createShare = () =>
    region.change('POST', SHARES, {
      ...{ name: `share-${(created += 1)}`, protocol: 'NFS', size: 1, network: { network_id: network } },
      access: ['10.77.0.0/16', 'fd00:77::/48'].map((ip_address) => ({ ip_address, access_mode: 'rw' })),
    });
  const createBalancer = () => {
    const name = `balancer-${(created += 1)}`;
    const own = { name, protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [member(memberPorts[0]!)] };
    return region.change('POST', BALANCERS, {
      name,
      listeners: [{ name: 'web', protocol: 'HTTP', protocol_port: 80, pools: [own] }],
    });
  };
  /** What changes the members of a pool that `createBalancer` made: to two and to one in turn. */
  const updaterOf = (pool: string) => {
    let skipped = 1;
    return () =>
      region.change('PATCH', `${POOLS}/${pool}`, { members: memberPorts.map(member).slice((skipped = 1 - skipped)) });
  };
  const poolOf = async (balancer: string) => {
    const { results } = await get<{ results: [{ id: string }] }>(`${POOLS}?loadbalancer_id=${balancer}`);
    return results[0].id;
  };
  const addRule = async (ip: string) => {
    const answer = await region.request('POST', `${SHARES}/${share}/access_rule`, {
      body: { ip_address: ip, access_mode: 'ro' },
    });
    expect(answer).toMatchObject({ status: 200 });
    const { id } = JSON.parse(answer.body) as { id: string };
    await until(async () => (await rules()).get(id) === 'active', 60, 'the rule');
    return id;
  };
  /** The states of the access rules of the share. */
  const rules = async () => {
    const { results } = await get<{ results: { id: string; state: string }[] }>(`${SHARES}/${share}/access_rule`);
    return new Map(results.map(({ id, state }) => [id, state]));
  };
  const revoke = async (rule: string) => {
    await region.request('DELETE', `${SHARES}/${share}/access_rule/${rule}`);
    await until(async () => !(await rules()).has(rule), 90, 'the removal of the rule');
  };
  /** The writer writes on, with the state that it had. */
  const survived = async () => {
    await writer.untilWritten(10);
    expect((await writer.report()).failure).toBeNull();
    await isBalanced();
  };
  /** A machine that stalls may be moving the address. */
  const isBalanced = async () => {
    const answer = () => fetchText(region.client, `http://${address}/`).catch(String);
    await expect.poll(answer, { timeout: 60_000 }).toMatch(/^c2 800\d$/);
  };
  const ganesha = async () => region.pid(await region.holder(GROUP), 'nfs-groups', GROUP, 'ganesha.pid');
  const others = (host: LabNode) => region.lab.hosts.filter((each) => each !== host);

  it('are served when their tasks have finished', async () => {
    const [{ loadbalancers = [] }] = await Promise.all([createBalancer(), createShare(), createShare()]);
    const { results } = await get<{ results: { id: string; connection_point: string }[] }>(SHARES);
    share = results.find(({ connection_point: point }) => point.startsWith(GROUP))!.id;
    ({ vip_address: address } = await get<{ vip_address: string }>(`${BALANCERS}/${loadbalancers[0]}`));
    updatePool = updaterOf(await poolOf(loadbalancers[0]!));
    writer = startWriter(region.client);
    await writer.open(share, { name: 'written' });
    await writer.write();
    await region.expectSound();
    await survived();
  });

  it('survive the death of a host in the middle of creates, updates and writes', async () => {
    const dying = await region.holder(GROUP);
    let begun = 0;
    const repeat = async (count: number, change: () => Promise<unknown>) => {
      for (let done = 0; done < count; done += 1) {
        begun += 1;
        await change();
      }
    };
    const own = await Promise.all([createBalancer(), createBalancer()]);
    const pools = await Promise.all(own.map(({ loadbalancers = [] }) => poolOf(loadbalancers[0]!)));
    const lanes = [
      ...[createShare, createBalancer].map((create) => repeat(CHANGES / 8, create)),
      ...[updatePool, ...pools.map(updaterOf)].map((update) => repeat(CHANGES / 4, update)),
    ];
    await until(() => begun >= CHANGES / 3, 60, 'a third of the changes');
    await dying.die();
    await Promise.all(lanes);
    await region.expectSound(others(dying));
    await survived();

    // It returns with what it served, of which a part is revoked meanwhile.
    const rule = await addRule('192.0.2.1');
    await updatePool();
    await revoke(rule);
    await dying.boot();
    await region.start(dying);
    await region.expectSound();
  });

  it('finish a revocation while a host is isolated, which serves nothing old when it is back', async () => {
    const rule = await addRule('192.0.2.2');
    const isolated = await region.holder(GROUP);
    const { services, clients } = region.lab;
    await region.lab.partition([isolated], [...others(isolated), services, ...clients]);
    await Promise.all([revoke(rule), updatePool(), createBalancer()]);
    await survived();
    await region.lab.heal();
    await region.expectSound();
    await survived();
  });

  it('are on one host each after the hosts did not see each other', async () => {
    await region.lab.isolate(region.lab.hosts);
    const holders = async () => {
      const lists = await Promise.all(region.lab.hosts.map((host) => host.addresses()));
      return lists.filter((list) => list.includes(address)).length;
    };
    await until(async () => (await holders()) === 3, 60, 'the address on every host');
    await Promise.all([updatePool(), createShare()]);
    await region.lab.heal();
    await region.expectSound();
    await survived();
  });

  it.each([
    ['Ganesha', GROUP, ['nfs-groups', GROUP, 'ganesha.pid']],
    ['keepalived', null, ['host', 'keepalived', 'keepalived.pid']],
    ['HAProxy', null, ['load-balancers', 'haproxy', 'haproxy.pid']],
  ])('survive the death of %s alone', async (_, group, file) => {
    const host = await region.holder(group ?? address);
    const pid = region.pid(host, ...file);
    process.kill(pid, 'SIGKILL');
    await updatePool();
    await until(() => liveProcess(pid) === null, 10, 'its end');
    await region.expectSound();
    await survived();
  });

  it('survive the death of an agent alone', async () => {
    const host = await region.holder(GROUP);
    const pid = region.agent(host);
    process.kill(pid, 'SIGKILL');
    await until(() => liveProcess(pid) === null, 10, 'its end');
    await updatePool();
    await survived();
    for (const moved of [GROUP, address]) {
      await until(async () => !(await host.addresses()).includes(moved), 20, 'the removal of its addresses');
    }
    await region.start(host);
    await region.expectSound();
  });

  it('survive the death of the agent that takes over, in the middle of it', async () => {
    const first = await region.holder(GROUP);
    process.kill(region.agent(first), 'SIGKILL');
    const changes = Promise.all([createShare(), updatePool()]);
    const taking = await region.taking(GROUP);
    expect(taking).not.toBe(first);
    process.kill(region.agent(taking), 'SIGKILL');
    await changes;
    await survived();
    await Promise.all([region.start(first), region.start(taking)]);
    await region.expectSound();
  });

  it('survive a monitor of Ceph that is away for 30 s', async () => {
    const areSpread = async () => (await region.holder(GROUP)) !== (await region.holder(GROUP6));
    // A host that returned takes a group.
    await expect.poll(areSpread, { timeout: 60_000, interval: 1000 }).toBe(true);
    const [began, server] = [performance.now(), await ganesha()];
    region.cluster.signal('mon.a', 'SIGSTOP');
    const share = createShare();
    // Load balancers need no storage.
    await Promise.all([updatePool(), createBalancer()]);
    await isBalanced();
    await sleep(Math.max(0, began + MONITOR_AWAY_MS - performance.now()));
    region.cluster.signal('mon.a', 'SIGCONT');
    await share;
    await region.expectSound();
    await survived();
    expect(await ganesha(), 'clients need not reclaim their state').toBe(server);
  });

  it('survive an OSD that is away', async () => {
    await region.cluster.kill('osd.0');
    await Promise.all([createShare(), updatePool()]);
    await survived();
    region.cluster.start('osd.0');
    await region.expectSound();
  });

  it('have lost nothing that was written, and leave nothing when they are deleted', async () => {
    await writer.stop();
    expect(await writer.verify()).toBe(true);
    for (const path of [SHARES, BALANCERS]) {
      const { results } = await get<{ results: { id: string }[] }>(`${path}?limit=100`);
      await Promise.all(results.map(({ id }) => region.change('DELETE', `${path}/${id}`, undefined)));
    }
    await region.expectSound();
    for (const host of region.lab.hosts) {
      await expect.poll(() => host.addresses()).toEqual([host.address, host.address6]);
    }
  });
});
