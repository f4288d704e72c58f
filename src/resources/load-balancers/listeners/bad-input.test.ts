/** Invalid requests for listeners name the invalid fields and change nothing; values at the bounds are accepted. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import {
  balancers,
  builders,
  freshPort,
  knownSecrets,
  listeners,
  member,
  monitor,
  paths,
  unknownId,
  v2,
} from '../test-balancers.ts';

const cloud = useCloudyard();
const { aBalancer, aListener, aPool, counts, getListener, getPool } = builders(cloud);
const hash = `$6$saltsalt$${'a'.repeat(86)}`;
const withUser = (username: string, encrypted_password = hash) => ({ user_list: [{ username, encrypted_password }] });
const password = (encrypted_password: string) => withUser('alice', encrypted_password);

let balancer: string;
let listener: string;
beforeAll(async () => {
  balancer = await aBalancer();
  listener = await aListener(balancer);
});

/** Cases that both a create and an update of an HTTP listener reject. */
const both: [string, object, string[]][] = [
  ['a name too short', { name: 'ab' }, ['name']],
  ['a name too long', { name: 'a'.repeat(64) }, ['name']],
  ['a name with odd characters', { name: 'a;b\nc' }, ['name']],
  ['an unknown field', { colour: 'red' }, ['colour']],
  ...['timeout_client_data', 'timeout_member_connect', 'timeout_member_data'].flatMap((field) =>
    [-1, 86_400_001, 1.5, '1000'].map((n): [string, object, string[]] => [
      `${field} ${JSON.stringify(n)}`,
      { [field]: n },
      [field],
    ]),
  ),
  ...[-2, 1_000_001, 1.5, '1', null].map((n): [string, object, string[]] => [
    `a connection limit of ${JSON.stringify(n)}`,
    { connection_limit: n },
    ['connection_limit'],
  ]),
  ...['10.0.0.1/8', '10.0.0.0/33', '10.0.0', 'all', '::/129', '', '10.0.0.0/8\n', '1.2.3.4/'].map(
    (network): [string, object, string[]] => [
      `the network ${JSON.stringify(network)}`,
      { allowed_cidrs: ['10.0.0.0/8', network] },
      ['allowed_cidrs.1'],
    ],
  ),
  ['101 networks', { allowed_cidrs: Array.from({ length: 101 }, (_, n) => `10.0.${n}.0/24`) }, ['allowed_cidrs']],
  [
    'four users',
    { user_list: Array.from({ length: 4 }, (_, n) => ({ username: `user${n}`, encrypted_password: hash })) },
    ['user_list'],
  ],
  ['a user name too short', withUser('ab'), ['user_list.0.username']],
  ['a user name too long', withUser('a'.repeat(33)), ['user_list.0.username']],
  ['a user name with a colon', withUser('a:b'), ['user_list.0.username']],
  [
    'a duplicate user',
    { user_list: [...withUser('alice').user_list, ...withUser('alice').user_list] },
    ['user_list.1.username'],
  ],
  ...[
    '',
    'secret',
    '$6$salt',
    `$6$salt$${'a'.repeat(85)}`,
    `$6$salt$${'a'.repeat(87)}`,
    `$6$sa lt$${'a'.repeat(86)}`,
    `$6$salt$${'a'.repeat(85)};`,
    `$6$salt$${'a'.repeat(86)}\n`,
    `$6$rounds=5001$salt$${'a'.repeat(86)}`,
    `$6$rounds=999$salt$${'a'.repeat(86)}`,
    `$5$salt$${'a'.repeat(42)}`,
    `$1$salt$${'a'.repeat(23)}`,
    `$2b$07$${'a'.repeat(53)}`,
    `$2b$03$${'a'.repeat(53)}`,
    `$2z$10$${'a'.repeat(53)}`,
    `$y$j9T$salt$${'a'.repeat(43)}`,
    'a'.repeat(129),
  ].map((text): [string, object, string[]] => [
    `the hash ${JSON.stringify(text).slice(0, 24)} (${text.length})`,
    password(text),
    ['user_list.0.encrypted_password'],
  ]),
  [
    'a certificate of HTTP',
    { secret_id: unknownId, sni_secret_id: [unknownId] },
    ['secret_id', 'sni_secret_id', 'secret_id', 'sni_secret_id.0'],
  ],
  ['invalid secret ids', { secret_id: 'x', sni_secret_id: ['y'] }, ['secret_id', 'sni_secret_id.0']],
];

