import { describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';

const host = createTestLoadBalancerHost();
const v6 = 'fd00:77::/124';
const cloud = useCloudyard({
  loadBalancerDriver: host,
  configuration: (shipped) => ({
    ...shipped,
    regions: [
      { ...shipped.regions[0]!, vip_range_v6: v6 },
      { id: 2, display_name: 'hosts', country: 'LU', vip_range: '10.99.0.0/24', hosts: { address_groups: 3 } },
    ],
  }),
});
const balancers = '/cloud/v1/loadbalancers/1/1';

async function created(family?: string, path = balancers): Promise<Record<string, any>> {
  const body = { name: 'a balancer', ...(family && { vip_ip_family: family }) };
  const task = await cloud.ended(await cloud.post(path, body));
  return (await cloud.get(`${path}/${task.body.created_resources.loadbalancers[0]}`)).body;
}
const errors = ({ status, body }: Answer) => [status, body.errors?.map((each: any) => `${each.path} ${each.message}`)];

describe('load balancers of a region with an IPv6 range', () => {
  it('listen on IPv4, IPv6 or both', async () => {
    const [plain, ipv6, dual] = [await created(), await created('ipv6'), await created('dual')];
    expect(plain).toMatchObject({ vip_ip_family: 'ipv4', additional_vips: [] });
    expect(ipv6).toMatchObject({ vip_ip_family: 'ipv6', vip_address: 'fd00:77::1', additional_vips: [] });
    expect(dual).toMatchObject({ vip_ip_family: 'dual', vip_address: expect.stringMatching(/^127\.64\./) });
    expect(dual['additional_vips']).toEqual([
      { ip_address: 'fd00:77::2', subnet_id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    ]);
    const { address, additionalAddresses } = host.balancers.get(dual['id'])!;
    expect([address, additionalAddresses]).toEqual([dual['vip_address'], ['fd00:77::2']]);
    expect(host.balancers.get(ipv6['id'])!.address).toBe('fd00:77::1');
    for (const { id } of [plain, ipv6, dual]) await cloud.ended(await cloud.delete(`${balancers}/${id}`));
  });

  it('get different addresses when they are created at once, until none is free', async () => {
    const families = ['ipv6', 'dual', 'ipv6', 'dual', 'ipv6', 'dual'];
    const made = await Promise.all(families.map((family) => created(family)));
    const found = made.map((each) => each['additional_vips'][0]?.ip_address ?? each['vip_address']).sort();
    expect(found).toEqual([1, 2, 3, 4, 5, 6].map((n) => `fd00:77::${n}`));
    for (let n = 7; n <= 14; n += 1) made.push(await created('ipv6'));
    const refused = await cloud.post(balancers, { name: 'a balancer', vip_ip_family: 'dual' });
    expect(refused.status).toBe(409);
    expect(refused.body.message).toContain(`all addresses of ${v6} are in use`);
    for (const { id } of made) await cloud.ended(await cloud.delete(`${balancers}/${id}`));
  });

  it('accept the granularity of their protocol', async () => {
    const nested = (granularity: string) => ({
      name: 'a listener',
      protocol: 'UDP',
      protocol_port: 53,
      pools: [
        {
          ...{ name: 'a pool', protocol: 'UDP', lb_algorithm: 'ROUND_ROBIN' },
          session_persistence: { type: 'SOURCE_IP', persistence_granularity: granularity },
        },
      ],
    });
    const post = (family: string, granularity: string) =>
      cloud.post(balancers, { name: 'a balancer', vip_ip_family: family, listeners: [nested(granularity)] });
    const path = 'listeners.0.pools.0.session_persistence.persistence_granularity';
    expect((await cloud.ended(await post('ipv6', '64'))).body.state).toBe('FINISHED');
    expect(errors(await post('ipv6', '255.255.255.0'))).toEqual([
      400,
      [`${path} must be a prefix length from 1 to 128`],
    ]);
    expect((await cloud.ended(await post('dual', '255.255.255.0'))).body.state).toBe('FINISHED');
    expect(errors(await post('ipv4', '64'))).toEqual([400, [`${path} must be a netmask such as 255.255.255.0`]]);
  });
});

describe('load balancers of a region of several hosts', () => {
  it('name the host that has the address, and those that can take it', async () => {
    const report = (heldGroups: string[]) => JSON.stringify({ drivers: [], heldGroups, version: '0' });
    const insert = (name: string, n: number, heldGroups: string[], seconds: number) =>
      cloud.db.$client.query(
        `insert into hosts (region_id, name, address, lease_until, converged, report, joined_at, started_at)
         values (2, $1, $2, clock_timestamp() + $4 * interval '1 second', true, $3, now(), now())`,
        [name, `10.0.0.${n}`, report(heldGroups), seconds],
      );
    await insert('h1', 1, ['addresses-0'], 600);
    await insert('h2', 2, ['addresses-1', 'addresses-2'], 600);
    await insert('h3', 3, ['addresses-1'], -600);
    const balancer = await created(undefined, '/cloud/v1/loadbalancers/1/2');
    const subnet_id = expect.any(String);
    expect(balancer['vip_address']).toBe('10.99.0.1');
    expect(balancer['vrrp_ips']).toEqual([
      { ip_address: '10.0.0.1', role: 'BACKUP', subnet_id },
      { ip_address: '10.0.0.2', role: 'MASTER', subnet_id },
    ]);
  });

  it('have no IPv6 address without a range', async () => {
    const refused = await cloud.post('/cloud/v1/loadbalancers/1/2', { name: 'a balancer', vip_ip_family: 'dual' });
    expect(errors(refused)).toEqual([400, ['vip_ip_family must be ipv4, because the region has no IPv6 range']]);
  });
});
