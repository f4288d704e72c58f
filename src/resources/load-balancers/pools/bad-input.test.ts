/** Invalid requests name all invalid fields at once and change nothing. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { builders, member, monitor, paths, pools, unknownId, v2 } from '../test-balancers.ts';

const cloud = useCloudyard();
const { aBalancer, aPool, counts, getPool } = builders(cloud);
const valid = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
const members = (...list: object[]) => ({ members: list });
const withMonitor = (more: object = {}) => ({ healthmonitor: monitor(more) });
const persistence = (session_persistence: object) => ({ session_persistence });

let balancer: string;
/** A pool for rejected updates: HTTP, with an HTTP monitor. */
let pool: string;
beforeAll(async () => {
  balancer = await aBalancer();
  pool = await aPool({ load_balancer_id: balancer, ...withMonitor({ type: 'HTTP', url_path: '/' }) });
});

/** Cases that both a create and an update reject: a title, the invalid fields, and their paths. */
const both: [string, object, string[]][] = [
  ['a name too short', { name: 'ab' }, ['name']],
  ['a name too long', { name: 'a'.repeat(64) }, ['name']],
  ['a name that ends in a space', { name: 'abc ' }, ['name']],
  ['a name with odd characters', { name: 'a;b\nc' }, ['name']],
  ['a null name', { name: null }, ['name']],
  ['an unknown protocol', { protocol: 'SCTP' }, ['protocol']],
  ['an unknown algorithm', { lb_algorithm: 'RANDOM' }, ['lb_algorithm']],
  ['an unknown field', { colour: 'red' }, ['colour']],
  ['an invalid secret id', { protocol: 'HTTPS', secret_id: 'x' }, ['secret_id']],
  ['an unknown secret', { protocol: 'HTTPS', ca_secret_id: unknownId }, ['ca_secret_id']],
  ...['timeout_client_data', 'timeout_member_connect', 'timeout_member_data'].flatMap((field) =>
    [-1, 86_400_001, 1.5, '1000', 1e12].map((n): [string, object, string[]] => [
      `${field} ${JSON.stringify(n)}`,
      { [field]: n },
      [field],
    ]),
  ),
  ...[0, 257, -1, 1.5, '1'].map((weight): [string, object, string[]] => [
    `weight ${JSON.stringify(weight)}`,
    members(member(1), member(2, { weight })),
    ['members.1.weight'],
  ]),
  ...[0, 65_536, -1, '80', null].map((port): [string, object, string[]] => [
    `port ${JSON.stringify(port)}`,
    members(member(1, { protocol_port: port })),
    ['members.0.protocol_port'],
  ]),
  ['a monitor port 0', members(member(1, { monitor_port: 0 })), ['members.0.monitor_port']],
  ['a monitor port 65536', members(member(1, { monitor_port: 65_536 })), ['members.0.monitor_port']],
  ...['1.2.3', '1.2.3.4/32', 'localhost', '01.2.3.4', '1.2.3.256', 'fe80::1%eth0', ''].map(
    (address): [string, object, string[]] => [
      `the invalid address ${JSON.stringify(address)}`,
      members(member(1, { address })),
      ['members.0.address'],
    ],
  ),
  ...['0.0.0.0', '::', '224.0.0.1', 'ff02::1', '255.255.255.255', '::ffff:0.0.0.0'].map(
    (address): [string, object, string[]] => [
      `the unusable address ${address}`,
      members(member(1, { address, monitor_address: address })),
      ['members.0.address', 'members.0.monitor_address'],
    ],
  ),
  ['a member without address and port', members({}), ['members.0.address', 'members.0.protocol_port']],
  ['a duplicate member', members(member(1), member(2), member(1, { weight: 3 })), ['members.2']],
  [
    'a duplicate member in another spelling',
    members({ address: '::1', protocol_port: 1 }, { address: '0::0:1', protocol_port: 1 }),
    ['members.1'],
  ],
  [
    'a duplicate member with an IPv4-mapped address',
    members({ address: '10.0.0.1', protocol_port: 1 }, { address: '::ffff:10.0.0.1', protocol_port: 1 }),
    ['members.1'],
  ],
  ['1,001 members', { members: Array.from({ length: 1001 }, (_, n) => member(n)) }, ['members']],
  ['an unknown subnet', members(member(1), member(2, { subnet_id: unknownId })), ['members.1.subnet_id']],
  ['an invalid subnet id', members(member(1, { subnet_id: 'x' })), ['members.0.subnet_id']],
  ['an invalid instance id', members(member(1, { instance_id: 'x' })), ['members.0.instance_id']],
  ['an unknown field of a member', members(member(1, { colour: 'red' })), ['members.0.colour']],

  ['a monitor of an unknown type', withMonitor({ type: 'SCTP' }), ['healthmonitor.type']],
  ['a timeout above the delay', withMonitor({ delay: 5, timeout: 6 }), ['healthmonitor.timeout']],
  ['a delay of 0', withMonitor({ delay: 0 }), ['healthmonitor.delay']],
  ['a delay too long', withMonitor({ delay: 2_147_483_648 }), ['healthmonitor.delay']],
  ['a timeout of 0', withMonitor({ timeout: 0 }), ['healthmonitor.timeout']],
  ['a timeout too long', withMonitor({ delay: 3_000_000, timeout: 2_147_484 }), ['healthmonitor.timeout']],
  ...[0, 11].flatMap((n): [string, object, string[]][] => [
    [`${n} retries`, withMonitor({ max_retries: n }), ['healthmonitor.max_retries']],
    [`${n} retries down`, withMonitor({ max_retries_down: n }), ['healthmonitor.max_retries_down']],
  ]),
  [
    'a monitor with only a type',
    { healthmonitor: { type: 'TCP' } },
    ['healthmonitor.delay', 'healthmonitor.max_retries', 'healthmonitor.timeout'],
  ],
  ['a UDP monitor of a HTTP pool', withMonitor({ type: 'UDP-CONNECT' }), ['healthmonitor.type']],
  ['a UDP monitor of a TCP pool', { protocol: 'TCP', ...withMonitor({ type: 'UDP-CONNECT' }) }, ['healthmonitor.type']],
  ...['HTTP', 'HTTPS', 'K8S', 'TCP', 'TLS-HELLO'].map((type): [string, object, string[]] => [
    `a ${type} monitor of a UDP pool`,
    { protocol: 'UDP', ...withMonitor({ type }) },
    ['healthmonitor.type'],
  ]),
  ...['TCP', 'PING', 'TLS-HELLO'].map((type): [string, object, string[]] => [
    `HTTP fields of a ${type} monitor`,
    withMonitor({
      type,
      http_method: 'HEAD',
      url_path: '/a',
      expected_codes: '204',
      domain_name: 'a.example',
      http_version: '1.0',
    }),
    ['http_method', 'url_path', 'expected_codes', 'domain_name', 'http_version'].map(
      (field) => `healthmonitor.${field}`,
    ),
  ]),
  ...[
    '',
    '20',
    '2000',
    '99',
    '600',
    '200,',
    '200, 204',
    '200-',
    '299-200',
    '200-204-299',
    '200,299-200',
    '200,300-',
    'all',
  ].map((expected_codes): [string, object, string[]] => [
    `codes ${JSON.stringify(expected_codes)}`,
    withMonitor({ type: 'HTTP', expected_codes }),
    ['healthmonitor.expected_codes'],
  ]),
  ...['', 'healthz', '//', '/a?b', '/a#b', '/%20', '/a b', '/a\nb', '/é', `/${'a'.repeat(255)}`].map(
    (url_path): [string, object, string[]] => [
      `the path ${JSON.stringify(url_path).slice(0, 20)}`,
      withMonitor({ type: 'HTTP', url_path }),
      ['healthmonitor.url_path'],
    ],
  ),
  ['an unknown method', withMonitor({ type: 'HTTP', http_method: 'BREW' }), ['healthmonitor.http_method']],
  ['HTTP/2', withMonitor({ type: 'HTTP', http_version: '2.0' }), ['healthmonitor.http_version']],
  ['a host with a space', withMonitor({ type: 'HTTP', domain_name: 'a b' }), ['healthmonitor.domain_name']],

  [
    'a cookie name with SOURCE_IP',
    persistence({ type: 'SOURCE_IP', cookie_name: 'session' }),
    ['session_persistence.cookie_name'],
  ],
  ['APP_COOKIE without a name', persistence({ type: 'APP_COOKIE' }), ['session_persistence.cookie_name']],
  [
    'a cookie name too short',
    persistence({ type: 'APP_COOKIE', cookie_name: 'ab' }),
    ['session_persistence.cookie_name'],
  ],
  [
    'a cookie name with a space',
    persistence({ type: 'HTTP_COOKIE', cookie_name: 'my cookie' }),
    ['session_persistence.cookie_name'],
  ],
  ['persistence without a type', persistence({}), ['session_persistence.type']],
  ...['TCP', 'PROXY', 'PROXYV2', 'UDP'].flatMap((protocol): [string, object, string[]][] => [
    [
      `HTTP_COOKIE on a ${protocol} pool`,
      { protocol, healthmonitor: null, ...persistence({ type: 'HTTP_COOKIE' }) },
      ['session_persistence.type'],
    ],
    [
      `APP_COOKIE on a ${protocol} pool`,
      { protocol, healthmonitor: null, ...persistence({ type: 'APP_COOKIE', cookie_name: 'session' }) },
      ['session_persistence.type'],
    ],
  ]),
  [
    'a netmask for cookies',
    persistence({ type: 'HTTP_COOKIE', persistence_granularity: '255.255.255.0' }),
    ['session_persistence.persistence_granularity'],
  ],
  ...['255.0.255.0', '24', '/24', '10.0.0.1', '0.0.0.0', 'ffff::', 'mask', ''].map(
    (persistence_granularity): [string, object, string[]] => [
      `the netmask ${JSON.stringify(persistence_granularity)}`,
      { protocol: 'UDP', healthmonitor: null, ...persistence({ type: 'SOURCE_IP', persistence_granularity }) },
      ['session_persistence.persistence_granularity'],
    ],
  ),
  ...[-1, 2_147_484].map((persistence_timeout): [string, object, string[]] => [
    `a persistence of ${persistence_timeout} s`,
    persistence({ type: 'SOURCE_IP', persistence_timeout }),
    ['session_persistence.persistence_timeout'],
  ]),
  [
    'a persistence timeout for cookies',
    persistence({ type: 'HTTP_COOKIE', persistence_timeout: 1 }),
    ['session_persistence.persistence_timeout'],
  ],
  [
    'a timeout and a netmask of an HTTP pool',
    persistence({ type: 'SOURCE_IP', persistence_timeout: 5, persistence_granularity: '255.255.0.0' }),
    ['session_persistence.persistence_timeout', 'session_persistence.persistence_granularity'],
  ],
  [
    'a backup member of a UDP pool with SOURCE_IP',
    {
      protocol: 'UDP',
      healthmonitor: null,
      lb_algorithm: 'SOURCE_IP',
      ...members(member(1), member(2, { backup: true })),
    },
    ['members.1.backup'],
  ],
  [
    'certificates on a HTTP pool',
    { ca_secret_id: unknownId, crl_secret_id: unknownId, secret_id: unknownId },
    ['ca_secret_id', 'crl_secret_id', 'secret_id'],
  ],
  ['a revocation list without a CA', { protocol: 'HTTPS', crl_secret_id: unknownId }, ['crl_secret_id']],
  [
    'all invalid fields at once',
    { name: '', timeout_member_data: -1, members: [member(1, { weight: 0 })], healthmonitor: { type: 'x' }, no: 1 },
    [
      'name',
      'timeout_member_data',
      'members.0.weight',
      'healthmonitor.type',
      'healthmonitor.delay',
      'healthmonitor.max_retries',
      'healthmonitor.timeout',
      'no',
    ],
  ],
  [
    'all violated rules at once',
    {
      protocol: 'TCP',
      ca_secret_id: unknownId,
      ...members(member(1), member(1), member(3, { subnet_id: unknownId })),
      ...withMonitor({ delay: 1, url_path: '/a' }),
      ...persistence({ type: 'HTTP_COOKIE' }),
    },
    [
      'ca_secret_id',
      'members.1',
      'members.2.subnet_id',
      'healthmonitor.timeout',
      'healthmonitor.url_path',
      'session_persistence.type',
    ],
  ],
];

