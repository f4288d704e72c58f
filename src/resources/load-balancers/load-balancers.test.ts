import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({
  loadBalancerDriver: host,
  configuration: (shipped) => ({
    ...shipped,
    regions: [
      ...shipped.regions,
      { id: 2, display_name: 'small', country: 'LU', vip_range: '10.99.0.0/30' },
      { id: 3, display_name: 'without', country: 'LU' },
    ],
  }),
});
const balancers = '/cloud/v1/loadbalancers/1/1';
const unknownId = '11111111-1111-4111-8111-111111111111';
const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body.loadbalancer_count_usage as number;
const get = async (id: string) => (await cloud.get(`${balancers}/${id}`)).body;

/** A separate tenant, whose list no other test changes. */
async function tenant() {
  const { clientId, projectId, token } = await cloud.newClient();
  const path = `/cloud/v1/loadbalancers/${projectId}/1`;
  const create = async (body: object = {}) => {
    const task = await cloud.ended(await cloud.post(path, { name: 'a balancer', ...body }, { token }), { token });
    return task.body.created_resources.loadbalancers[0] as string;
  };
  return { clientId, projectId, token, path, create };
}

async function aBalancer(changes: object = {}): Promise<Record<string, any>> {
  const task = await cloud.ended(await cloud.post(balancers, { name: 'a balancer', ...changes }));
  return get(task.body.created_resources.loadbalancers[0]);
}

const pool = (name: string, port: number) => ({
  name,
  protocol: 'HTTP',
  lb_algorithm: 'ROUND_ROBIN',
  healthmonitor: { type: 'HTTP', delay: 5, max_retries: 2, timeout: 3 },
  members: [
    { address: '10.0.0.1', protocol_port: port },
    { address: '10.0.0.2', protocol_port: port },
  ],
});

const nested = [
  { name: 'web', protocol: 'HTTP', protocol_port: 80, pools: [pool('web pool', 8080)] },
  { name: 'other', protocol: 'TCP', protocol_port: 5432 },
];

