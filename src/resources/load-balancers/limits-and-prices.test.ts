import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { balancers, builders, unknownId } from './test-balancers.ts';

const own = [
  { name: 'tiny', vcpus: 1, ram: 512 },
  { name: 'lb1-4-8', vcpus: 8, ram: 16_384 },
];

const cloud = useCloudyard({
  loadBalancerDriver: createTestLoadBalancerHost(),
  configuration: (shipped) => ({
    ...shipped,
    // Region 3 has the prices of the shipped region.
    bookOfRegion: (id) => shipped.bookOfRegion(id === 3 ? 1 : id),
    regions: [
      ...shipped.regions,
      { id: 2, display_name: 'small', country: 'LU', vip_range: '10.99.0.0/30' },
      { ...shipped.regions[0]!, id: 3, display_name: 'own', vip_range: '10.98.0.0/24', load_balancer_flavors: own },
    ],
  }),
});
const { aBalancer, created } = builders(cloud);

describe('limits and prices of load balancers', () => {
  const path = `${balancers}/check_limits`;

  it('check_limits returns only exceeded quotas', async () => {
    expect((await cloud.post(path, {})).body).toEqual({});
    expect((await cloud.post(path)).body).toEqual({});
    expect((await cloud.post(path, { floating_ip: { source: 'new' } })).body).toEqual({
      floating_count_limit: 0,
      floating_count_requested: 1,
      floating_count_usage: 0,
    });
    expect(
      (await cloud.post(path, { floating_ip: { source: 'existing', existing_floating_id: unknownId } })).body,
    ).toEqual({});
    expect((await cloud.post(`${balancers}/${unknownId}/check_limits`, {})).status).toBe(404);
    expect((await cloud.post(`${balancers}/${await aBalancer()}/check_limits`, {})).body).toEqual({});
    const { clientId, projectId, token } = await cloud.newClient();
    await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { region_id: 1, loadbalancer_count_limit: 0 });
    const limited = await cloud.post(`/cloud/v1/loadbalancers/${projectId}/1/check_limits`, {}, { token });
    expect(limited.body).toEqual({
      loadbalancer_count_limit: 0,
      loadbalancer_count_requested: 1,
      loadbalancer_count_usage: 0,
    });
  });

  it('takes flavors from the configuration of the region, the first one by default', async () => {
    const [tiny, large] = own.map(({ name, ...rest }) => ({ flavor_id: name, flavor_name: name, ...rest }));
    const path = '/cloud/v1/loadbalancers/1/3';
    expect((await cloud.get('/cloud/v1/lbflavors/1/3')).body).toEqual({ count: 2, results: [tiny, large] });
    const networks = '/cloud/v1/networks/1/3';
    const [vip_network_id] = (await cloud.ended(await cloud.post(networks, { name: 'a network' }))).body
      .created_resources.networks;
    const subnet = { name: 'a subnet', network_id: vip_network_id, cidr: '10.0.0.0/24' };
    await cloud.ended(await cloud.post('/cloud/v1/subnets/1/3', subnet));
    const body = { name: 'a balancer', vip_network_id };
    const refused = await cloud.post(path, { ...body, flavor: 'lb1-1-2' });
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'flavor' }] } });
    expect(refused.body.message).toContain('the region offers tiny, lb1-4-8');
    const flavorOf = async (id: string) => (await cloud.get(`${path}/${id}`)).body.flavor;
    const id = await created(await cloud.post(path, body), 'loadbalancers');
    expect(await flavorOf(id)).toEqual(tiny);
    await cloud.ended(await cloud.post(`${path}/${id}/resize`, { flavor: 'lb1-4-8' }));
    expect(await flavorOf(id)).toEqual(large);
    for (const flavor of ['lb1-2-4', '', 'x'.repeat(64), null]) {
      expect((await cloud.post(`${path}/${id}/resize`, { flavor })).status).toBe(400);
    }
    const price = (flavor: string) => cloud.post('/cloud/v1/pricing/1/3/loadbalancers', { flavor });
    expect((await price('lb1-4-8')).body).toMatchObject({ price_status: 'show', price_per_hour: 0.068328 });
    expect((await price('tiny')).body).toMatchObject({ price_status: 'hide', price_per_hour: null });
    expect((await price('lb1-1-2')).status).toBe(400);
    await cloud.db.$client.query(`update load_balancers set flavor = 'of old' where id = '${id}'`);
    expect(await flavorOf(id)).toBeNull();
  });

  it('lists flavors, with prices on request', async () => {
    const flavors = '/cloud/v1/lbflavors/1/1';
    const small = { flavor_id: 'lb1-1-2', flavor_name: 'lb1-1-2', ram: 2048, vcpus: 1 };
    expect((await cloud.get(`${flavors}?limit=1`)).body).toEqual({ count: 3, results: [small] });
    expect((await cloud.get(`${flavors}?include_prices=true`)).body.results[0]).toEqual({
      ...small,
      currency_code: 'EUR',
      price_per_hour: 0.017082,
      price_per_month: 12.47,
      price_status: 'show',
    });
    expect((await cloud.get(`${flavors}?offset=9`)).body).toEqual({ count: 3, results: [] });
  });

  it('returns prices including tax', async () => {
    const v1 = await cloud.post('/cloud/v1/pricing/1/1/loadbalancers', { flavor: 'lb1-1-2' });
    expect(v1.body).toEqual({
      currency_code: 'EUR',
      discount_percent: 0,
      price_per_hour: 0.017082,
      price_per_month: 12.47,
      price_status: 'show',
      price_without_discount_per_month: 12.47,
      tax_percent: 17,
    });
    const priced = await cloud.post('/cloud/v2/pricing/1/1/loadbalancers', { flavor: 'lb1-1-2', vip_ip_family: null });
    expect(priced.body).toEqual({
      currency_code: 'EUR',
      discount_percent: 0,
      per_hour: { external_ip: null, flavor: 0.017082, floating_ip: null },
      per_month: { external_ip: null, flavor: 12.47, floating_ip: null },
      price_status: 'show',
      price_without_discount_per_month: 12.47,
      tax_percent: 17,
      total_price_per_hour: 0.017082,
      total_price_per_month: 12.47,
    });
    const body = { flavor: 'lb1-1-2', floating_ip: { source: 'new' } };
    const hidden = await cloud.post('/cloud/v2/pricing/1/1/loadbalancers', body);
    expect(hidden.body).toMatchObject({
      price_status: 'hide',
      total_price_per_month: null,
      per_hour: { flavor: null },
    });
    const elsewhere = await cloud.post('/cloud/v2/pricing/1/2/loadbalancers', { flavor: 'lb1-1-2' });
    expect(elsewhere.body.price_status).toBe('hide');
    expect((await cloud.post('/cloud/v1/pricing/1/1/loadbalancers', { flavor: 'huge' })).status).toBe(400);
  });
});
