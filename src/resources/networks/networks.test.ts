import { describe, expect, it } from 'vitest';
import { type Answer, errorPaths, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const unknownId = '11111111-1111-4111-8111-111111111111';

const names = (answer: Answer) => answer.body.results.map((network: { name: string }) => network.name);

/** A client and the paths of its default project. */
async function newClient() {
  const client = await cloud.newClient();
  const at = (resource: string) => `/cloud/v1/${resource}/${client.projectId}/1`;
  const options = { token: client.token };
  const usage = async () => (await cloud.get(`/cloud/v2/regional_quotas/${client.clientId}/1`, options)).body;
  return { ...client, options, usage, networks: at('networks'), subnets: at('subnets'), shares: at('file_shares') };
}
type Client = Awaited<ReturnType<typeof newClient>>;

async function createNetwork(client: Client, changes: object = {}): Promise<Record<string, any>> {
  const created = await cloud.post(client.networks, { name: 'a network', ...changes }, client.options);
  const task = await cloud.ended(created, client.options);
  return (await cloud.get(`${client.networks}/${task.body.created_resources.networks[0]}`, client.options)).body;
}

async function createSubnet(client: Client, network: string, cidr = '10.0.0.0/24'): Promise<string> {
  const created = await cloud.post(client.subnets, { name: 'a subnet', network_id: network, cidr }, client.options);
  return (await cloud.ended(created, client.options)).body.created_resources.subnets[0];
}

const share = (network?: object) => ({ name: 'a share', protocol: 'NFS', size: 1, ...(network && { network }) });

describe('creating a network', () => {
  it('returns a finished task, and the network exists', async () => {
    const client = await newClient();
    const created = await cloud.post(client.networks, { name: 'backend' }, client.options);
    const task = await cloud.ended(created, client.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_network', region_id: 1 });
    const [id] = task.body.created_resources.networks;
    const network = await cloud.get(`${client.networks}/${id}`, client.options);
    expect(network.body).toMatchObject({
      id,
      name: 'backend',
      type: 'vxlan',
      mtu: 1450,
      default: false,
      external: false,
      shared: false,
      port_security_enabled: true,
      subnets: [],
      tags: [],
      project_id: client.projectId,
      region: 'local',
      region_id: 1,
      creator_task_id: created.body.tasks[0],
      task_id: null,
    });
    expect(network.body.segmentation_id).toBeGreaterThan(0);
    expect(network.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(network.body.updated_at).toBe(network.body.created_at);
    expect(await client.usage()).toMatchObject({ network_count_usage: 2 });
  });

  it('accepts type vlan, create_router, and tags as `tags` or `metadata`', async () => {
    const client = await newClient();
    const vlan = await createNetwork(client, { type: 'vlan', create_router: true, tags: { b: '2', a: '1' } });
    expect(vlan).toMatchObject({ type: 'vlan', mtu: 1500 });
    expect(vlan['segmentation_id']).toBeLessThan(4095);
    expect(vlan['tags'].map((tag: { key: string }) => tag.key)).toEqual(['a', 'b']);
    expect(await createNetwork(client, { metadata: { from: 'terraform' } })).toMatchObject({
      tags: [{ key: 'from', value: 'terraform', read_only: false }],
    });
  });

  it('reports all invalid fields at once', async () => {
    const client = await newClient();
    const body = { name: 'x', type: 'gre', mtu: 9000, create_router: 'yes', tags: { '': 'v', long: 'v'.repeat(256) } };
    const refused = await cloud.post(client.networks, body, client.options);
    expect(refused.status).toBe(400);
    expect(errorPaths(refused)).toEqual(expect.arrayContaining(['name', 'type', 'mtu', 'create_router', 'tags.long']));
    const wrong = { 'a b': 'x', 'a=b': 'x', '': 'x', empty: '', padded: ' x', tab: 'a\tb', lines: 'a\nb', kept: 'a b' };
    const answer = await cloud.post(client.networks, { name: 'a network', tags: wrong }, client.options);
    expect(new Set(errorPaths(answer))).toEqual(
      new Set(['tags.a b', 'tags.a=b', 'tags.', 'tags.empty', 'tags.padded', 'tags.tab', 'tags.lines']),
    );
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`key-${i}`, 'v']));
    expect(errorPaths(await cloud.post(client.networks, { name: 'tagged', tags: many }, client.options))).toEqual([
      'tags',
    ]);
  });

  it('is refused above the quota and runs once per Idempotency-Key', async () => {
    const client = await newClient();
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, network_count_limit: 2 });
    const once = { ...client.options, headers: { 'idempotency-key': 'once' } };
    const first = await cloud.post(client.networks, { name: 'once' }, once);
    expect(await cloud.post(client.networks, { name: 'once' }, once)).toMatchObject({ status: 200, body: first.body });
    const refused = await cloud.post(client.networks, { name: 'another' }, client.options);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
    expect((await cloud.get(client.networks, client.options)).body.count).toBe(2);
  });
});