describe('creating a load balancer', () => {
  it('returns one task; when it has finished, the load balancer has an address', async () => {
    const created = await cloud.post(balancers, { name: 'a balancer', tags: { b: '2', a: '1' } });
    expect(created).toMatchObject({ status: 200, body: { tasks: [expect.any(String)] } });
    const task = await cloud.ended(created);
    const [id] = task.body.created_resources.loadbalancers;
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_loadbalancer', error: null });
    expect(task.body.created_resources).toEqual({ loadbalancers: [id] });
    const balancer = await get(id);
    const [network] = (await cloud.get('/cloud/v1/networks/1/1')).body.results;
    const tags = [
      { key: 'a', value: '1', read_only: false },
      { key: 'b', value: '2', read_only: false },
    ];
    expect(balancer).toEqual({
      id,
      name: 'a balancer',
      additional_vips: [],
      admin_state_up: true,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      creator_task_id: created.body.tasks[0],
      ddos_profile: null,
      flavor: { flavor_id: 'lb1-1-2', flavor_name: 'lb1-1-2', vcpus: 1, ram: 2048 },
      floating_ips: [],
      listeners: [],
      logging: null,
      metadata: tags,
      operating_status: expect.stringMatching(/^(ONLINE|OFFLINE)$/),
      preferred_connectivity: 'L2',
      project_id: 1,
      provisioning_status: 'ACTIVE',
      region: 'local',
      region_id: 1,
      stats: null,
      tags_v2: tags,
      task_id: null,
      updated_at: balancer['created_at'],
      vip_address: expect.stringMatching(/^127\.64\.\d+\.\d+$/),
      vip_fqdn: null,
      vip_ip_family: 'ipv4',
      vip_port_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      vrrp_ips: [{ ip_address: balancer['vip_address'], role: 'STANDALONE', subnet_id: network.subnets[0] }],
    });
    expect(host.balancers.get(id)).toEqual({
      id,
      tenant: '1',
      regionId: 1,
      address: balancer['vip_address'],
      enabled: true,
      listeners: [],
      pools: [],
    });
    await expect.poll(async () => (await get(id)).operating_status, { timeout: 30_000 }).toBe('ONLINE');
  });

  it('creates nested listeners and pools with one task that names all of them', async () => {
    const task = await cloud.ended(await cloud.post(balancers, { name: 'a balancer', listeners: nested }));
    const made = task.body.created_resources;
    expect(task.body.state).toBe('FINISHED');
    expect(made).toEqual({
      loadbalancers: [expect.any(String)],
      listeners: [expect.any(String), expect.any(String)],
      pools: [expect.any(String)],
      members: [expect.any(String), expect.any(String)],
      healthmonitors: [expect.any(String)],
    });
    const balancer = await get(made.loadbalancers[0]);
    expect(balancer).toMatchObject({ task_id: null, listeners: made.listeners.map((id: string) => ({ id })) });
    const onHost = host.balancers.get(made.loadbalancers[0])!;
    expect(onHost.listeners.map(({ id, port, defaultPoolId }) => [id, port, defaultPoolId])).toEqual([
      [made.listeners[0], 80, made.pools[0]],
      [made.listeners[1], 5432, null],
    ]);
    expect(onHost.pools[0]!.members.map(({ id, address, port }) => [id, address, port])).toEqual([
      [made.members[0], '10.0.0.1', 8080],
      [made.members[1], '10.0.0.2', 8080],
    ]);
  });

  it('ignores a subnet without its network', async () => {
    const shownOf = (balancer: Record<string, any>) => balancer['vrrp_ips'][0].subnet_id;
    expect(shownOf(await aBalancer({ vip_subnet_id: unknownId }))).toBe(shownOf(await aBalancer()));
  });

  it('stores all settings', async () => {
    const logging = { enabled: true, topic_name: 'my-logs', retention_policy: { period: 7 } };
    const balancer = await aBalancer({
      flavor: 'lb1-2-4',
      logging,
      preferred_connectivity: 'L3',
      metadata: { a: '1' },
    });
    expect(balancer).toMatchObject({
      flavor: { flavor_name: 'lb1-2-4', vcpus: 2, ram: 4096 },
      logging: { ...logging, destination_region_id: null },
      preferred_connectivity: 'L3',
      tags_v2: [{ key: 'a', value: '1' }],
    });
    const path = `${balancers}/${balancer.id}`;
    expect((await cloud.patch(path, { logging: null })).body).toMatchObject({ logging: null });
    expect((await cloud.patch(path, { logging: null })).status).toBe(200);
  });

  it('creates one load balancer for repeated requests with an Idempotency-Key', async () => {
    const { path, token } = await tenant();
    const options = { token, headers: { 'idempotency-key': 'once' } };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => cloud.post(path, { name: 'a balancer' }, options)),
    );
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: answers[0]!.body });
    expect((await cloud.get(path, { token })).body.count).toBe(1);
  });

  it('accepts five of twenty parallel creates with a limit of five, each with its own address', async () => {
    const { clientId, path, token } = await tenant();
    await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { region_id: 1, loadbalancer_count_limit: 5 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => cloud.post(path, { name: 'a balancer' }, { token })),
    );
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(5);
    for (const refused of answers.filter((answer) => answer.status !== 200)) {
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
      expect(refused.body.message).toContain('limit 5, in use 5, requested 1');
    }
    const { results } = (await cloud.get(path, { token })).body;
    expect(new Set(results.map((balancer: any) => balancer.vip_address)).size).toBe(5);
  });

  it('names the network without a subnet that is used by default', async () => {
    const project = await cloud.post('/cloud/v1/projects', { name: 'one network' });
    const of = (resource: string) => `/cloud/v1/${resource}/${project.body.id}/1`;
    const made = await cloud.ended(await cloud.post(of('networks'), { name: 'a network' }));
    const [network] = made.body.created_resources.networks;
    const message = `network ${network}, which is used by default, has no subnet; create one, or name another network`;
    const refused = await cloud.post(of('loadbalancers'), { name: 'a balancer' });
    expect(refused.body.errors).toEqual([{ path: 'vip_network_id', message }]);
  });

  it('assigns the lowest free address of the region, and responds with 409 if there is none', async () => {
    const small = '/cloud/v1/loadbalancers/1/2';
    const network = (await cloud.post('/cloud/v1/networks/1/2', { name: 'a network' })).body.tasks[0];
    const { networks } = (await cloud.get(`/cloud/v1/tasks/${network}`)).body.created_resources;
    const none = await cloud.post(small, { name: 'a balancer', vip_network_id: networks[0] });
    expect([none.status, errorPaths(none)]).toEqual([400, ['vip_network_id']]);
    await cloud.post('/cloud/v1/subnets/1/2', { name: 'a subnet', network_id: networks[0], cidr: '10.1.0.0/24' });
    const make = () => cloud.post(small, { name: 'a balancer' });
    const tasks = [await cloud.ended(await make()), await cloud.ended(await make())];
    const ids = tasks.map((task) => task.body.created_resources.loadbalancers[0]);
    const address = async (id: string) => (await cloud.get(`${small}/${id}`)).body.vip_address;
    expect([await address(ids[0]), await address(ids[1])]).toEqual(['10.99.0.1', '10.99.0.2']);
    const full = await make();
    expect(full).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect([full.body.message.includes('10.99.0.0/30'), full.headers['x-should-retry']]).toEqual([true, 'false']);
    await cloud.ended(await cloud.delete(`${small}/${ids[0]}`));
    const again = await cloud.ended(await make());
    expect(await address(again.body.created_resources.loadbalancers[0])).toBe('10.99.0.1');
  });
});

