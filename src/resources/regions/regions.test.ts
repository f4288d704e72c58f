import { describe, expect, it } from 'vitest';
import type { RegionConfiguration } from './schema.ts';
import { checkRegions } from './service.ts';

const region = (id: number, changes: Partial<RegionConfiguration> = {}): RegionConfiguration => ({
  id,
  display_name: `region ${id}`,
  country: 'LU',
  ...changes,
});
const errors = (...regions: RegionConfiguration[]) =>
  checkRegions(regions).map(({ path, message }) => `${path} ${message}`);

describe('the regions file', () => {
  it('reports duplicate ids and names', () => {
    expect(errors(region(1), region(1, { display_name: 'another' }))).toEqual(['regions.1.id is listed twice']);
    expect(errors(region(1), region(2, { display_name: 'region 1' }))).toEqual([
      'regions.1.display_name is listed twice',
    ]);
  });

  it('refuses a flavor that is listed twice', () => {
    const flavor = { name: 'small', vcpus: 1, ram: 512 };
    expect(errors(region(1, { load_balancer_flavors: [flavor, { ...flavor, vcpus: 2 }] }))).toEqual([
      'regions.0.load_balancer_flavors.1.name is listed twice',
    ]);
  });

  it.each(['127.64.0.0/16', '10.0.0.0/8', '203.0.113.7/32', '192.168.1.0/30'])('accepts the range %s', (vip_range) => {
    expect(errors(region(1, { vip_range }))).toEqual([]);
  });

  it.each([
    ['127.64.0.1/16', 'must be an IPv4 network'],
    ['127.64.0.1', 'must be an IPv4 network'],
    ['fd00::/64', 'must be an IPv4 network'],
    ['', 'must be an IPv4 network'],
    ['10.0.0.0/33', 'must be an IPv4 network'],
    ['0.0.0.0/0', 'must be a network of /8 or longer'],
    ['0.0.0.0/8', 'must not be a multicast, broadcast or unspecified network'],
    ['224.0.0.0/8', 'must not be a multicast, broadcast or unspecified network'],
  ])('refuses the range %j', (vip_range, why) => {
    expect(errors(region(1, { vip_range }))).toEqual([expect.stringContaining(`regions.0.vip_range ${why}`)]);
  });

  it('refuses overlapping ranges of two regions, which one process may serve', () => {
    const [wide, narrow] = [{ vip_range: '127.64.0.0/16' }, { vip_range: '127.64.9.0/24' }];
    const overlap = (other: string) => [`regions.1.vip_range overlaps ${other} of the region "region 1"`];
    expect(errors(region(1, wide), region(2, narrow))).toEqual(overlap('127.64.0.0/16'));
    expect(errors(region(1, narrow), region(2, wide))).toEqual(overlap('127.64.9.0/24'));
    expect(errors(region(1, wide), region(2, { vip_range: '127.65.0.0/16' }))).toEqual([]);
  });

  it('reports invalid member networks', () => {
    const given = { member_networks: ['10.0.0.0/8', '10.0.0.1/8', 'fd00::/8', '::1'], member_networks_denied: ['x'] };
    const why = 'must be an address or a network such as 10.0.0.0/8 or fd00::/8, without host bits';
    expect(errors(region(1, given))).toEqual([
      `regions.0.member_networks.1 ${why}`,
      `regions.0.member_networks_denied.0 ${why}`,
    ]);
  });

  it('accepts a region of several hosts', () => {
    const hosts = { nfs_addresses: ['10.77.2.1', 'fd00:78::1'], api_address: '10.77.0.10', lease_seconds: 5 };
    expect(errors(region(1, { vip_range: '10.77.1.0/24', vip_range_v6: 'fd00:77::/64', hosts }))).toEqual([]);
  });

  it.each([
    ['fd00:77::1/64', 'must be an IPv6 network'],
    ['10.0.0.0/8', 'must be an IPv6 network'],
    ['fd00::/16', 'must be a network of /32 or longer'],
    ['ff02::/32', 'must not be a multicast network'],
  ])('refuses the IPv6 range %j', (vip_range_v6, why) => {
    expect(errors(region(1, { vip_range_v6 }))).toEqual([expect.stringContaining(`regions.0.vip_range_v6 ${why}`)]);
  });

  it('refuses addresses of hosts that are invalid, listed twice or those of load balancers', () => {
    const hosts = {
      nfs_addresses: ['10.77.1.7', 'x', 'fd00:78:0::1', 'fe80::1%eth0'],
      api_address: '10.77.0.10',
      registry_address: '10.77.0.10',
      address_groups: 64,
      virtual_router_id: 193,
    };
    expect(errors(region(1, { vip_range: '10.77.1.0/24', hosts }))).toEqual([
      'regions.0.hosts.nfs_addresses.0 must be outside 10.77.1.0/24, which is for load balancers',
      'regions.0.hosts.nfs_addresses.1 must be an IP address',
      'regions.0.hosts.nfs_addresses.2 must be written as fd00:78::1',
      'regions.0.hosts.nfs_addresses.3 must not have a zone',
      'regions.0.hosts.registry_address equals api_address',
      'regions.0.hosts.virtual_router_id must be at most 190, because each of the 64 address groups, the API and the registry has an id',
    ]);
  });
});
