import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { requires } from '../../../test/requires.ts';
import { createLab, labWorks } from '../../../test/several-hosts/lab.ts';
import { confined } from '../confined.ts';
import { renderKeepalived, renderLeaseCheck } from './configuration.ts';
import { renderHold } from './connection-hold.ts';
import { createHandOver } from './hand-over.ts';
import { createHostRouters } from './host-routers.ts';
import { KEEPALIVED_CAPABILITIES } from './process.ts';
import { preferenceOrder, priorityOf, routersOf } from './routers.ts';
import { viewOf } from './test-view.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-keepalived-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('virtual routers', () => {
  const three = viewOf(['a', 'b', 'c']);
  const routers = routersOf(three, ['10.77.1.1', '10.77.1.7', 'fd00:77:0:1::1', '10.77.1.2']);

  it('are the address groups of load balancers, of the API and of registries', () => {
    expect(routers.map(({ name, id }) => `${name} ${id}`)).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((n) => `addresses-${n} ${100 + n}`),
      ...['api 106', 'registry 107'],
    ]);
    expect(routers[1]!.addresses).toEqual(['10.77.1.1', '10.77.1.7', 'fd00:77:0:1::1']);
    expect(routers[6]!.addresses).toEqual(['10.77.3.1']);
  });

  it('are spread over the hosts, and those of a dead host over the others', () => {
    const orders = routers.slice(0, 6).map((router) => preferenceOrder(router, three).join(''));
    expect(orders).toEqual(['abc', 'bac', 'cab', 'acb', 'bca', 'cba']);
  });

  it('prefer hosts that do not drain', () => {
    const draining = viewOf(['a', 'b', 'c'], { a: { state: 'draining' } });
    expect(routers.map((router) => preferenceOrder(router, draining).at(-1))).toEqual(routers.map(() => 'a'));
    expect(preferenceOrder(routers[0]!, viewOf(['a']))).toEqual(['a']);
  });

  it('have another priority on each host', () => {
    const priorities = ['a', 'b', 'c'].map((self) => priorityOf(routers[0]!, { ...three, self }));
    expect(priorities).toEqual([250, 130, 10]);
    expect(priorityOf(routers[0]!, viewOf(['a']))).toBe(250);
  });

  it.skipIf(!labWorks() || !requires('keepalived')).each([
    ['of several hosts', ['10.77.0.12', '10.77.0.13'], '10.77.0.11'],
    ['of the first host', [], '10.77.0.11'],
    ['of hosts with IPv6 addresses', ['fd00:77::12'], 'fd00:77::11'],
  ])('make a configuration that keepalived accepts: %s', async (_, peers, address) => {
    const lab = await createLab({ hosts: 1, clients: 0 });
    onTestFinished(() => lab.remove());
    const text = renderKeepalived({
      ...{ name: 'a', address, interface: 'eth0', peers, leaseCheck: '/bin/true' },
      routers: routers.map((router) => {
        const blockFile = join(folder, router.name);
        writeFileSync(blockFile, '1\n');
        return { ...router, priority: 250, blockFile };
      }),
    });
    const file = join(folder, 'keepalived.conf');
    writeFileSync(file, text);
    expect(await lab.hosts[0]!.run('keepalived', ['-t', '-f', file])).toEqual({ stdout: '', stderr: '' });
  });
});