describe('creating a pool is rejected for', () => {
  it.each([
    ...both,
    ['no name', { name: undefined }, ['name']],
    ['no protocol', { protocol: undefined }, ['protocol']],
    ['no algorithm', { lb_algorithm: undefined }, ['lb_algorithm']],
    ['null members', { members: null }, ['members']],
    ['a monitor without a type', { healthmonitor: monitor({ type: undefined }) }, ['healthmonitor.type']],
    ['no target', { load_balancer_id: undefined }, ['load_balancer_id']],
    ['null targets', { load_balancer_id: null, listener_id: null }, ['load_balancer_id']],
    ['an unknown load balancer', { load_balancer_id: unknownId }, ['load_balancer_id']],
    [
      'an unknown load balancer in the other spelling',
      { load_balancer_id: undefined, loadbalancer_id: unknownId },
      ['loadbalancer_id'],
    ],
    ['two load balancers', { loadbalancer_id: unknownId }, ['loadbalancer_id']],
    ['an unknown listener', { listener_id: unknownId }, ['listener_id']],
    ['an invalid target id', { listener_id: 'x', load_balancer_id: 'y' }, ['listener_id', 'load_balancer_id']],
  ] as [string, object, string[]][])('%s', async (_name, changes, fields) => {
    const before = await counts();
    const answer = await cloud.post(pools, { ...valid, load_balancer_id: balancer, ...changes });
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(new Set(paths(answer))).toEqual(new Set(fields));
    expect(await counts()).toEqual(before);
  });
});