describe('invalid requests name the field and change nothing', () => {
  const same = { address: '10.0.0.1', protocol_port: 80 };
  const cases: [string, object, string[]][] = [
    ['no name', { name: undefined }, ['name']],
    ['a name too short', { name: 'ab' }, ['name']],
    ['a name with odd characters', { name: 'a/b;c' }, ['name']],
    ['an unknown field', { colour: 'red' }, ['colour']],
    ['an unknown flavor', { flavor: 'lb9-9-9' }, ['flavor']],
    ['a floating IP', { floating_ip: { source: 'new' } }, ['floating_ip']],
    [
      'an existing floating IP',
      { floating_ip: { source: 'existing', existing_floating_id: unknownId } },
      ['floating_ip'],
    ],
    ['a port', { vip_port_id: unknownId }, ['vip_port_id']],
    ['ipv6', { vip_ip_family: 'ipv6' }, ['vip_ip_family']],
    ['dual', { vip_ip_family: 'dual' }, ['vip_ip_family']],
    ['an unknown network', { vip_network_id: unknownId }, ['vip_network_id']],
    ['an invalid network id', { vip_network_id: 'x' }, ['vip_network_id']],
    ['an empty tag key', { tags: { '': 'v' } }, ['tags.']],
    ['a tag value of 256 characters', { tags: { k: 'v'.repeat(256) } }, ['tags.k']],
    ['an internal tag', { tags: { 'cloudyard:x': 'v' } }, ['tags.cloudyard:x']],
    ['a topic with odd characters', { logging: { topic_name: 'A B' } }, ['logging.topic_name']],
    ['a retention of 0 days', { logging: { retention_policy: { period: 0 } } }, ['logging.retention_policy.period']],
    ['an unknown connectivity', { preferred_connectivity: 'L4' }, ['preferred_connectivity']],
    [
      '52 listeners',
      { listeners: Array.from({ length: 52 }, (_, i) => ({ name: 'web', protocol: 'TCP', protocol_port: i + 1 })) },
      ['listeners'],
    ],
    ['a listener of port 0', { listeners: [{ ...nested[1], protocol_port: 0 }] }, ['listeners.0.protocol_port']],
    [
      'a duplicate member',
      {
        listeners: [
          {
            ...nested[0],
            pools: [
              {
                ...pool('a pool', 80),
                members: [same, same],
              },
            ],
          },
        ],
      },
      ['listeners.0.pools.0.members.1'],
    ],
    [
      'everything at once',
      {
        floating_ip: { source: 'new' },
        vip_ip_family: 'dual',
        vip_port_id: unknownId,
        vip_network_id: unknownId,
        listeners: [nested[1], nested[1]],
      },
      ['floating_ip', 'vip_port_id', 'vip_ip_family', 'vip_network_id', 'listeners.1.protocol_port'],
    ],
  ];
  it.each(cases)('%s', async (_name, changes, fields) => {
    const before = [(await cloud.get(balancers)).body.count, await usage()];
    const answer = await cloud.post(balancers, { name: 'a balancer', ...changes });
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(errorPaths(answer))).toEqual(new Set(fields));
    expect([(await cloud.get(balancers)).body.count, await usage()]).toEqual(before);
  });

  it('a region without addresses', async () => {
    const answer = await cloud.post('/cloud/v1/loadbalancers/1/3', { name: 'a balancer' });
    expect([answer.status, errorPaths(answer)]).toEqual([400, ['region_id']]);
    expect(answer.body.message).toContain('region without has no load balancers');
  });

  it('a project without a network', async () => {
    const { id } = (await cloud.post('/cloud/v1/projects', { name: 'no networks' })).body;
    const answer = await cloud.post(`/cloud/v1/loadbalancers/${id}/1`, { name: 'a balancer' });
    expect([answer.status, errorPaths(answer)]).toEqual([400, ['vip_network_id']]);
    expect(answer.body.message).toContain('the project has no network in this region; create one with a subnet first');
  });

  it('unknown and invisible load balancers', async () => {
    expect((await cloud.get(`${balancers}/not-a-uuid`)).status).toBe(400);
    expect((await cloud.get(`${balancers}/${unknownId}`)).status).toBe(404);
    const { id } = await aBalancer();
    const { projectId, token } = await cloud.newClient();
    const elsewhere = `/cloud/v1/loadbalancers/${projectId}/1/${id}`;
    for (const path of [elsewhere, `${elsewhere}/status`, `${elsewhere}/metadata`]) {
      expect((await cloud.get(path, { token })).status).toBe(404);
    }
    expect((await cloud.delete(elsewhere, { token })).status).toBe(404);
    expect((await cloud.post(`${elsewhere}/failover`, {}, { token })).status).toBe(404);
    expect((await cloud.post(`${elsewhere}/metrics`, { time_interval: 1, time_unit: 'hour' }, { token })).status).toBe(
      404,
    );
  });
});

