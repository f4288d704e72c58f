import { describe, expect, it } from 'vitest';
import { memberNetworksOf } from '../resources/regions/service.ts';
import { createMemberRules, type MemberNetworks, opensLoopback } from './member-networks.ts';

const laptop = ['0.0.0.0/0', '::/0', '127.0.0.0/8', '::1/128'];

function ruleOf(networks: MemberNetworks = {}, host: { local?: string[]; controlPlane?: string[] } = {}) {
  const rules = createMemberRules({
    regions: new Map([[1, networks]]),
    vipRanges: ['127.64.0.0/16', '203.0.113.0/24'],
    controlPlane: () => host.controlPlane ?? [],
    ownPorts: () => [
      { daemon: 'API', port: 8080 },
      { daemon: 'NFS', port: 2049 },
    ],
    localNetworks: () => host.local ?? ['127.0.0.0/8', '::1'],
  });
  return (address: string, port = 80) => rules(1)(address, port);
}

describe('a region without member_networks', () => {
  const rule = ruleOf({}, { local: ['10.0.0.7', 'fd00::7', '10.9.0.0/24'], controlPlane: ['10.0.0.8', 'fd00::8'] });

  it.each(['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', '8.8.8.8', 'fd00::1', '2606:4700::1'])(
    'allows %s',
    (address) => expect(rule(address)).toBeNull(),
  );

  it('allows the ports of Cloudyard on other hosts', () => {
    expect(rule('10.0.0.1', 8080)).toBeNull();
  });

  it.each([
    ['loopback', '127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
    ['loopback', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:127.0.0.1', '::127.0.0.1'],
    ['link-local', '169.254.169.254', '169.254.0.1', '::ffff:169.254.169.254', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
    ['a cloud metadata address', 'fd00:ec2::254', 'fd20:ce::254', '100.100.100.200', '168.63.129.16'],
    ['an unspecified address', '0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0'],
    ['a broadcast address', '255.255.255.255', '::ffff:255.255.255.255'],
    ['a multicast address', '224.0.0.1', '239.255.255.255', 'ff02::1', '::ffff:224.0.0.1'],
    ['an IPv4 address inside IPv6', '64:ff9b::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1'],
    ['an IPv4 address inside IPv6', '2002:7f00:1::', '2001:0:7f00:1::'],
    ['an address of Cloudyard itself', '10.0.0.7', 'fd00::7', '10.9.0.200', '::ffff:10.0.0.7', '::10.0.0.7'],
    ['an address of Cloudyard itself', '10.0.0.8', 'fd00::8', 'fd00:0:0:0::8'],
    ['a load balancer cannot be a member', '127.64.0.1', '203.0.113.9', '::ffff:127.64.0.1'],
  ])('refuses %s', (what, ...addresses) => {
    for (const address of addresses) {
      expect([address, rule(address)]).toEqual([address, { field: 'address', message: expect.stringContaining(what) }]);
      expect(rule(address)!.message).toMatch(new RegExp(`^${address.replaceAll('.', '\\.')} `));
    }
  });
});

describe('a region with member_networks', () => {
  it('allows members in these networks only', () => {
    const rule = ruleOf({ allowed: ['10.1.0.0/16', 'fd01::/16', '192.0.2.5'] });
    for (const address of ['10.1.0.1', '10.1.255.255', 'fd01::1', '192.0.2.5']) expect(rule(address)).toBeNull();
    for (const address of ['10.2.0.1', 'fd02::1', '192.0.2.6', '::ffff:10.2.0.1']) {
      expect(rule(address)?.message).toBe(`${address} is not allowed; members must be in the region's member_networks`);
    }
  });

  it('allows no member in denied networks', () => {
    const rule = ruleOf({ allowed: laptop, denied: ['10.0.0.0/24', '127.0.0.2', 'fd00::/16', '::ffff:10.3.0.0/112'] });
    for (const address of ['10.0.0.9', '10.3.9.9', '127.0.0.2', 'fd00::1', '::ffff:10.0.0.9']) {
      expect(rule(address)?.message).toContain('is denied by the region');
    }
    expect(rule('10.0.1.9')).toBeNull();
    expect(rule('127.0.0.3')).toBeNull();
  });

  it('opens what is guarded only by a network that lies inside it', () => {
    const host = { local: ['10.0.0.7', '10.9.0.0/24'], controlPlane: ['10.0.0.8'] };
    const wide = ruleOf({ allowed: ['0.0.0.0/0', '::/0', '126.0.0.0/7', '10.0.0.0/8', '169.0.0.0/8'] }, host);
    for (const address of ['127.0.0.1', '::1', '10.0.0.7', '10.0.0.8', '10.9.0.1', '169.254.169.254']) {
      expect([address, wide(address)]).not.toEqual([address, null]);
    }
    const exact = ruleOf({ allowed: ['127.0.0.0/8', '10.0.0.7', '10.9.0.0/24', '169.254.7.0/24'] }, host);
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '10.0.0.7', '10.9.0.1', '169.254.7.1']) {
      expect([address, exact(address)]).toEqual([address, null]);
    }
    for (const address of ['::1', '10.0.0.8', '169.254.169.254']) {
      expect([address, exact(address)]).not.toEqual([address, null]);
    }
  });

  it('never allows addresses of load balancers, or addresses that no host can have', () => {
    const rule = ruleOf({ allowed: [...laptop, '127.64.0.0/16', '127.64.0.1', '0.0.0.0/8', '224.0.0.0/4', '::/128'] });
    for (const address of ['127.64.0.1', '127.64.255.254', '0.0.0.0', '224.0.0.1', '::']) {
      expect([address, rule(address)]).not.toEqual([address, null]);
    }
  });
});

describe("Cloudyard's own ports", () => {
  const rule = ruleOf({ allowed: [...laptop, '10.0.0.7'] }, { local: ['10.0.0.7'] });

  it.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '10.0.0.7'])('are refused on %s', (address) => {
    const own = (port: number, daemon: string) => ({
      field: 'port',
      message: `port ${port} of ${address} is Cloudyard's own (${daemon}); use another port`,
    });
    expect(rule(address, 8080)).toEqual(own(8080, 'API'));
    expect(rule(address, 2049)).toEqual(own(2049, 'NFS'));
    expect(rule(address, 9001)).toBeNull();
  });

  it('are allowed on other hosts', () => expect(rule('10.0.0.9', 8080)).toBeNull());

  it('are refused at every address if hosts trust each other there, as they exchange sessions', () => {
    const named = { display_name: 'a', country: 'LU' };
    const ports = [{ daemon: 'sessions of load balancers', port: 10_077 }];
    const regions = memberNetworksOf(
      [
        { ...named, id: 1, member_networks: ['10.77.0.12/32'], hosts: {} },
        { ...named, id: 2 },
      ],
      ports,
    );
    const host = { controlPlane: () => ['10.77.0.12'], ownPorts: () => [], localNetworks: () => [] };
    const rules = createMemberRules({ regions, vipRanges: [], ...host });
    expect(rules(1)('10.77.0.12', 10_077)).toEqual({
      field: 'port',
      message: "port 10077 of 10.77.0.12 is Cloudyard's own (sessions of load balancers); use another port",
    });
    expect(rules(1)('10.77.0.12', 80)).toBeNull();
    expect(rules(2)('10.0.0.1', 10_077)).toBeNull();
  });
});

describe('a region that was removed from the file', () => {
  it('has the default rule', () => {
    const rules = createMemberRules({
      ...{ regions: new Map([[1, { allowed: laptop }]]), vipRanges: [] },
      ...{ controlPlane: () => [], ownPorts: () => [], localNetworks: () => [] },
    });
    expect(rules(1)('127.0.0.1', 80)).toBeNull();
    expect(rules(2)('127.0.0.1', 80)).not.toBeNull();
    expect(rules(2)('10.0.0.1', 80)).toBeNull();
  });
});

describe('loopback', () => {
  it.each([
    [laptop, true],
    [['127.0.0.1'], true],
    [['::1/128'], true],
    [['0.0.0.0/0', '::/0'], false],
    [undefined, false],
  ])('is open with %j: %s', (allowed, open) => expect(opensLoopback({ allowed })).toBe(open));
});
