/**
 * Real keepalived and HAProxy. Prints the longest gap that a client saw; `TEST_GAPS=1` holds the gaps against the bars of
 * docs/several-hosts-failures.md.
 */
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { layoutOf } from '../../src/drivers/haproxy/layout.ts';
import { runtimeSocket } from '../../src/drivers/haproxy/runtime-socket.ts';
import { balancer, member } from '../../src/drivers/haproxy/test-host.ts';
import type { DesiredLoadBalancer, DesiredPersistence } from '../../src/drivers/load-balancer.ts';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { requires } from '../requires.ts';
import {
  askAsPeer,
  askUdp,
  type BalancerHost,
  fetchText,
  measureGap,
  startBalancerHost,
  startServers,
  viewOf,
} from './balancer-region.ts';
import { expectGap } from './gaps.ts';
import { createLab, type Lab, type LabNode, labWorks } from './lab.ts';

const works = labWorks() && requires('keepalived', 'haproxy', 'nginx', 'nftables', 'curl');
const memberPorts = [8001, 8002, 8003, 8004];
const apiPort = 8080;
const apiUrl = `http://127.0.0.1:${apiPort}/`;
const spread = [['addresses-0', 'api'], ['addresses-1'], ['addresses-2']];

// Longer than the waits of a case together, so that a failed case reports what it waited for.
describe.skipIf(!works)('load balancers of several hosts', { timeout: 240_000 }, () => {
  let lab: Lab;
  let client: LabNode;
  let hosts: BalancerHost[];
  let apiServers: ChildProcess[];

  beforeAll(async () => {
    lab = await createLab({ hosts: 3 });
    client = lab.clients[0]!;
    await startServers(lab.services, memberPorts);
    apiServers = await Promise.all(lab.hosts.map((node) => startServers(node, [apiPort])));
    hosts = await Promise.all(lab.hosts.map(start));
  });
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      mustRestart = true;
      for (const host of hosts) console.log(host.node.name, host.log());
    });
  });
  /** A failed case leaves hosts dead or drained, servers down, and agents that consider a host dead. The next one must not fail for it. */
  beforeEach(async () => {
    if (!mustRestart) return;
    mustRestart = false;
    await lab.heal();
    await Promise.all(lab.hosts.map((_, at) => rebuild(at)));
    await isSpread();
  }, 240_000);
  afterAll(() => lab.remove());

  /** Whether the last case has failed, or has left hosts that serve nothing. */
  let mustRestart = false;
  const start = (node: LabNode) => startBalancerHost(node, lab.hosts, { states, apiUrl });
  const restart = async (at: number) => {
    hosts[at] = await start(lab.hosts[at]!);
  };
  const rebuild = async (at: number) => {
    const node = lab.hosts[at]!;
    await node.die();
    await node.boot();
    apiServers[at] = await startServers(node, [apiPort]);
    await restart(at);
  };
  const restartAlone = async (node: LabNode) => {
    process.kill(hosts[0]!.agentPid(), 'SIGKILL');
    hosts[0] = await startBalancerHost(node, [node], { states, apiUrl });
  };
  const isSpread = async () =>
    await expect.poll(() => Promise.all(hosts.map((host) => host.holds())), { timeout: 100_000 }).toEqual(spread);
  /** The hosts that have an address, which must be one at any time but in a separated network. */
  const allHolders = async () => {
    const lists = await Promise.all(lab.hosts.map((node) => node.addresses()));
    const holders = (address: string) => lab.hosts.filter((_, at) => lists[at]!.includes(address));
    return Object.fromEntries(addresses.map((address) => [address, holders(address).map(({ name }) => name)]));
  };
  /** Until every HAProxy shares its sessions with the others. Those that started first connect again after 5 s. */
  const untilShared = async () => {
    for (const host of hosts) {
      const connected = async () => (await askHaproxy(host, 'show peers cloudyard')).match(/last_status=ESTA/g)?.length;
      await expect.poll(connected).toBe(hosts.length - 1);
    }
  };
  /** Until every HAProxy knows the sessions of the others: those of the last milliseconds are lost with their host. */
  const untilSessionsAreEverywhere = async () => {
    const sessionsOf = async (host: BalancerHost) =>
      (await askHaproxy(host, 'show table')).match(/pool_.*used:[1-9]\d*/g)?.toSorted();
    const areEqual = async () => {
      const [first, ...others] = await Promise.all(hosts.map(sessionsOf));
      return first !== undefined && others.every((each) => isDeepStrictEqual(each, first));
    };
    await expect.poll(areEqual).toBe(true);
  };
  const askHaproxy = (host: BalancerHost, command: string) => {
    const { masterSocket } = layoutOf(host.dataDir);
    return runtimeSocket(`/proc/${host.pid('haproxy')}/root${masterSocket}`, '@1 ')([command]);
  };
  /** What the agents that run see of the hosts. */
  const seeHosts = async (changes: Parameters<typeof viewOf>[2]) => {
    // The agent of a dead host rejects.
    await Promise.allSettled(
      hosts.map(({ node, perform }) => perform({ do: 'hosts', region: viewOf(node.name, lab.hosts, changes) })),
    );
  };
  const holdersOf = async (address: string) => (await allHolders())[address]!;
  const everyAddressOnce = async () => Object.values(await allHolders()).every((names) => names.length === 1);

  it('are spread over the hosts, by IPv4 and IPv6', async () => {
    await isSpread();
    expect(await allHolders()).toEqual({
      ...{ '10.77.1.1': ['h2'], '10.77.1.2': ['h3'], '10.77.1.3': ['h1'], '10.77.3.1': ['h1'] },
      ...{ 'fd00:77:0:1::1': ['h2'], 'fd00:77:0:1::2': ['h3'], 'fd00:77:0:1::3': ['h1'] },
    });
    for (const url of [
      'http://10.77.1.1/',
      'http://[fd00:77:0:1::1]/',
      'http://10.77.1.3/',
      'http://[fd00:77:0:1::2]/',
    ]) {
      expect(await fetchText(client, url)).toMatch(/^services 800\d$/);
    }
    expect(await fetchText(client, 'http://10.77.3.1:8080/')).toBe('h1 8080');
  });

  it('give their sessions, which contain cookies of members, to no one but the hosts', async () => {
    await untilShared();
    const names = { self: 'h2', other: 'h1' };
    const { address } = lab.node('h1');
    expect(await askAsPeer(client, address, names)).toBe('');
    expect(await askAsPeer(lab.node('h2'), address, names)).toBe('200');
  });

  it('survive the death of a host, with the sessions of their clients', async () => {
    const urls = ['http://10.77.1.2/', 'http://10.77.1.2:81/', 'http://[fd00:77:0:1::2]:81/'];
    const sticky = async (url: string) => fetchText(client, url);
    await isSpread();
    await untilShared();
    const before = await Promise.all(urls.slice(1).map(sticky));
    const udp = await askUdp(client, '10.77.1.2', 53);
    await untilSessionsAreEverywhere();
    const gap = await measureGap('host dies', client, urls[0]!, async () => {
      await lab.node('h3').die();
      // Rebalancing waits longer than leases; here it does not.
      await seeHosts({ h3: { leaseValid: false } });
    });
    expectGap(gap, 2000);
    for (let again = 0; again < 4; again += 1) expect(await Promise.all(urls.slice(1).map(sticky))).toEqual(before);
    expect(await askUdp(client, '10.77.1.2', 53)).toBe(udp);
    await lab.node('h3').boot();
    apiServers[2] = await startServers(lab.node('h3'), [apiPort]);
    await restart(2);
    await seeHosts({});
    await isSpread();
  });

  it('survive the death of HAProxy', async () => {
    const h2 = hosts[1]!;
    const once = await measureGap('HAProxy dies', client, 'http://10.77.1.1/', async () => {
      process.kill(h2.pid('haproxy'), 'SIGKILL');
    });
    expectGap(once, 2500);
    const killing = setInterval(() => {
      const found = liveProcess(h2.pid('haproxy'));
      if (found?.commandLine.includes(h2.dataDir)) process.kill(found.pid, 'SIGKILL');
    }, 20);
    try {
      const always = await measureGap('HAProxy dies whenever it starts', client, 'http://10.77.1.1/', async () => {
        await expect.poll(() => holdersOf('10.77.1.1')).not.toContain('h2');
      });
      expectGap(always, 2500);
    } finally {
      clearInterval(killing);
    }
    await isSpread();
  });

  it('survive the death of keepalived, which leaves no address behind', async () => {
    const h2 = hosts[1]!;
    const kill = async (...processes: ('keepalived' | 'vrrp')[]) => {
      const before = h2.pid('keepalived');
      for (const pid of processes.map(h2.pid)) process.kill(pid, 'SIGKILL');
      await expect.poll(() => ![0, before].includes(h2.pid('keepalived'))).toBe(true);
      await expect.poll(everyAddressOnce).toBe(true);
    };
    const both = () => kill('keepalived', 'vrrp');
    expectGap(await measureGap('keepalived dies', client, 'http://10.77.1.1/', both), 2000);
    await isSpread();
    const parent = () => kill('keepalived');
    expectGap(await measureGap('the parent of keepalived dies', client, 'http://10.77.1.1/', parent), 2000);
    await isSpread();
  });

  it('move when the agent of their host is dead, and its successor adopts the programs', async () => {
    const h2 = hosts[1]!;
    const haproxy = h2.pid('haproxy');
    const gap = await measureGap('the agent dies', client, 'http://10.77.1.1/', async () => {
      process.kill(h2.agentPid(), 'SIGKILL');
      await expect.poll(() => holdersOf('10.77.1.1')).not.toContain('h2');
    });
    expectGap(gap, 2000);
    await restart(1);
    expect(hosts[1]!.pid('haproxy')).toBe(haproxy);
    await isSpread();
  });

  it('are on one host again after its agent and keepalived died together', async () => {
    const h2 = hosts[1]!;
    const gap = await measureGap('the agent and keepalived die', client, 'http://10.77.1.1/', async () => {
      // Nobody removes the addresses of this host, until its next agent does: its VRRP process would when its parent dies.
      process.kill(h2.pid('vrrp'), 'SIGSTOP');
      for (const pid of [h2.agentPid(), h2.pid('keepalived'), h2.pid('vrrp')]) process.kill(pid, 'SIGKILL');
      await expect.poll(() => holdersOf('10.77.1.1')).toHaveLength(2);
      await restart(1);
      await expect.poll(everyAddressOnce).toBe(true);
    });
    expectGap(gap, 2000);
    await isSpread();
  });

  it('stay where they are while an agent is replaced', async () => {
    const h2 = hosts[1]!;
    const gap = await measureGap('an agent is replaced', client, 'http://10.77.1.1/', async () => {
      await h2.perform({ do: 'release' });
      process.kill(h2.agentPid(), 'SIGKILL');
      await restart(1);
    });
    expect(gap.failures).toBe(0);
    expect(await holdersOf('10.77.1.1')).toEqual(['h2']);
  });

  it('are on one host again after a separation', async () => {
    const [h1, h2, h3] = lab.hosts as [LabNode, LabNode, LabNode];
    const others = [h1, h3, client, lab.services];
    const gap = await measureGap('a host is separated', client, 'http://10.77.1.1/', async () => {
      await lab.partition([h2], others);
      await expect.poll(() => holdersOf('10.77.1.1')).toHaveLength(2);
    });
    expectGap(gap, 2000);
    const healed = await measureGap('it is joined again', client, 'http://10.77.1.1/', async () => {
      await lab.heal();
      await expect.poll(everyAddressOnce).toBe(true);
    });
    expectGap(healed, 2000);
    await lab.isolate(lab.hosts);
    await expect.poll(() => holdersOf('10.77.1.1')).toEqual(['h1', 'h2', 'h3']);
    const three = await measureGap('three separated hosts are joined', client, 'http://10.77.1.1/', async () => {
      await lab.heal();
      await expect.poll(everyAddressOnce).toBe(true);
    });
    expectGap(three, 2000);
    // As agents see it, whose leases ended meanwhile. Otherwise hosts that could not return a group wait for longer.
    await seeHosts({});
    await isSpread();
  });

  it('leave a host that drains without a failed request', async () => {
    const [, h2] = hosts;
    let draining: Promise<unknown> | undefined;
    await isSpread();
    const keepAlive = measureGap('a host drains, connections kept alive', client, 'http://[fd00:77:0:1::1]/', drained, {
      keepAlive: true,
    });
    const gap = await measureGap('a host drains', client, 'http://10.77.1.1/', drained);
    expect([gap.errors, (await keepAlive).errors]).toEqual([{}, {}]);
    expect(await h2!.holds()).toEqual([]);
    await h2!.perform({ do: 'serve' });
    await isSpread();

    async function drained() {
      draining ??= h2!.perform({ do: 'drain' });
      await draining;
    }
  });

  it('move the address of the API with its server and its host', async () => {
    const url = 'http://10.77.3.1:8080/';
    const gap = await measureGap('the API server dies', client, url, async () => {
      apiServers[0]!.kill('SIGKILL');
      await once(apiServers[0]!, 'exit');
    });
    expectGap(gap, 2000);
    apiServers[0] = await startServers(lab.node('h1'), [apiPort]);
    await isSpread();
    const host = await measureGap('the host of the API dies', client, url, () => lab.node('h1').die());
    expectGap(host, 2000);
    await lab.node('h1').boot();
    apiServers[0] = await startServers(lab.node('h1'), [apiPort]);
    await restart(0);
    await isSpread();
  });

  it('stop serving with their agent, and the last host serves all', async () => {
    mustRestart = true;
    // A host on a busy machine may take the addresses later than a client waits.
    const isServed = async () => {
      await expect.poll(() => fetchText(client, 'http://10.77.1.1/').catch(String)).toMatch(/^services/);
    };
    await hosts[1]!.perform({ do: 'stopServing' });
    expect(await lab.node('h2').addresses()).toEqual(['10.77.0.12', 'fd00:77::12']);
    await isServed();
    await hosts[2]!.perform({ do: 'stopServing' });
    const [h1] = lab.hosts as [LabNode];
    await hosts[0]!.perform({ do: 'hosts', region: viewOf('h1', [h1]) });
    await expect.poll(() => hosts[0]!.holds()).toEqual(['addresses-0', 'addresses-1', 'addresses-2', 'api']);
    await isServed();
    // With the state that a new host starts from: nobody else has been seen.
    await hosts[0]!.perform({ do: 'stopServing' });
    await expect(fetchText(client, 'http://10.77.1.1/')).rejects.toThrow();
    await restartAlone(h1);
    await expect.poll(() => hosts[0]!.holds()).toEqual(['addresses-0', 'addresses-1', 'addresses-2', 'api']);
  });
});

const addresses = [1, 2, 3].flatMap((n) => [`10.77.1.${n}`, `fd00:77:0:1::${n}`]).concat('10.77.3.1');
const members = () => memberPorts.map((port) => member(port, { address: '10.77.0.1' }));
const persistence: DesiredPersistence = {
  type: 'SOURCE_IP',
  cookieName: null,
  timeoutSeconds: null,
  granularity: null,
};

/** Port 80 without and port 81 with session persistence, and UDP. */
function balancerAt(n: number): DesiredLoadBalancer {
  const plain = balancer(
    { members: members() },
    {},
    { address: `10.77.1.${n}`, additionalAddresses: [`fd00:77:0:1::${n}`] },
  );
  const [sticky, udp] = [
    balancer({ members: members(), persistence }, { port: 81 }),
    balancer({ members: members(), persistence, protocol: 'UDP' }, { port: 53, protocol: 'UDP' }),
  ];
  return {
    ...plain,
    listeners: [plain, sticky, udp].flatMap(({ listeners }) => listeners),
    pools: [plain, sticky, udp].flatMap(({ pools }) => pools),
  };
}

const states = [1, 2, 3].map(balancerAt);