describe('listing load balancers', () => {
  it('filters, orders, pages, and counts all matches', async () => {
    const { create, path, token } = await tenant();
    await create({ name: 'alpha one', tags: { env: 'test', team: 'a' }, flavor: 'lb1-4-8' });
    await create({ name: 'alpha two', tags: { env: 'prod' }, logging: { enabled: true } });
    await create({ name: 'beta one', flavor: 'lb1-2-4' });
    const names = async (query: string) => {
      const { body } = await cloud.get(`${path}?${query}`, { token });
      return [body.count, ...body.results.map((balancer: any) => balancer.name)];
    };
    expect(await names('')).toEqual([3, 'beta one', 'alpha two', 'alpha one']);
    expect(await names('limit=1&offset=1')).toEqual([3, 'alpha two']);
    expect(await names('name=alpha&limit=1')).toEqual([2, 'alpha two']);
    expect(await names('name=%25')).toEqual([0]);
    expect(await names('order_by=created_at.asc')).toEqual([3, 'alpha one', 'alpha two', 'beta one']);
    expect(await names('order_by=name.desc')).toEqual([3, 'beta one', 'alpha two', 'alpha one']);
    expect(await names('order_by=flavor.asc')).toEqual([3, 'alpha two', 'beta one', 'alpha one']);
    for (const field of ['updated_at', 'vip_address', 'vip_ip_family', 'operating_status', 'provisioning_status']) {
      for (const way of ['asc', 'desc']) expect(await names(`order_by=${field}.${way}`)).toHaveLength(4);
    }
    expect(await names('logging_enabled=true')).toEqual([1, 'alpha two']);
    expect(await names('logging_enabled=false')).toEqual([2, 'beta one', 'alpha one']);
    expect(await names('provisioning_status=ACTIVE')).toHaveLength(4);
    expect(await names('provisioning_status=ACTIVE&operating_status=DEGRADED')).toEqual([0]);
    expect(await names('provisioning_status=PENDING_UPDATE')).toEqual([0]);
    expect(await names('operating_status=ERROR')).toEqual([0]);
    expect(await names('assigned_floating=true')).toEqual([0]);
    expect(await names('assigned_floating=false&with_ddos=true')).toHaveLength(4);
    expect(await names('tag_key=env&tag_key=team')).toEqual([1, 'alpha one']);
    expect(await names(`tag_key_value=${encodeURIComponent('{"env":"prod"}')}`)).toEqual([1, 'alpha two']);
    for (const query of [
      'limit=0',
      'limit=1001',
      'offset=-1',
      'order_by=size.asc',
      'show_stats=perhaps',
      'operating_status=UP',
    ]) {
      expect((await cloud.get(`${path}?${query}`, { token })).status).toBe(400);
    }
  });

  it('orders addresses numerically', async () => {
    const { create, path, token } = await tenant();
    for (let i = 0; i < 3; i++) await create();
    const [a, b, c] = (await cloud.get(path, { token })).body.results;
    for (const [id, address] of [
      [a.id, '127.64.9.10'],
      [b.id, '127.64.9.9'],
      [c.id, '127.64.10.1'],
    ]) {
      await cloud.db.$client.query('update load_balancers set vip_address = $2 where id = $1', [id, address]);
    }
    const { results } = (await cloud.get(`${path}?order_by=vip_address.asc`, { token })).body;
    expect(results.map((balancer: any) => balancer.vip_address)).toEqual(['127.64.9.9', '127.64.9.10', '127.64.10.1']);
  });
});