describe('listing networks', () => {
  it('filters by name, type, owner and external, sorts and pages', async () => {
    const client = await newClient();
    for (const name of ['front one', 'Back', 'front two']) await createNetwork(client, { name });
    await createNetwork(client, { name: 'a vlan', type: 'vlan' });
    const list = (query: string) => cloud.get(`${client.networks}?${query}`, client.options);
    const newestFirst = ['a vlan', 'front two', 'Back', 'front one', 'default'];
    expect(names(await list(''))).toEqual(newestFirst);
    expect(names(await list('order_by=created_at.desc&owned_by=any&external=false'))).toEqual(newestFirst);
    expect(names(await list('order_by=priority.desc&owned_by=project'))).toEqual(newestFirst);
    expect(names(await list('order_by=created_at.asc'))).toEqual([...newestFirst].reverse());
    expect(names(await list('order_by=name.asc'))).toEqual(['Back', 'a vlan', 'default', 'front one', 'front two']);
    expect(names(await list('order_by=name.desc'))).toEqual(['front two', 'front one', 'default', 'a vlan', 'Back']);
    expect(names(await list('name=front&order_by=name.asc'))).toEqual(['front one', 'front two']);
    expect(names(await list('network_type=vlan'))).toEqual(['a vlan']);
    expect((await list('external=true')).body).toEqual({ count: 0, results: [] });
    expect((await list('limit=2&offset=1')).body).toMatchObject({ count: 5, results: [{}, {}] });
    const refused = await list(`order_by=mtu.asc&network_type=gre&external=perhaps&name=${'n'.repeat(62)}`);
    expect(errorPaths(refused).sort()).toEqual(['external', 'name', 'network_type', 'order_by']);
  });

  it('filters by tags, with the parameters of the SDKs and of the Terraform provider', async () => {
    const client = await newClient();
    await createNetwork(client, { name: 'test web', tags: { env: 'test', web: 'yes' } });
    await createNetwork(client, { name: 'live web', tags: { env: 'live', web: 'yes' } });
    await createNetwork(client, { name: 'test db', tags: { env: 'test', ab: 'c=d' } });
    const found = async (query: Record<string, string> | [string, string][]) =>
      names(await cloud.get(`${client.networks}?order_by=name.asc&${new URLSearchParams(query)}`, client.options));
    expect(await found({ tag_key: 'env' })).toEqual(['live web', 'test db', 'test web']);
    expect(
      await found([
        ['tag_key', 'env'],
        ['tag_key', 'web'],
      ]),
    ).toEqual(['live web', 'test web']);
    expect(await found({ tag_key_value: '{"env": "test"}' })).toEqual(['test db', 'test web']);
    expect(await found({ tag_key_value: '{"env":"test","web":"yes"}' })).toEqual(['test web']);
    expect(await found({ tag_key_value: 'env=live' })).toEqual(['live web']);
    expect(await found({ tag_key_value: '{"ab":"c=d"}' })).toEqual(['test db']);
    expect(await found({ tag_key_value: '{}' })).toHaveLength(4);
    expect(await found({ metadata_k: 'web' })).toEqual(['live web', 'test web']);
    expect(await found({ metadata_kv: '{"env":"test"}', tag_key: 'web' })).toEqual(['test web']);
    for (const text of ['env', '=test', '{"env":1}', '["env"]', '{"env"', '']) {
      const refused = await cloud.get(
        `${client.networks}?${new URLSearchParams({ tag_key_value: text })}`,
        client.options,
      );
      expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'tag_key_value' }] } });
    }
    expect(errorPaths(await cloud.get(`${client.networks}?tag_key=a%20b`, client.options))).toEqual(['tag_key.0']);
    const both = `${client.networks}?tag_key_value=env&metadata_kv=${encodeURIComponent('{"a":"\\u0000"}')}`;
    expect(errorPaths(await cloud.get(both, client.options))).toEqual(['tag_key_value', 'metadata_kv']);
  });
});

