import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { balancers, builders, unknownId } from './test-balancers.ts';

const cloud = useCloudyard({
  loadBalancerDriver: createTestLoadBalancerHost(),
  configuration: (shipped) => ({
    ...shipped,
    regions: [...shipped.regions, { id: 2, display_name: 'small', country: 'LU', vip_range: '10.99.0.0/30' }],
  }),
});
const { aBalancer } = builders(cloud);

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