describe('creating a listener is rejected for', () => {
  it.each([
    ...both,
    ['no name', { name: undefined }, ['name']],
    ['no protocol', { protocol: undefined }, ['protocol']],
    ['an unknown protocol', { protocol: 'SCTP' }, ['protocol']],
    ...[0, 65_536, -1, 1.5, '80', null, undefined].map((n) => [
      `port ${JSON.stringify(n)}`,
      { protocol_port: n },
      ['protocol_port'],
    ]),
    ['no load balancer', { load_balancer_id: undefined }, ['load_balancer_id']],
    ['an unknown load balancer', { load_balancer_id: unknownId }, ['load_balancer_id']],
    [
      'an unknown load balancer in the other spelling',
      { load_balancer_id: undefined, loadbalancer_id: unknownId },
      ['loadbalancer_id'],
    ],
    ['two load balancers', { loadbalancer_id: unknownId }, ['loadbalancer_id']],
    ['an unknown pool', { default_pool_id: unknownId }, ['default_pool_id']],
    ['TERMINATED_HTTPS without a certificate', { protocol: 'TERMINATED_HTTPS' }, ['secret_id']],
    ['TERMINATED_HTTPS with an empty certificate', { protocol: 'TERMINATED_HTTPS', secret_id: '' }, ['secret_id']],
    ['an unknown certificate', { protocol: 'TERMINATED_HTTPS', secret_id: unknownId }, ['secret_id']],
    ['headers of a PROMETHEUS listener', { protocol: 'PROMETHEUS', insert_x_forwarded: true }, ['insert_x_forwarded']],
    [
      'names without a certificate',
      { protocol: 'PROMETHEUS', sni_secret_id: [unknownId] },
      ['sni_secret_id', 'sni_secret_id.0'],
    ],
    ...['HTTP', 'HTTPS', 'TCP', 'UDP'].map((protocol) => [
      `certificates of a ${protocol} listener`,
      { protocol, secret_id: unknownId },
      ['secret_id'],
    ]),
    ...['HTTPS', 'TCP', 'UDP'].map((protocol) => [
      `HTTP fields of a ${protocol} listener`,
      { protocol, insert_x_forwarded: true, ...withUser('alice') },
      ['insert_x_forwarded', 'user_list'],
    ]),
    [
      'all invalid fields at once',
      { name: '', protocol: 'x', protocol_port: 0, load_balancer_id: 'x', no: 1 },
      ['name', 'protocol', 'protocol_port', 'load_balancer_id', 'no'],
    ],
    [
      'all violated rules at once',
      {
        protocol: 'UDP',
        insert_x_forwarded: true,
        default_pool_id: unknownId,
        load_balancer_id: unknownId,
        ...password('x'),
      },
      ['insert_x_forwarded', 'user_list', 'user_list.0.encrypted_password', 'default_pool_id', 'load_balancer_id'],
    ],
  ] as [string, object, string[]][])('%s', async (_name, changes, fields) => {
    const before = await counts();
    const valid = { name: 'a listener', protocol: 'HTTP', protocol_port: freshPort(), load_balancer_id: balancer };
    const answer = await cloud.post(listeners, { ...valid, ...changes });
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(paths(answer))).toEqual(new Set(fields));
    expect(await counts()).toEqual(before);
  });

  it('a pool of another load balancer, or an incompatible pool', async () => {
    const body = { name: 'a listener', protocol_port: freshPort(), load_balancer_id: balancer };
    const elsewhere = await aPool({ load_balancer_id: await aBalancer() });
    const foreign = await cloud.post(listeners, { ...body, protocol: 'HTTP', default_pool_id: elsewhere });
    expect([foreign.status, paths(foreign)]).toEqual([400, ['default_pool_id']]);
    const cookies = await aPool({
      load_balancer_id: balancer,
      protocol: 'HTTPS',
      session_persistence: { type: 'HTTP_COOKIE' },
    });
    for (const protocol of ['HTTPS', 'TCP', 'UDP', 'PROMETHEUS']) {
      const unfit = await cloud.post(listeners, { ...body, protocol, default_pool_id: cookies });
      expect([protocol, unfit.status, paths(unfit)]).toEqual([protocol, 400, ['default_pool_id']]);
    }
    await aListener(balancer, { protocol: 'HTTP', default_pool_id: cookies });
  });
});