describe('listing networks with their subnets', () => {
  const available = (client: Client, query = '') =>
    cloud.get(`${client.networks.replace('networks', 'availablenetworks')}?${query}`, client.options);

  it('returns what the lists of networks and of subnets return', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client, { tags: { env: 'test' } });
    await createNetwork(client, { name: 'empty' });
    for (const cidr of ['10.0.2.0/24', '10.0.1.0/24']) await createSubnet(client, id, cidr);
    const { body } = await available(client);
    expect(body.count).toBe(3);
    expect(names({ body } as Answer)).toEqual(['empty', 'a network', 'default']);
    for (const network of body.results) {
      const subnets = (await cloud.get(`${client.subnets}?network_id=${network.id}`, client.options)).body.results;
      expect(network.subnets).toEqual(subnets);
      const alone = (await cloud.get(`${client.networks}/${network.id}`, client.options)).body;
      expect({ ...network, subnets: alone.subnets }).toEqual(alone);
    }
    expect(body.results[1].subnets.map(({ cidr }: { cidr: string }) => cidr)).toEqual(['10.0.1.0/24', '10.0.2.0/24']);
    const { options } = await newClient();
    expect((await available({ ...client, options })).status).toBe(404);
  });

  it('filters by id, name, type, tags and owner, sorts and pages', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client, { name: 'front', tags: { env: 'test' } });
    await createNetwork(client, { name: 'a vlan', type: 'vlan' });
    const found = async (query: string) => names(await available(client, query));
    expect(await found('')).toEqual(['a vlan', 'front', 'default']);
    expect(await found('order_by=name.asc')).toEqual(['a vlan', 'default', 'front']);
    expect(await found('limit=1&offset=1')).toEqual(['front']);
    expect((await available(client, 'limit=1&offset=1')).body.count).toBe(3);
    expect(await found(`network_id=${id.toUpperCase()}`)).toEqual(['front']);
    expect(await found(`network_id=${unknownId}`)).toEqual([]);
    expect(await found('name=vlan')).toEqual(['a vlan']);
    expect(await found('network_type=vlan')).toEqual(['a vlan']);
    expect(await found('tag_key=env')).toEqual(['front']);
    expect(await found('tag_key_value=env%3Dtest')).toEqual(['front']);
    expect(await found('external=false&shared=false')).toHaveLength(3);
    for (const query of ['external=true', 'shared=true']) {
      expect((await available(client, query)).body).toEqual({ count: 0, results: [] });
    }
    const refused = await available(
      client,
      `limit=0&offset=-1&network_id=x&name=${'n'.repeat(62)}&network_type=gre&shared=perhaps&external=1&order_by=mtu.asc`,
    );
    expect([refused.status, errorPaths(refused).sort()]).toEqual([
      400,
      ['external', 'limit', 'name', 'network_id', 'network_type', 'offset', 'order_by', 'shared'],
    ]);
    expect((await available(client, 'limit=1001')).status).toBe(400);
  });

  it('streams subnets that are large together', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client);
    const tags = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`${n}${'k'.repeat(250)}`, 'v'.repeat(255)]));
    const made = Array.from({ length: 20 }, async (_, n) => {
      const body = { name: 'large', network_id: id, cidr: `10.1.${n}.0/24`, tags };
      await cloud.ended(await cloud.post(client.subnets, body, client.options), client.options);
    });
    await Promise.all(made);
    const { results } = (await available(client)).body;
    expect(results[0].subnets).toHaveLength(20);
    expect(results[0].subnets[19]).toMatchObject({ cidr: '10.1.19.0/24', network_id: id });
  });
});

