/** A refused create names every error that the rules find: those of its fields, and what it refers to that does not exist. */
import { expect, it } from 'vitest';
import { useCloudyard } from './harness.ts';

const cloud = useCloudyard({ driver: null });
const unknown = '11111111-1111-4111-8111-111111111111';
const member = { address: '10.0.0.1', protocol_port: 80, subnet_id: unknown };
const pool = { name: 'pages', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', ca_secret_id: unknown, members: [member] };
const listener = { name: 'web', protocol: 'TERMINATED_HTTPS', protocol_port: 443, secret_id: unknown, pools: [pool] };
const schedules = [{ type: 'cron', hour: '25' }, { type: 'interval' }];
const policy = { name: 'nightly', action: 'volume_snapshot', schedules, volume_ids: [unknown] };
const policyPaths = ['schedules.0.hour', 'schedules.1', 'volume_ids.0'];

it.each<[string, string, object, string[]]>([
  [
    'a file share',
    '/cloud/v1/file_shares/1/1',
    {
      ...{ name: 'share', protocol: 'NFS', size: 1, share_settings: { path_length: 'LCD' } },
      access: ['10.0.0.1', '10.0.0.1/32'].map((ip_address) => ({ access_mode: 'rw', ip_address })),
      network: { network_id: unknown },
    },
    ['access.1.ip_address', 'network.network_id', 'share_settings.path_length'],
  ],
  [
    'a volume from a snapshot',
    '/cloud/v1/volumes/1/1',
    {
      ...{ name: 'volume', source: 'snapshot', snapshot_id: unknown, lifecycle_policy_ids: [77] },
      instance_id_to_attach_to: unknown,
    },
    ['instance_id_to_attach_to', 'lifecycle_policy_ids.0', 'snapshot_id'],
  ],
  [
    'a volume from an image',
    '/cloud/v1/volumes/1/1',
    { name: 'volume', source: 'image', image_id: unknown, size: 1, lifecycle_policy_ids: [77] },
    ['lifecycle_policy_ids.0', 'source'],
  ],
  ['a lifecycle policy', '/cloud/v1/lifecycle_policy/1/1', policy, policyPaths],
  [
    'the estimate of a lifecycle policy',
    '/cloud/v1/lifecycle_policy/1/1/estimate_max_policy_usage',
    policy,
    policyPaths,
  ],
  [
    'the price of a lifecycle policy',
    '/cloud/v2/pricing/1/1/lifecycle_policy',
    { schedules, volume_ids: [unknown] },
    policyPaths,
  ],
  [
    'a load balancer',
    '/cloud/v1/loadbalancers/1/1',
    { name: 'balancer', flavor: 'none', vip_network_id: unknown, listeners: [listener] },
    [
      'flavor',
      'listeners.0.pools.0.ca_secret_id',
      'listeners.0.pools.0.members.0.subnet_id',
      'listeners.0.secret_id',
      'vip_network_id',
    ],
  ],
  [
    'an L7 policy',
    '/cloud/v1/l7policies/1/1',
    { action: 'REDIRECT_TO_POOL', listener_id: unknown, redirect_pool_id: unknown, redirect_url: 'x' },
    ['listener_id', 'redirect_pool_id', 'redirect_url'],
  ],
])('the errors of %s', async (_name, path, body, fields) => {
  const { status, body: refused } = await cloud.post(path, body);
  expect(status).toBe(400);
  const paths = new Set<string>(refused.errors.map((error: { path: string }) => error.path));
  expect([...paths].sort()).toEqual(fields);
});

const member80 = { address: '10.0.0.1', protocol_port: 80 };
const monitor = { type: 'HTTP', delay: 5, timeout: 5, max_retries: 11, expected_codes: '99', url_path: 'x' };

it.each<[string, string, object, string[]]>([
  [
    'no field of a listener',
    '/cloud/v1/lblisteners/1/1',
    {},
    ['load_balancer_id', 'name', 'protocol', 'protocol_port'],
  ],
  [
    'a listener with invalid fields and fields that do not fit together',
    '/cloud/v1/lblisteners/1/1',
    {
      ...{ name: 'x', protocol: 'TERMINATED_HTTPS', protocol_port: 0, loadbalancer_id: unknown },
      user_list: [{ username: 'admin', encrypted_password: 'plain' }],
    },
    ['name', 'protocol_port', 'secret_id', 'user_list.0.encrypted_password'],
  ],
  ['no field of a pool', '/cloud/v1/lbpools/1/1', {}, ['lb_algorithm', 'load_balancer_id', 'name', 'protocol']],
  [
    'a pool with an invalid monitor and a member twice',
    '/cloud/v1/lbpools/1/1',
    {
      ...{ name: 'pages', protocol: 'HTTP', lb_algorithm: 'X', listener_id: unknown, healthmonitor: monitor },
      ...{ members: [member80, member80], session_persistence: { type: 'APP_COOKIE' }, ca_secret_id: unknown },
    },
    [
      ...['ca_secret_id', 'healthmonitor.expected_codes', 'healthmonitor.max_retries', 'healthmonitor.timeout'],
      ...['healthmonitor.url_path', 'lb_algorithm', 'members.1', 'session_persistence.cookie_name'],
    ],
  ],
  ...['load_balancer_id', 'loadbalancer_id'].map((field): [string, string, object, string[]] => [
    `a listener with an invalid ${field}`,
    '/cloud/v1/lblisteners/1/1',
    { name: 'web', protocol: 'HTTP', protocol_port: 80, [field]: 'x' },
    [field],
  ]),
  ...['listener_id', 'load_balancer_id', 'loadbalancer_id'].map((field): [string, string, object, string[]] => [
    `a pool with an invalid ${field}`,
    '/cloud/v1/lbpools/1/1',
    { name: 'pages', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', [field]: '' },
    [field],
  ]),
  [
    'a revocation list of an invalid CA',
    '/cloud/v1/lbpools/1/1',
    {
      ...{ name: 'pages', protocol: 'HTTPS', lb_algorithm: 'ROUND_ROBIN', load_balancer_id: unknown },
      ...{ ca_secret_id: 'x', crl_secret_id: unknown },
    },
    ['ca_secret_id'],
  ],
  [
    'a health monitor',
    `/cloud/v1/lbpools/1/1/${unknown}/healthmonitor`,
    { type: 'UDP-CONNECT', delay: 5, timeout: 5, max_retries: 11, url_path: '/x' },
    ['max_retries', 'timeout', 'url_path'],
  ],
  [
    'a load balancer with a listener and a pool',
    '/cloud/v1/loadbalancers/1/1',
    {
      ...{ name: 'x', nmae: 'y' },
      listeners: [
        {
          ...{ name: 'web', protocol: 'TERMINATED_HTTPS', protocol_port: 443 },
          pools: [{ ...pool, protocol: 'TCP', healthmonitor: { ...monitor, type: 'X' }, members: [{ address: 'x' }] }],
        },
      ],
    },
    [
      ...['expected_codes', 'max_retries', 'timeout', 'type', 'url_path'].map(
        (field) => `listeners.0.pools.0.healthmonitor.${field}`,
      ),
      ...['address', 'protocol_port'].map((field) => `listeners.0.pools.0.members.0.${field}`),
      ...['listeners.0.pools.0.ca_secret_id', 'listeners.0.pools.0.protocol', 'listeners.0.secret_id', 'name', 'nmae'],
    ],
  ],
  [
    'a lifecycle policy',
    '/cloud/v1/lifecycle_policy/1/1?need_volumes=maybe',
    {
      ...{ name: 5, action: 'volume_snapshot', volume_ids: ['x'] },
      schedules: [
        { type: 'cron', hour: '25', minute: 0, timezone: 'Mars/Phobos', max_quantity: 0 },
        { type: 'interval', hours: -1 },
        { hours: 1 },
        { type: 'interval', weeks: 0, resource_name_template: '{x}', retention_time: {} },
      ],
    },
    [
      ...['name', 'need_volumes', 'schedules.0.hour', 'schedules.0.max_quantity', 'schedules.0.minute'],
      ...['schedules.0.timezone', 'schedules.1.hours', 'schedules.2.type', 'schedules.3'],
      ...['schedules.3.resource_name_template', 'schedules.3.retention_time', 'volume_ids.0'],
    ],
  ],
  [
    'a file share',
    '/cloud/v1/file_shares/1/1',
    {
      ...{ name: 'x', protocol: 'NFS', size: 1, network: {}, share_settings: { path_length: 'LCD' } },
      access: ['10.0.0.1', '10.0.0.1/32'].map((ip_address) => ({ access_mode: 'rw', ip_address })),
    },
    ['access.1.ip_address', 'name', 'network.network_id', 'share_settings.path_length'],
  ],
  [
    'a pull secret',
    '/cloud/v1/caas/secrets/1/1',
    { name: 'a b', login: 'l', password: 'p\n', registry: 'me:pw@host' },
    ['name', 'password', 'registry'],
  ],
  [
    'an L7 policy',
    '/cloud/v1/l7policies/1/1',
    { action: 'REDIRECT_TO_URL', listener_id: 'x', redirect_prefix: 'https://example.com', name: '-' },
    ['listener_id', 'name', 'redirect_prefix', 'redirect_url'],
  ],
  [
    'an L7 rule',
    `/cloud/v1/l7policies/1/1/${unknown}/rules`,
    { type: 'HEADER', compare_type: 'EQUAL_TO', value: 'x', invert: 1 },
    ['invert', 'key'],
  ],
  [
    'a subnet',
    '/cloud/v1/subnets/1/1',
    { name: 'x', network_id: unknown, cidr: '10.0.0.0/24', gateway_ip: '10.1.0.1', ip_version: 6, host_routes: [{}] },
    ['gateway_ip', 'host_routes.0.destination', 'host_routes.0.nexthop', 'ip_version', 'name'],
  ],
  [
    'an API key',
    '/cloud/v1/caas/keys/1/1',
    { name: 'A', containers: [], expire: '2000-01-01T00:00:00Z' },
    ['expire', 'name'],
  ],
  [
    'a quota request',
    '/cloud/v2/limits_request',
    { requested_limits: { regional_limits: [{ volume_count_limit: 5 }, { region_id: 77, sfs_count_limit: 'x' }] } },
    [
      ...['description', 'requested_limits.regional_limits.0.region_id'],
      ...['requested_limits.regional_limits.1.region_id', 'requested_limits.regional_limits.1.sfs_count_limit'],
    ],
  ],
  [
    'a path and a body',
    '/cloud/v1/registries/x/1?nmae=x',
    { storage_limit: 0 },
    ['name', 'nmae', 'project_id', 'storage_limit'],
  ],
])('the errors of invalid fields and of rules together: %s', async (_name, path, body, fields) => {
  const { status, body: refused } = await cloud.post(path, body);
  expect(status).toBe(400);
  const paths = new Set<string>(refused.errors.map((error: { path: string }) => error.path));
  expect([...paths].sort()).toEqual([...fields].sort());
});