describe('updating a pool is rejected for', () => {
  it.each(both)('%s', async (_name, changes, fields) => {
    const before = [await counts(), { ...(await getPool(pool)), operating_status: null }];
    for (const path of [v2(`${pools}/${pool}`), `${pools}/${pool}`]) {
      const answer = await cloud.patch(path, changes);
      expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
      expect(new Set(paths(answer).filter((path) => fields.includes(path)))).toEqual(new Set(fields));
      // The current monitor may conflict with the request as well.
      expect(paths(answer).filter((path) => !fields.includes(path) && !path.startsWith('healthmonitor.'))).toEqual([]);
    }
    expect([await counts(), { ...(await getPool(pool)), operating_status: null }]).toEqual(before);
  });

  it('a monitor without a type in a pool without a monitor', async () => {
    const id = await aPool({ load_balancer_id: balancer });
    const answer = await cloud.patch(v2(`${pools}/${id}`), { healthmonitor: { delay: 5, timeout: 5, max_retries: 1 } });
    expect([answer.status, paths(answer)]).toEqual([400, ['healthmonitor.type']]);
  });

  it('a protocol that conflicts with the pool', async () => {
    const id = await aPool({ load_balancer_id: balancer, ...persistence({ type: 'HTTP_COOKIE' }) });
    const answer = await cloud.patch(v2(`${pools}/${id}`), { protocol: 'TCP' });
    expect([answer.status, paths(answer)]).toEqual([400, ['session_persistence.type']]);
  });

  it('a target, which cannot change', async () => {
    const answer = await cloud.patch(v2(`${pools}/${pool}`), { listener_id: unknownId, load_balancer_id: balancer });
    expect([answer.status, paths(answer).sort()]).toEqual([400, ['listener_id', 'load_balancer_id']]);
  });
});