describe('changing a network', () => {
  it('merges tags, renames, and ignores an empty update', async () => {
    const client = await newClient();
    const network = await createNetwork(client, { tags: { keep: '1', change: '1', drop: '1' } });
    const path = `${client.networks}/${network['id']}`;
    const patch = (body: unknown) => cloud.patch(path, body, client.options);
    cloud.clock.advance(60);
    expect(await patch({})).toMatchObject({ status: 200, body: network });
    expect(await patch({ name: 'a network', tags: { keep: '1', absent: null } })).toMatchObject({ body: network });
    const changed = await patch({ name: 'renamed', tags: { change: '2', drop: null, add: '3' } });
    expect(changed.body).toMatchObject({
      name: 'renamed',
      tags: [
        { key: 'add', value: '3' },
        { key: 'change', value: '2' },
        { key: 'keep', value: '1' },
      ],
    });
    expect(changed.body.updated_at > network['updated_at']).toBe(true);
    expect((await cloud.get(path, client.options)).body).toEqual(changed.body);
    expect((await patch({ tags: null })).body.tags).toEqual([]);
    cloud.clock.set(null);
  });

  it('reports all invalid fields at once', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client);
    const refused = await cloud.patch(
      `${client.networks}/${id}`,
      { name: '-', mtu: 1, tags: { t: 1 } },
      client.options,
    );
    expect(refused.status).toBe(400);
    expect(errorPaths(refused)).toEqual(expect.arrayContaining(['name', 'mtu', 'tags.t']));
  });
});

describe('deleting a network', () => {
  it('returns a finished task and removes the network', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client);
    const deleted = await cloud.delete(`${client.networks}/${id}`, client.options);
    const task = await cloud.ended(deleted, client.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_network' });
    expect(await cloud.get(`${client.networks}/${id}`, client.options)).toMatchObject({ status: 404 });
    expect(await cloud.delete(`${client.networks}/${id}`, client.options)).toMatchObject({ status: 404 });
    expect(await client.usage()).toMatchObject({ network_count_usage: 1 });
  });

  it('names the subnets and file shares that use the network', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client);
    const subnet = await createSubnet(client, id);
    await cloud.post(client.shares, share({ network_id: id }), client.options);
    const refused = await cloud.delete(`${client.networks}/${id}`, client.options);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toContain(`1 subnet (${subnet}), 1 file share (`);
    expect(refused.headers['x-should-retry']).toBe('false');
  });

  it('fails while a subnet is being created in the network, or makes that creation fail', async () => {
    const client = await newClient();
    for (let i = 0; i < 10; i++) {
      const { id } = await createNetwork(client);
      const [deleted, subnet] = await Promise.all([
        cloud.delete(`${client.networks}/${id}`, client.options),
        cloud.post(client.subnets, { name: 'a subnet', network_id: id, cidr: '10.0.0.0/24' }, client.options),
      ]);
      expect([deleted.status, subnet.status]).toEqual(deleted.status === 200 ? [200, 400] : [409, 200]);
    }
  });
});

