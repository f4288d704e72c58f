import { describe, expect, it } from 'vitest';
import { type Answer, errorPaths, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const unknownId = '11111111-1111-4111-8111-111111111111';

const names = (answer: Answer) => answer.body.results.map((subnet: { name: string }) => subnet.name);

/** A client with an empty network, and the paths of its project. */
async function newNetwork() {
  const client = await cloud.newClient();
  const at = (resource: string) => `/cloud/v1/${resource}/${client.projectId}/1`;
  const options = { token: client.token };
  const created = await cloud.post(at('networks'), { name: 'a network' }, options);
  const [network] = (await cloud.ended(created, options)).body.created_resources.networks;
  const usage = async () => (await cloud.get(`/cloud/v2/regional_quotas/${client.clientId}/1`, options)).body;
  return { ...client, options, usage, network: network as string, subnets: at('subnets'), shares: at('file_shares') };
}
type Network = Awaited<ReturnType<typeof newNetwork>>;

function post(at: Network, changes: object = {}): Promise<Answer> {
  const body = { name: 'a subnet', network_id: at.network, cidr: '10.0.0.0/24', ...changes };
  return cloud.post(at.subnets, body, at.options);
}

async function createSubnet(at: Network, changes: object = {}): Promise<Record<string, any>> {
  const task = await cloud.ended(await post(at, changes), at.options);
  return (await cloud.get(`${at.subnets}/${task.body.created_resources.subnets[0]}`, at.options)).body;
}

function postShare(at: Network, network: object = { network_id: at.network }): Promise<Answer> {
  return cloud.post(at.shares, { name: 'a share', protocol: 'NFS', size: 1, network }, at.options);
}

describe('creating a subnet', () => {
  it('returns a finished task, and the subnet exists in its network', async () => {
    const at = await newNetwork();
    const created = await post(at);
    const task = await cloud.ended(created, at.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_subnet' });
    const [id] = task.body.created_resources.subnets;
    const subnet = await cloud.get(`${at.subnets}/${id}`, at.options);
    expect(subnet.body).toMatchObject({
      id,
      name: 'a subnet',
      network_id: at.network,
      cidr: '10.0.0.0/24',
      ip_version: 4,
      gateway_ip: '10.0.0.1',
      enable_dhcp: true,
      dns_nameservers: [],
      host_routes: [],
      has_router: false,
      total_ips: 254,
      available_ips: 253,
      project_id: at.projectId,
      region: 'local',
      region_id: 1,
      tags: [],
      creator_task_id: created.body.tasks[0],
      task_id: null,
    });
    expect(subnet.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const network = await cloud.get(`${at.subnets.replace('subnets', 'networks')}/${at.network}`, at.options);
    expect(network.body.subnets).toEqual([id]);
    expect(await at.usage()).toMatchObject({ subnet_count_usage: 2 });
  });

  it('accepts the bodies that common clients send', async () => {
    const at = await newNetwork();
    const full = {
      ip_version: 4,
      gateway_ip: '10.0.0.254',
      enable_dhcp: false,
      dns_nameservers: ['8.8.8.8', '1.1.1.1'],
      host_routes: [{ destination: '10.9.0.0/16', nexthop: '10.0.0.7' }],
      connect_to_network_router: true,
      router_id_to_connect: null,
      metadata: { from: 'terraform' },
    };
    expect(await createSubnet(at, full)).toMatchObject({
      gateway_ip: '10.0.0.254',
      enable_dhcp: false,
      dns_nameservers: ['8.8.8.8', '1.1.1.1'],
      host_routes: [{ destination: '10.9.0.0/16', nexthop: '10.0.0.7' }],
      tags: [{ key: 'from', value: 'terraform' }],
    });
    const none = { cidr: '10.0.1.0/24', gateway_ip: null, dns_nameservers: null, host_routes: null };
    expect(await createSubnet(at, { ...none, connect_to_network_router: false })).toMatchObject({
      gateway_ip: null,
      available_ips: 254,
      dns_nameservers: [],
      host_routes: [],
    });
    const six = { cidr: '2001:DB8:1::/64', ip_version: 6, dns_nameservers: ['2001:4860:4860::8888'] };
    expect(await createSubnet(at, six)).toMatchObject({
      cidr: '2001:db8:1::/64',
      ip_version: 6,
      gateway_ip: '2001:db8:1::1',
      total_ips: null,
      available_ips: null,
    });
    expect(await createSubnet(at, { cidr: '10.1.0.0/30' })).toMatchObject({ total_ips: 2, available_ips: 1 });
    expect(await createSubnet(at, { cidr: '11.0.0.0/8' })).toMatchObject({ total_ips: 16_777_214 });
  });

  it.each([{}, { connect_to_network_router: true }])(
    'without a gateway accepts a connection to a router: %j',
    async (given) => {
      const at = await newNetwork();
      expect(await createSubnet(at, { gateway_ip: null, ...given })).toMatchObject({
        gateway_ip: null,
        has_router: false,
      });
    },
  );

  it.each([
    ['cidr', { cidr: '10.0.0.1/24' }],
    ['cidr', { cidr: '10.0.0.1' }],
    ['cidr', { cidr: '10.0.0.0/31' }],
    ['cidr', { cidr: '0.0.0.0/0' }],
    ['cidr', { cidr: '2001:db8::/127' }],
    ['cidr', { cidr: '224.0.0.0/24' }],
    ['cidr', { cidr: '127.0.0.0/24' }],
    ['cidr', { cidr: 'ten' }],
    ['ip_version', { ip_version: 6 }],
    ['ip_version', { ip_version: 5 }],
    ['gateway_ip', { gateway_ip: '10.0.1.1' }],
    ['gateway_ip', { gateway_ip: '10.0.0.0' }],
    ['gateway_ip', { gateway_ip: '10.0.0.255' }],
    ['gateway_ip', { gateway_ip: '2001:db8::1' }],
    ['gateway_ip', { gateway_ip: '10.0.0.1/24' }],
    ['gateway_ip', { gateway_ip: '' }],
    ['dns_nameservers.1', { dns_nameservers: ['8.8.8.8', '8.8.8'] }],
    ['dns_nameservers.0', { dns_nameservers: ['2001:4860:4860::8888'] }],
    ['dns_nameservers.1', { dns_nameservers: ['8.8.8.8', '8.8.8.8'] }],
    ['host_routes.0.destination', { host_routes: [{ destination: '10.9.0.1/16', nexthop: '10.0.0.7' }] }],
    ['host_routes.0.destination', { host_routes: [{ destination: '2001:db8::/64', nexthop: '10.0.0.7' }] }],
    ['host_routes.0.nexthop', { host_routes: [{ destination: '10.9.0.0/16', nexthop: '2001:db8::1' }] }],
    ['host_routes.0.nexthop', { host_routes: [{ destination: '10.9.0.0/16' }] }],
    ['host_routes.0.metric', { host_routes: [{ destination: '10.9.0.0/16', nexthop: '10.0.0.7', metric: 1 }] }],
    ['network_id', { network_id: unknownId }],
    ['network_id', { network_id: 'a network' }],
    ['name', { name: ' ' }],
    ['vlan', { vlan: 1 }],
  ])('refuses an invalid %s: %j', async (path, changes) => {
    const refused = await post(await newNetwork(), changes);
    expect(refused).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(errorPaths(refused)).toContain(path);
  });

  it.each(['ten', '10.0.0.1', '10.0.0.1/24'])('needs a network, not %s', async (cidr) => {
    const message = 'must be an IPv4 or IPv6 network such as 10.0.0.0/24 without host bits';
    expect((await post(await newNetwork(), { cidr })).body.errors).toEqual([{ path: 'cidr', message }]);
  });

  it('reports all invalid fields at once', async () => {
    const refused = await post(await newNetwork(), {
      network_id: unknownId,
      cidr: '10.0.0.0/31',
      ip_version: 6,
      gateway_ip: '10.9.9.9',
      dns_nameservers: ['2001:db8::1'],
      host_routes: [{ destination: '2001:db8::/64', nexthop: '2001:db8::1' }],
    });
    expect(errorPaths(refused)).toEqual([
      'cidr',
      'ip_version',
      'gateway_ip',
      'dns_nameservers.0',
      'host_routes.0.destination',
      'host_routes.0.nexthop',
      'network_id',
    ]);
  });

  it('refuses overlapping subnets of a network, also with parallel requests', async () => {
    const at = await newNetwork();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(at)));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    for (const refused of answers.filter((answer) => answer.status !== 200)) {
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    }
    for (const cidr of ['10.0.0.0/8', '10.0.0.128/25']) expect(await post(at, { cidr })).toMatchObject({ status: 409 });
    expect(await post(at, { cidr: '10.0.1.0/24' })).toMatchObject({ status: 200 });
    expect(await post(await newNetwork())).toMatchObject({ status: 200 });
    expect(await at.usage()).toMatchObject({ subnet_count_usage: 3 });
  });

  it('is refused above the quota and runs once per Idempotency-Key', async () => {
    const at = await newNetwork();
    await cloud.patch(`/cloudyard/v1/clients/${at.clientId}/quotas`, { region_id: 1, subnet_count_limit: 2 });
    const body = { name: 'a subnet', network_id: at.network, cidr: '10.0.0.0/24' };
    const once = { ...at.options, headers: { 'idempotency-key': 'once' } };
    const first = await cloud.post(at.subnets, body, once);
    expect(await cloud.post(at.subnets, body, once)).toMatchObject({ status: 200, body: first.body });
    const refused = await post(at, { cidr: '10.0.1.0/24' });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
  });
});

describe('listing subnets', () => {
  it('sorts by every sort field in both directions, with nulls last', async () => {
    const at = await newNetwork();
    await createSubnet(at, { name: 'large', cidr: '10.10.0.0/16' });
    await createSubnet(at, { name: 'v six', cidr: '2001:db8::/64' });
    await createSubnet(at, { name: 'Small', cidr: '10.9.0.0/28' });
    await createSubnet(at, { name: 'closed', cidr: '10.2.0.0/28', gateway_ip: null });
    const list = async (query: string) =>
      names(await cloud.get(`${at.subnets}?network_id=${at.network}&${query}`, at.options));
    const made = ['large', 'v six', 'Small', 'closed'];
    expect(await list('')).toEqual(['closed', 'Small', 'large', 'v six']);
    expect(await list('order_by=created_at.asc&owned_by=any')).toEqual(made);
    expect(await list('order_by=created_at.desc&owned_by=project')).toEqual([...made].reverse());
    expect(await list('order_by=updated_at.asc')).toEqual(made);
    expect(await list('order_by=updated_at.desc')).toEqual([...made].reverse());
    expect(await list('order_by=name.asc')).toEqual(['Small', 'closed', 'large', 'v six']);
    expect(await list('order_by=name.desc')).toEqual(['v six', 'large', 'closed', 'Small']);
    expect(await list('order_by=cidr.asc')).toEqual(['closed', 'Small', 'large', 'v six']);
    expect(await list('order_by=cidr.desc')).toEqual(['v six', 'large', 'Small', 'closed']);
    expect((await list('order_by=total_ips.asc')).slice(2)).toEqual(['large', 'v six']);
    expect((await list('order_by=total_ips.desc'))[0]).toBe('large');
    expect((await list('order_by=total_ips.desc'))[3]).toBe('v six');
    expect(await list('order_by=available_ips.asc')).toEqual(['Small', 'closed', 'large', 'v six']);
    expect(await list('order_by=available_ips.desc')).toEqual(['large', 'closed', 'Small', 'v six']);
    expect(await list('limit=2&offset=1')).toEqual(['Small', 'large']);
    const refused = await cloud.get(`${at.subnets}?order_by=mtu.asc&network_id=x`, at.options);
    expect(errorPaths(refused).sort()).toEqual(['network_id', 'order_by']);
  });

  it('filters by network and by tags', async () => {
    const at = await newNetwork();
    await createSubnet(at, { name: 'tagged', tags: { env: 'test', web: 'yes' } });
    await createSubnet(at, { name: 'plain', cidr: '10.0.1.0/24' });
    const list = (query: Record<string, string>) =>
      cloud.get(`${at.subnets}?${new URLSearchParams(query)}`, at.options);
    expect((await list({})).body.count).toBe(3);
    expect((await list({ network_id: at.network })).body.count).toBe(2);
    expect((await list({ network_id: unknownId })).body).toEqual({ count: 0, results: [] });
    for (const query of [{ tag_key: 'env' }, { tag_key_value: '{"env":"test"}' }, { metadata_kv: '{"env":"test"}' }]) {
      expect(names(await list(query as unknown as Record<string, string>))).toEqual(['tagged']);
    }
    expect((await list({ tag_key_value: 'env=live' })).body.count).toBe(0);
    expect(errorPaths(await list({ tag_key_value: '[]' }))).toEqual(['tag_key_value']);
  });
});

describe('changing a subnet', () => {
  it('changes the given fields, clears null fields, and ignores an empty update', async () => {
    const at = await newNetwork();
    const subnet = await createSubnet(at, { tags: { keep: '1', drop: '1' }, dns_nameservers: ['8.8.8.8'] });
    const path = `${at.subnets}/${subnet['id']}`;
    const patch = (body: unknown) => cloud.patch(path, body, at.options);
    cloud.clock.advance(60);
    expect(await patch({})).toMatchObject({ status: 200, body: subnet });
    expect(await patch({ name: null, dns_nameservers: ['8.8.8.8'], tags: { keep: '1' } })).toMatchObject({
      body: subnet,
    });
    const changes = {
      name: 'renamed',
      gateway_ip: '10.0.0.9',
      enable_dhcp: false,
      dns_nameservers: ['1.1.1.1', '8.8.8.8'],
      host_routes: [{ destination: '10.9.0.0/16', nexthop: '10.0.0.7' }],
    };
    const changed = await patch({ ...changes, tags: { drop: null, add: '2' } });
    expect(changed.body).toMatchObject({
      ...changes,
      tags: [
        { key: 'add', value: '2' },
        { key: 'keep', value: '1' },
      ],
    });
    expect(changed.body.updated_at > subnet['updated_at']).toBe(true);
    expect((await cloud.get(path, at.options)).body).toEqual(changed.body);
    const emptied = await patch({ gateway_ip: null, dns_nameservers: null, host_routes: null, tags: null });
    expect(emptied.body).toMatchObject({ gateway_ip: null, dns_nameservers: [], host_routes: [], tags: [] });
    expect(emptied.body).toMatchObject({ name: 'renamed', total_ips: 254, available_ips: 254 });
    cloud.clock.set(null);
  });

  it('reports all invalid fields at once', async () => {
    const at = await newNetwork();
    const { id } = await createSubnet(at);
    const patch = (body: unknown) => cloud.patch(`${at.subnets}/${id}`, body, at.options);
    const refused = await patch({
      gateway_ip: '10.0.0.255',
      dns_nameservers: ['2001:db8::1'],
      host_routes: [{ destination: '2001:db8::/64', nexthop: '10.0.0.1' }],
    });
    expect(errorPaths(refused)).toEqual(['gateway_ip', 'dns_nameservers.0', 'host_routes.0.destination']);
    expect(errorPaths(await patch({ cidr: '10.0.0.0/16', enable_dhcp: null }))).toEqual(
      expect.arrayContaining(['cidr', 'enable_dhcp']),
    );
  });
});

describe('deleting a subnet', () => {
  it('returns a finished task and frees the address range', async () => {
    const at = await newNetwork();
    const { id } = await createSubnet(at);
    const task = await cloud.ended(await cloud.delete(`${at.subnets}/${id}`, at.options), at.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_subnet' });
    expect(await cloud.get(`${at.subnets}/${id}`, at.options)).toMatchObject({ status: 404 });
    expect(await cloud.delete(`${at.subnets}/${id}`, at.options)).toMatchObject({ status: 404 });
    expect(await at.usage()).toMatchObject({ subnet_count_usage: 1 });
    expect(await post(at)).toMatchObject({ status: 200 });
  });

  it('is refused while file shares use the subnet, and names them', async () => {
    const at = await newNetwork();
    const { id } = await createSubnet(at);
    await postShare(at);
    const refused = await cloud.delete(`${at.subnets}/${id}`, at.options);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toContain('1 file share (');
    expect(refused.headers['x-should-retry']).toBe('false');
  });

  it('fails while a share is being created in the subnet, or makes that creation fail', async () => {
    const at = await newNetwork();
    for (let i = 0; i < 10; i++) {
      const { id } = await createSubnet(at, { cidr: `10.0.${i}.0/24` });
      const network = { network_id: at.network, subnet_id: id };
      const [deleted, created] = await Promise.all([
        cloud.delete(`${at.subnets}/${id}`, at.options),
        postShare(at, network),
      ]);
      expect([deleted.status, created.status]).toEqual(deleted.status === 200 ? [200, 400] : [409, 200]);
    }
  });
});

describe('a subnet of another client', () => {
  it("returns 404 under the owner's path and under the caller's path", async () => {
    const owner = await newNetwork();
    const { id } = await createSubnet(owner);
    const other = await newNetwork();
    for (const path of [`${owner.subnets}/${id}`, `${other.subnets}/${id}`]) {
      expect(await cloud.get(path, other.options)).toMatchObject({ status: 404 });
      expect(await cloud.patch(path, {}, other.options)).toMatchObject({ status: 404 });
      expect(await cloud.delete(path, other.options)).toMatchObject({ status: 404 });
    }
    expect(errorPaths(await post({ ...other, network: owner.network }))).toEqual(['network_id']);
  });
});