describe('creating a member or monitor is rejected for', () => {
  it.each<[string, object, string[]]>([
    ['weight 0', member(1, { weight: 0 }), ['weight']],
    ['weight 257', member(1, { weight: 257 }), ['weight']],
    ['port 0', member(1, { protocol_port: 0 }), ['protocol_port']],
    ['port 65536', member(1, { protocol_port: 65_536 }), ['protocol_port']],
    ['an invalid address', member(1, { address: 'x' }), ['address']],
    ['an unusable address', member(1, { address: '0.0.0.0' }), ['address']],
    ['an unknown subnet', member(1, { subnet_id: unknownId }), ['subnet_id']],
    ['an unknown field', member(1, { colour: 'red' }), ['colour']],
  ])('%s', async (_name, body, fields) => {
    const before = await counts();
    const answer = await cloud.post(`${pools}/${pool}/member`, body);
    expect([answer.status, paths(answer)]).toEqual([400, fields]);
    expect(await counts()).toEqual(before);
  });

  it.each<[string, object, string[]]>([
    ['a timeout above the delay', monitor({ delay: 1 }), ['timeout']],
    ['a timeout equal to the delay', monitor({ delay: 5, timeout: 5 }), ['timeout']],
    ['no type', monitor({ type: undefined }), ['type']],
    ['a UDP check of HTTP members', monitor({ type: 'UDP-CONNECT' }), ['type']],
    ['a path of a TCP check', monitor({ url_path: '/a' }), ['url_path']],
    ['invalid codes', monitor({ type: 'HTTP', expected_codes: 'x' }), ['expected_codes']],
  ])('%s', async (_name, body, fields) => {
    const before = await counts();
    const answer = await cloud.post(`${pools}/${pool}/healthmonitor`, body);
    expect([answer.status, paths(answer)]).toEqual([400, fields]);
    expect(await counts()).toEqual(before);
  });

  it('invalid and unknown ids', async () => {
    expect((await cloud.get(`${pools}/x`)).status).toBe(400);
    expect((await cloud.delete(`${pools}/${pool}/member/x`)).status).toBe(400);
    for (const path of [`${pools}/${unknownId}`, `/cloud/v1/lbpools/1/999/${pool}`]) {
      expect((await cloud.get(path)).status).toBe(404);
      expect((await cloud.patch(v2(path), {})).status).toBe(404);
      expect((await cloud.delete(path)).status).toBe(404);
      expect((await cloud.post(`${path}/member`, member(1))).status).toBe(404);
      expect((await cloud.delete(`${path}/healthmonitor`)).status).toBe(404);
    }
  });
});