describe('the network of a new file share', () => {
  it('is the requested network, with the requested subnet or the oldest one', async () => {
    const client = await newClient();
    const { id } = await createNetwork(client);
    const first = await createSubnet(client, id, '10.0.0.0/24');
    const second = await createSubnet(client, id, '10.0.1.0/24');
    const shareIn = async (network: object) => {
      const created = await cloud.post(client.shares, share(network), client.options);
      const task = await cloud.get(`/cloud/v1/tasks/${created.body.tasks[0]}`, client.options);
      return (await cloud.get(`${client.shares}/${task.body.created_resources.file_shares[0]}`, client.options)).body;
    };
    expect(await shareIn({ network_id: id })).toMatchObject({ network_id: id, subnet_id: first });
    expect(await shareIn({ network_id: id, subnet_id: second })).toMatchObject({ network_id: id, subnet_id: second });
  });

  it('must exist in the same project and have a subnet', async () => {
    const client = await newClient();
    const other = await newClient();
    const foreign = (await cloud.get(other.networks, other.options)).body.results[0].id;
    const { id: empty } = await createNetwork(client);
    const refusedAt = async (network: object) =>
      errorPaths(await cloud.post(client.shares, share(network), client.options));
    expect(await refusedAt({ network_id: unknownId })).toEqual(['network.network_id']);
    expect(await refusedAt({ network_id: foreign })).toEqual(['network.network_id']);
    expect(await refusedAt({ network_id: empty })).toEqual(['network.network_id']);
    expect(await refusedAt({ network_id: empty, subnet_id: unknownId })).toEqual(['network.subnet_id']);
  });

  it('defaults to the default network, or else to the oldest', async () => {
    const client = await newClient();
    const scope = { clientId: client.clientId, projectId: client.projectId, regionId: 1, regionName: 'local' };
    const chosen = () => cloud.services.networks.forNewResource(scope);
    const oldest = await createNetwork(client);
    const subnet = await createSubnet(client, oldest['id']);
    const { body } = await cloud.get(`${client.networks}?name=default`, client.options);
    const [byDefault] = body.results;
    expect(byDefault).toMatchObject({ name: 'default', default: true, creator_task_id: null });
    expect(await chosen()).toEqual({ networkId: byDefault.id, subnetId: byDefault.subnets[0] });
    const first = await cloud.get(`${client.subnets}/${byDefault.subnets[0]}`, client.options);
    expect(first.body).toMatchObject({ name: 'default', cidr: '192.168.10.0/24', gateway_ip: '192.168.10.1' });
    expect(await client.usage()).toMatchObject({ network_count_usage: 2, subnet_count_usage: 2 });

    await cloud.delete(`${client.subnets}/${byDefault.subnets[0]}`, client.options);
    const unusable = (id: unknown) => `network ${id}, which is used by default, has no subnet; create one`;
    const refusal = (id: unknown) => ({ errors: [{ path: '', message: unusable(id) }] });
    await expect(chosen()).rejects.toMatchObject(refusal(byDefault.id));
    await cloud.delete(`${client.networks}/${byDefault.id}`, client.options);
    expect(await chosen()).toEqual({ networkId: oldest['id'], subnetId: subnet });
    await cloud.delete(`${client.subnets}/${subnet}`, client.options);
    await expect(chosen()).rejects.toMatchObject(refusal(oldest['id']));
    await cloud.delete(`${client.networks}/${oldest['id']}`, client.options);
    await expect(chosen()).rejects.toMatchObject({ code: 'InvalidInput', errors: [{ path: '' }] });
  });
});

describe('a network of another client', () => {
  it("returns 404 under the owner's path and under the caller's path", async () => {
    const owner = await newClient();
    const { id } = await createNetwork(owner);
    const other = await newClient();
    for (const path of [`${owner.networks}/${id}`, `${other.networks}/${id}`]) {
      expect(await cloud.get(path, other.options)).toMatchObject({ status: 404 });
      expect(await cloud.patch(path, {}, other.options)).toMatchObject({ status: 404 });
      expect(await cloud.delete(path, other.options)).toMatchObject({ status: 404 });
    }
    expect(await cloud.get(owner.networks, other.options)).toMatchObject({ status: 404 });
    expect(await cloud.post(owner.networks, { name: 'mine' }, other.options)).toMatchObject({ status: 404 });
  });
});