describe('updating a listener is rejected for', () => {
  it.each([
    ...both,
    ['another protocol or port', { protocol: 'TCP', protocol_port: 1 }, ['protocol', 'protocol_port']],
    ['another default pool', { default_pool_id: unknownId }, ['default_pool_id']],
    ['headers, which cannot change', { insert_x_forwarded: true }, ['insert_x_forwarded']],
    ['an empty certificate', { secret_id: '' }, ['secret_id']],
  ] as [string, object, string[]][])('%s', async (_name, changes, fields) => {
    const before = [await counts(), (await getListener(listener))['name']];
    const answer = await cloud.patch(v2(`${listeners}/${listener}`), changes);
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(paths(answer))).toEqual(new Set(fields));
    expect([await counts(), (await getListener(listener))['name']]).toEqual(before);
  });
});

describe('values at the bounds are accepted:', () => {
  it.each<[string, object]>([
    ['names', { name: 'a'.repeat(63) }],
    ['timeouts', { timeout_client_data: 86_400_000, timeout_member_connect: 0, timeout_member_data: 1 }],
    ['a limit of 0', { connection_limit: 0 }],
    ['a limit of a million', { connection_limit: 1_000_000 }],
    ['no clients', { allowed_cidrs: [] }],
    ['a hundred networks', { allowed_cidrs: Array.from({ length: 100 }, (_, n) => `10.0.${n}.0/24`) }],
    ['all clients', { allowed_cidrs: ['0.0.0.0/0', '::/0'] }],
    ['three users', { user_list: ['abc', 'a b', 'x'.repeat(32)].map((name) => withUser(name).user_list[0]!) }],
    ...[
      `$1$$${'a'.repeat(22)}`,
      `$5$salt$${'/'.repeat(43)}`,
      `$6$rounds=5000$salt$${'.'.repeat(86)}`,
      `$2y$06$${'a'.repeat(53)}`,
    ].map((text): [string, object] => [`the hash ${text.slice(0, 20)}`, password(text)]),
  ])('%s', async (_name, body) => {
    expect(await getListener(await aListener(balancer, body))).toMatchObject(body);
    const plain = await aListener(balancer);
    await cloud.ended(await cloud.patch(v2(`${listeners}/${plain}`), body));
    expect(await getListener(plain)).toMatchObject(body);
  });

  it.each([1, 65_535])('port %i', async (port) => {
    const id = await aListener(await aBalancer(), { protocol_port: port });
    expect(await getListener(id)).toMatchObject({ protocol_port: port });
  });

  it('invalid ids are 400, and unknown ids 404', async () => {
    expect((await cloud.get(`${listeners}/x`)).status).toBe(400);
    for (const path of [`${listeners}/${unknownId}`, `/cloud/v1/lblisteners/1/999/${listener}`]) {
      expect((await cloud.get(path)).status).toBe(404);
      expect((await cloud.patch(path, { name: 'other' })).status).toBe(404);
      expect((await cloud.patch(v2(path), {})).status).toBe(404);
      expect((await cloud.delete(path)).status).toBe(404);
    }
  });
});

