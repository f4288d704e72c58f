/**
 * The requests of the Terraform provider (0.x, on gcorelabscloud-go), and the response fields that it reads. Written from
 * its source. The provider plans a change at every run if it reads a value that differs from its configuration.
 */
import { describe, expect, it } from 'vitest';
import { createPatternCheck } from '../../src/drivers/haproxy/pattern-check.ts';
import { type Answer, useCloudyard } from '../harness.ts';

const cloud = useCloudyard({ checkPattern: createPatternCheck({ haproxy: null }) });
const networks = '/cloud/v1/networks/1/1';
const subnets = '/cloud/v1/subnets/1/1';
const shares = '/cloud/v1/file_shares/1/1';

/** Its date formats: with a zone for networks and subnets, without for file shares and tasks. */
const withZone = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d{4})$/;
const withoutZone = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?$/;

/** The provider reads only the first task. */
async function firstTask(answer: Answer): Promise<Record<string, any>> {
  expect(answer.status).toBe(200);
  const { body } = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}?wait=20`);
  expect(body).toMatchObject({ state: 'FINISHED', error: null });
  expect(body.created_on).toMatch(withoutZone);
  return body;
}

async function aNetwork(metadata: object = {}): Promise<string> {
  const made = await cloud.post(networks, { name: 'a network', create_router: true, type: 'vxlan', metadata });
  return (await firstTask(made))['created_resources'].networks[0];
}

async function aSubnet(network: string): Promise<string> {
  const body = { name: 'a subnet', cidr: '10.0.0.0/24', network_id: network, connect_to_network_router: true };
  const made = await cloud.post(subnets, { ...body, metadata: { env: 'test' } });
  return (await firstTask(made))['created_resources'].subnets[0];
}

const tag = (key: string, value: string) => ({ key, value, read_only: false });

describe('gcore_network', () => {
  it('reads back its configuration and replaces its metadata', async () => {
    const path = `${networks}/${await aNetwork({ env: 'test', a: 'b' })}`;
    const made = (await cloud.get(path)).body;
    expect(made).toMatchObject({ name: 'a network', type: 'vxlan', mtu: 1450, project_id: 1, region_id: 1 });
    expect(made.metadata).toEqual([tag('a', 'b'), tag('env', 'test')]);
    for (const date of [made.created_at, made.updated_at]) expect(date).toMatch(withZone);

    expect(await cloud.patch(path, { name: 'renamed' })).toMatchObject({ status: 200, body: { name: 'renamed' } });
    expect(await cloud.request('PUT', `${path}/metadata`, { env: 'live' })).toMatchObject({ status: 204 });
    expect((await cloud.get(path)).body).toMatchObject({ name: 'renamed', metadata: [tag('env', 'live')] });

    await firstTask(await cloud.delete(path));
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
  });

  it('is found by name and metadata', async () => {
    const id = await aNetwork({ key: 'value' });
    for (const query of ['metadata_k=key', `metadata_kv=${encodeURIComponent('{"key":"value"}')}`]) {
      expect((await cloud.get(`${networks}?${query}`)).body.results).toMatchObject([{ id, name: 'a network' }]);
    }
  });
});

describe('the data sources', () => {
  it('find a network among those with subnets, and a subnet by its network and name', async () => {
    const network = await aNetwork({ env: 'test' });
    const subnet = await aSubnet(network);
    // The provider asks for all available networks if the list of networks does not have the name.
    const { results } = (await cloud.get('/cloud/v1/availablenetworks/1/1')).body;
    const found = results.find(({ id }: { id: string }) => id === network);
    const place = { project_id: 1, region_id: 1, external: false, shared: false };
    expect(found).toMatchObject({ name: 'a network', type: 'vxlan', mtu: 1450, ...place });
    expect(found.metadata).toEqual([tag('env', 'test')]);
    expect(found.subnets).toMatchObject([{ id: subnet, name: 'a subnet', cidr: '10.0.0.0/24', network_id: network }]);
    for (const date of [found.created_at, found.subnets[0].created_at]) expect(date).toMatch(withZone);
    const listed = (await cloud.get(`${subnets}?network_id=${network}`)).body.results;
    expect(listed).toMatchObject([{ id: subnet, name: 'a subnet', metadata: [tag('env', 'test')] }]);
  });
});

describe('gcore_lblistener', () => {
  it('gets a task when a list is removed, for a first update without the list and for a second one', async () => {
    const listener = { name: 'a listener', protocol: 'TCP', protocol_port: 80, allowed_cidrs: ['10.0.0.0/8'] };
    const made = await cloud.post('/cloud/v1/loadbalancers/1/1', { name: 'a balancer', listeners: [listener] });
    const { listeners, loadbalancers } = (await firstTask(made))['created_resources'];
    const path = `/cloud/v2/lblisteners/1/1/${listeners[0]}`;
    for (const body of [{}, { allowed_cidrs: null }]) await firstTask(await cloud.patch(path, body));
    expect((await cloud.get(path.replace('v2', 'v1'))).body.allowed_cidrs).toBeNull();
    await firstTask(await cloud.delete(`/cloud/v1/loadbalancers/1/1/${loadbalancers[0]}`));
  });
});

describe('the data source gcore_lbpool', () => {
  it('finds a pool by its load balancer and name', async () => {
    const pools = [{ name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN' }];
    const listeners = [{ name: 'a listener', protocol: 'TCP', protocol_port: 80, pools }];
    const task = await firstTask(await cloud.post('/cloud/v1/loadbalancers/1/1', { name: 'a balancer', listeners }));
    const { loadbalancers, pools: ids } = task['created_resources'];
    // The provider sends an empty listener_id if its configuration names a load balancer only.
    const query = `listener_id=&loadbalancer_id=${loadbalancers[0]}`;
    const found = await cloud.get(`/cloud/v1/lbpools/1/1?${query}`);
    expect(found).toMatchObject({ status: 200, body: { results: [{ id: ids[0], name: 'a pool' }] } });
    await firstTask(await cloud.delete(`/cloud/v1/loadbalancers/1/1/${loadbalancers[0]}`));
  });
});

describe('gcore_subnet', () => {
  it('reads back its configuration and sends every field in an update', async () => {
    const path = `${subnets}/${await aSubnet(await aNetwork())}`;
    const made = (await cloud.get(path)).body;
    expect(made).toMatchObject({ enable_dhcp: true, cidr: '10.0.0.0/24', dns_nameservers: [], host_routes: [] });
    expect(made).toMatchObject({ gateway_ip: '10.0.0.1', metadata: [tag('env', 'test')] });
    for (const date of [made.created_at, made.updated_at]) expect(date).toMatch(withZone);

    const everything = { name: 'renamed', dns_nameservers: [], host_routes: [], enable_dhcp: true, gateway_ip: null };
    expect(await cloud.patch(path, everything)).toMatchObject({ status: 200, body: everything });
    expect(await cloud.request('PUT', `${path}/metadata`, {})).toMatchObject({ status: 204 });
    expect((await cloud.get(path)).body).toMatchObject({ gateway_ip: null, metadata: [] });
    await firstTask(await cloud.delete(path));
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
  });
});

describe('gcore_file_share', () => {
  async function aShare(): Promise<string> {
    const network = await aNetwork();
    await aSubnet(network);
    const access = ['10.0.0.0/24', '10.0.1.1'].map((ip_address) => ({ ip_address, access_mode: 'rw' }));
    const body = { name: 'a share', protocol: 'NFS', size: 2, volume_type: 'default_share_type', tags: { a: '1' } };
    const task = await firstTask(await cloud.post(shares, { ...body, network: { network_id: network }, access }));
    return `${shares}/${task['created_resources'].file_shares[0]}`;
  }

  it('reads back no setting outside its configuration', async () => {
    const { body } = await cloud.get(await aShare());
    expect(body).toMatchObject({ name: 'a share', protocol: 'NFS', size: 2, type_name: 'standard' });
    expect(body.share_settings).toEqual({ type_name: 'standard' });
    expect(body.tags).toEqual([tag('a', '1')]);
    expect(body.created_at).toMatch(withoutZone);
  });

  it('gets a task for each change and keeps tags that it does not name', async () => {
    const path = await aShare();
    await firstTask(await cloud.post(`${path}/extend`, { size: 3 }));
    const changes = { name: 'renamed', tags: { a: null, b: '2' } };
    await firstTask(await cloud.patch(path.replace('/v1/', '/v3/'), changes));
    await firstTask(await cloud.patch(path.replace('/v1/', '/v3/'), { name: 'again', tags: {} }));
    expect((await cloud.get(path)).body).toMatchObject({ name: 'again', size: 3, tags: [tag('b', '2')] });
    await firstTask(await cloud.delete(path));
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
  });

  it('gets a task for the name and for the size when version 2 of the provider changes both', async () => {
    const path = await aShare();
    await firstTask(await cloud.patch(path.replace('/v1/', '/v3/'), { name: 'renamed', size: 3 }));
    await firstTask(await cloud.post(`${path}/extend`, { size: 3 }));
    expect((await cloud.get(path)).body).toMatchObject({ name: 'renamed', size: 3 });
  });

  it('updates access rules by deleting and recreating all of them, without a pause', async () => {
    const path = await aShare();
    const { results } = (await cloud.get(`${path}/access_rule`)).body;
    for (const { id } of results) {
      expect(await cloud.delete(`${path}/access_rule/${id}`)).toMatchObject({ status: 204 });
    }
    const given = [
      { ip_address: '10.0.0.0/24', access_mode: 'ro' },
      { ip_address: '10.0.1.1', access_mode: 'rw' },
      { ip_address: '10.0.2.0/24', access_mode: 'rw' },
    ];
    for (const rule of given) {
      expect(await cloud.post(`${path}/access_rule`, rule)).toMatchObject({ status: 200 });
    }
    const rules = (await cloud.get(`${path}/access_rule`)).body.results;
    expect(rules.map((rule: Record<string, string>) => [rule['access_to'], rule['access_level']])).toEqual(
      given.map(({ ip_address, access_mode }) => [ip_address, access_mode]),
    );
  });
});

describe('gcore_lifecyclepolicy', () => {
  /** The provider sends every cron field and every part of a duration, and reads no task. */
  const cron = { timezone: 'UTC', week: '*', day_of_week: '*', month: '*', day: '*', hour: '1,13', minute: '0' };
  const common = { resource_name_template: 'reserve snap of the volume {volume_id}', max_quantity: 4 };
  const retention_time = { weeks: 4, days: 3, hours: 2, minutes: 1 };

  it('reads back its configuration in the same order', async () => {
    const volume = await firstTask(
      await cloud.post('/cloud/v1/volumes/1/1', { name: 'a volume', size: 1, source: 'new-volume' }),
    );
    const [id] = volume['created_resources'].volumes;
    const schedules = [
      { type: 'cron', ...common, ...cron },
      { type: 'interval', ...common, retention_time, weeks: 1, days: 2, hours: 3, minutes: 4 },
    ];
    const body = { name: 'a policy', status: 'active', action: 'volume_snapshot', schedules, volume_ids: [id] };
    const made = await cloud.post('/cloud/v1/lifecycle_policy/1/1', body);
    const path = `/cloud/v1/lifecycle_policy/1/1/${made.body.id}`;
    const read = async () => (await cloud.get(`${path}?need_volumes=true`)).body;
    expect(await read()).toMatchObject({
      name: 'a policy',
      status: 'active',
      action: 'volume_snapshot',
      volumes: [{ volume_id: id, volume_name: 'a volume' }],
      schedules: [
        { ...common, ...cron, retention_time: null },
        { ...common, retention_time, weeks: 1, days: 2, hours: 3, minutes: 4 },
      ],
    });

    expect(await cloud.patch(path, { name: 'renamed', status: 'paused' })).toMatchObject({ status: 200 });
    const change = (what: string, volume_ids: string[]) => cloud.request('PUT', `${path}/${what}`, { volume_ids });
    expect(await change('remove_volumes_from_policy', [id])).toMatchObject({ status: 200 });
    expect(await change('add_volumes_to_policy', [])).toMatchObject({ status: 200 });
    expect(await read()).toMatchObject({ name: 'renamed', status: 'paused', volumes: [] });
    expect(await cloud.delete(path)).toMatchObject({ status: 204 });
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
  });
});

describe('the names of a project and of a region', () => {
  it('are found in the complete lists', async () => {
    expect((await cloud.get('/cloud/v1/projects')).body.results).toMatchObject([{ id: 1, name: 'Default' }]);
    const regions = (await cloud.get('/cloud/v1/regions')).body.results;
    expect(regions).toMatchObject([{ id: 1, display_name: 'local', state: 'ACTIVE', endpoint_type: 'public' }]);
  });
});

describe('gcore_volume and gcore_snapshot', () => {
  const volumes = '/cloud/v1/volumes/1/1';
  const snapshots = '/cloud/v1/snapshots/1/1';

  it('read back their configuration and are deleted with an empty list of snapshots', async () => {
    const given = {
      name: 'a volume',
      size: 2,
      type_name: 'standard',
      source: 'new-volume',
      metadata: { env: 'test' },
    };
    const id = (await firstTask(await cloud.post(volumes, given)))['created_resources'].volumes[0];
    const made = (await cloud.get(`${volumes}/${id}`)).body;
    expect(made).toMatchObject({ name: 'a volume', size: 2, volume_type: 'standard', status: 'available' });
    expect(made.tags).toEqual([tag('env', 'test')]);
    for (const date of [made.created_at, made.updated_at]) expect(date).toMatch(withZone);
    expect(await cloud.patch(`${volumes}/${id}`, { name: 'renamed' })).toMatchObject({ status: 200 });
    await firstTask(await cloud.post(`${volumes}/${id}/extend`, { size: 3 }));
    // A changed type_name, without a task.
    const retyped = await cloud.post(`${volumes}/${id}/retype`, { volume_type: 'ssd_hiiops' });
    expect(retyped).toMatchObject({ status: 200, body: { id, volume_type: 'ssd_hiiops', size: 3 } });
    expect((await cloud.get(`${volumes}/${id}`)).body.volume_type).toBe('ssd_hiiops');

    const request = { name: 'a snapshot', volume_id: id, description: 'text', metadata: { env: 'test' } };
    const snapshot = (await firstTask(await cloud.post(snapshots, request)))['created_resources'].snapshots[0];
    const taken = (await cloud.get(`${snapshots}/${snapshot}`)).body;
    expect(taken).toMatchObject({ name: 'a snapshot', volume_id: id, description: 'text', size: 3 });
    expect(taken.metadata).toEqual({ env: 'test' });
    const replaced = await cloud.request('PUT', `${snapshots}/${snapshot}/metadata`, { env: 'live' });
    expect(replaced).toMatchObject({ status: 200, body: { metadata: { env: 'live' }, tags: [tag('env', 'live')] } });
    await firstTask(await cloud.delete(`${snapshots}/${snapshot}`));
    await firstTask(await cloud.delete(`${volumes}/${id}?snapshots=`));
    expect(await cloud.get(`${volumes}/${id}`)).toMatchObject({ status: 404 });
  });
});

describe('gcore_loadbalancerv2', () => {
  it('reads back its metadata, and keeps its flavor when the configuration no longer names one', async () => {
    const balancers = '/cloud/v1/loadbalancers/1/1';
    const given = { name: 'a balancer', flavor: 'lb1-2-4', metadata: { env: 'test', a: 'b' } };
    const made = await firstTask(await cloud.post(balancers, given));
    const path = `${balancers}/${made['created_resources'].loadbalancers[0]}`;
    expect((await cloud.get(path)).body.metadata).toEqual([tag('a', 'b'), tag('env', 'test')]);
    expect(await cloud.request('PUT', `${path}/metadata`, { env: 'live' })).toMatchObject({ status: 204 });
    // Version 2 of the provider.
    const renamed = await cloud.patch(path, { name: 'renamed', flavor: null });
    expect(renamed).toMatchObject({ status: 200, body: { name: 'renamed', flavor: { flavor_name: 'lb1-2-4' } } });
    expect((await cloud.get(path)).body.metadata).toEqual([tag('env', 'live')]);
    await firstTask(await cloud.delete(path));
  });
});

/**
 * The provider had L7 policies and rules for a short time, generated from the official OpenAPI document: it sends the
 * configured fields, and reads every field of its model. A null list or a changed order would be a difference.
 */
describe('gcore_cloud_load_balancer_l7_policy', () => {
  it('reads back its configuration and that of its rules', async () => {
    const balancer = { name: 'a balancer', listeners: [{ name: 'web', protocol: 'HTTP', protocol_port: 80 }] };
    const task = await firstTask(await cloud.post('/cloud/v1/loadbalancers/1/1', balancer));
    const { listeners, loadbalancers } = task['created_resources'];
    const given = {
      action: 'REDIRECT_PREFIX',
      listener_id: listeners[0],
      name: 'redirect_policy',
      position: 1,
      redirect_http_code: 301,
      redirect_prefix: 'https://www.example.com/',
      tags: ['test_tag', 'a tag'],
    };
    const policies = '/cloud/v1/l7policies/1/1';
    const made = await firstTask(await cloud.post(policies, given));
    const path = `${policies}/${made['created_resources'].l7polices[0]}`;
    expect((await cloud.get(path)).body).toMatchObject({ ...given, rules: [], redirect_url: null, task_id: null });

    const rule = { compare_type: 'REGEX', type: 'PATH', value: '/images*', invert: true, tags: ['b', 'a'] };
    const madeRule = await firstTask(await cloud.post(`${path}/rules`, rule));
    const rulePath = `${path}/rules/${madeRule['created_resources'].l7rules[0]}`;
    expect((await cloud.get(rulePath)).body).toMatchObject({ ...rule, key: null });
    await firstTask(await cloud.request('PUT', rulePath, { ...rule, invert: false }));
    expect((await cloud.get(rulePath)).body).toMatchObject({ ...rule, invert: false });

    await firstTask(await cloud.delete(rulePath));
    await firstTask(await cloud.delete(path));
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
    await firstTask(await cloud.delete(`/cloud/v1/loadbalancers/1/1/${loadbalancers[0]}`));
  });
});