/** What the kernel may kill: the process that holds the addresses. */
it.skipIf(!labWorks() || !requires('keepalived'))(
  'the addresses stay while new ones are loaded',
  async () => {
    const lab = await createLab({ hosts: 1, clients: 0 });
    onTestFinished(() => lab.remove());
    const [host] = lab.hosts;
    const file = join(folder, 'reloaded.conf');
    const blockFile = join(folder, 'unblocked');
    writeFileSync(blockFile, '0\n');
    const write = (count: number) => {
      const addresses = Array.from({ length: count }, (_, at) => `10.77.1.${at + 1}`);
      const routers = [{ name: 'r', id: 1, service: 'balancers' as const, addresses, priority: 250, blockFile }];
      const { address, interface: device } = host!;
      const settings = { name: 'a', address, interface: device, peers: [], leaseCheck: '/bin/true', routers };
      writeFileSync(file, renderKeepalived(settings));
      return addresses.at(-1);
    };
    const has = async (address: string | undefined) => {
      await expect.poll(() => host!.addresses(), { timeout: 20_000 }).toContain(address);
    };
    const first = write(1);
    const [parentPid, vrrpPid] = [join(folder, 'parent.pid'), join(folder, 'vrrp.pid')];
    const args = ['-n', '-l', '-P', '-f', file, '-p', parentPid, '-r', vrrpPid];
    const command = confined({ file: 'keepalived', args }, null, KEEPALIVED_CAPABILITIES);
    const keepalived = host!.spawn(command.file, command.args, { stdio: 'ignore' });
    await has(first);
    const child = readFileSync(vrrpPid, 'utf8');
    for (let count = 2; count <= 8; count++) {
      const added = write(count);
      process.kill(Number(readFileSync(parentPid, 'utf8')), 'SIGHUP');
      await has(added);
      await has(first);
    }
    expect(readFileSync(vrrpPid, 'utf8')).toBe(child);
    keepalived.kill();
  },
  120_000,
);

describe('the check of the lease', () => {
  const leaseFile = join(folder, 'lease');
  const check = () => {
    writeFileSync(join(folder, 'check'), renderLeaseCheck(leaseFile), { mode: 0o700 });
    try {
      execFileSync(join(folder, 'check'), { stdio: 'pipe' });
      return true;
    } catch {
      return false;
    }
  };

  it('passes until the end of the lease', () => {
    writeFileSync(leaseFile, `${uptime() + 60.5}\n`);
    expect(check()).toBe(true);
    writeFileSync(leaseFile, `${uptime() - 1}\n`);
    expect(check()).toBe(false);
    rmSync(leaseFile);
    expect(check()).toBe(false);
  });
});

it('delays new connections by IPv4 and IPv6', () => {
  const text = renderHold('t', ['10.77.1.1', 'fd00::1', '10.77.1.2']);
  expect(text).toContain('ip daddr { 10.77.1.1, 10.77.1.2 } tcp flags & (syn | ack) == syn drop');
  expect(text).toContain('ip6 daddr { fd00::1 } tcp flags & (syn | ack) == syn drop');
  expect(renderHold('t', ['10.77.1.1'])).not.toContain('ip6');
});

describe('the addresses of a host', () => {
  it('are not settled while it has one of a removed load balancer, also when asked again', async () => {
    const routers = createHostRouters({
      ...{ folder, leaseCheck: '/bin/true', health: { isUp: () => true }, log: silentLogger, settleMs: 1 },
    });
    routers.setRegion({ ...viewOf(['a']), vipRange: '127.0.0.0/24' });
    // keepalived would add it to this host.
    routers.setBalancerAddresses(['127.0.0.1', '127.0.0.2']);
    await routers.configure();
    await routers.settled();
    routers.setBalancerAddresses([]);
    for (let again = 0; again < 2; again++) {
      await routers.configure();
      await expect(routers.settled()).rejects.toThrow('did not load its configuration in time');
    }
    routers.setBalancerAddresses(['127.0.0.1']);
    await routers.configure();
    await routers.settled();
  });
});

it('a hand-over asks HAProxy for requests in progress ever less often', async () => {
  const ending = new Error('the test is over');
  let questions = 0;
  const handOver = createHandOver({
    connections: { close: async () => undefined, active: async () => (questions += 1) },
    hold: { hold: async () => undefined, release: async () => undefined },
    routers: {
      ...{ device: () => 'lo', isHeld: () => true },
      setHandedOver(_, value) {
        if (value) throw ending;
      },
    },
    log: silentLogger,
  });
  const router = { name: 'r', id: 1, service: 'balancers' as const, addresses: ['127.0.0.99'] };
  await expect(handOver(router, new AbortController().signal)).rejects.toBe(ending);
  expect(questions).toBeGreaterThan(3);
  // Every 10 ms there would be 250.
  expect(questions).toBeLessThan(30);
});