describe('listeners in the create of a load balancer', () => {
  const web = { name: 'web', protocol: 'HTTP', protocol_port: 80 };
  const pool = { name: 'pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };

  it('are created by one task that names all of them in order', async () => {
    const own = unknownId.replaceAll('1', 'a');
    const requested = knownSecrets(cloud, { [own]: 'certificate' });
    const names = ['one', 'two', 'three', 'four'];
    const body = {
      name: 'with parts',
      listeners: [
        ...names.map((name, n) => ({ ...web, name, protocol_port: 80 + n })),
        {
          ...web,
          name: 'tls',
          protocol: 'TERMINATED_HTTPS',
          protocol_port: 443,
          secret_id: own,
          pools: [{ ...pool, members: [member(2), member(1)], healthmonitor: monitor() }],
        },
        { ...web, name: 'dns', protocol: 'UDP', protocol_port: 80, pools: [{ ...pool, protocol: 'UDP' }] },
      ],
    };
    const task = await cloud.ended(await cloud.post(balancers, body));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_loadbalancer' });
    const made = task.body.created_resources;
    expect([made.listeners.length, made.pools.length, made.members.length, made.healthmonitors.length]).toEqual([
      6, 2, 2, 1,
    ]);
    const listed = (await cloud.get(`${listeners}?load_balancer_id=${made.loadbalancers[0]}`)).body.results;
    expect(listed.map((l: { name: string }) => l.name)).toEqual([...names, 'tls', 'dns']);
    expect(listed.map((l: { id: string }) => l.id)).toEqual(made.listeners);
    expect(listed[4]).toMatchObject({
      secret_id: own,
      pool_count: 1,
      creator_task_id: task.body.id,
      provisioning_status: 'ACTIVE',
    });
    expect(await getPool(made.pools[0])).toMatchObject({
      listeners: [{ id: made.listeners[4] }],
      members: [
        { ...member(2), id: made.members[0] },
        { ...member(1), id: made.members[1] },
      ],
      healthmonitor: { id: made.healthmonitors[0] },
    });
    expect(requested.map(({ path }) => path)).toEqual(['listeners.4.secret_id']);
  });

  it.each<[string, object[], string[]]>([
    ['a duplicate port', [web, { ...web, protocol: 'TCP' }], ['listeners.1.protocol_port']],
    ['two pools', [{ ...web, pools: [pool, pool] }], ['listeners.0.pools']],
    [
      'an incompatible pool',
      [web, { ...web, protocol_port: 81, pools: [{ ...pool, protocol: 'UDP' }] }],
      ['listeners.1.pools.0.protocol'],
    ],
    [
      'a pool of a PROMETHEUS listener',
      [{ ...web, protocol: 'PROMETHEUS', pools: [pool] }],
      ['listeners.0.pools.0.protocol'],
    ],
    ['no certificate', [{ ...web, protocol: 'TERMINATED_HTTPS' }], ['listeners.0.secret_id']],
    [
      'an invalid address',
      [{ ...web, pools: [{ ...pool, members: [member(1), member(2, { address: 'x' })] }] }],
      ['listeners.0.pools.0.members.1.address'],
    ],
    [
      'an unusable address',
      [{ ...web, pools: [{ ...pool, members: [member(1), member(2, { address: '::' })] }] }],
      ['listeners.0.pools.0.members.1.address'],
    ],
    [
      'a duplicate member',
      [{ ...web, pools: [{ ...pool, members: [member(1), member(1)] }] }],
      ['listeners.0.pools.0.members.1'],
    ],
    [
      'an invalid monitor',
      [{ ...web, pools: [{ ...pool, healthmonitor: monitor({ delay: 1 }) }] }],
      ['listeners.0.pools.0.healthmonitor.timeout'],
    ],
    ['an invalid hash', [{ ...web, ...password('x') }], ['listeners.0.user_list.0.encrypted_password']],
    ['a default pool', [{ ...web, default_pool_id: unknownId }], ['listeners.0.default_pool_id']],
    [
      'unknown secrets and subnets',
      [
        {
          ...web,
          protocol: 'TERMINATED_HTTPS',
          secret_id: unknownId,
          sni_secret_id: [unknownId],
          pools: [{ ...pool, protocol: 'HTTPS', ca_secret_id: unknownId }],
        },
        { ...web, protocol_port: 81, pools: [{ ...pool, members: [member(1, { subnet_id: unknownId })] }] },
      ],
      [
        'listeners.0.secret_id',
        'listeners.0.sni_secret_id.0',
        'listeners.0.pools.0.ca_secret_id',
        'listeners.1.pools.0.members.0.subnet_id',
      ],
    ],
    ['52 listeners', Array.from({ length: 52 }, (_, n) => ({ ...web, protocol_port: n + 1 })), ['listeners']],
  ])('are rejected for %s, and nothing is created', async (_name, list, fields) => {
    knownSecrets(cloud, {});
    const before = await counts();
    const answer = await cloud.post(balancers, { name: 'with parts', listeners: list });
    expect([answer.status, paths(answer).sort()]).toEqual([400, [...fields].sort()]);
    expect(await counts()).toEqual(before);
  });
});
