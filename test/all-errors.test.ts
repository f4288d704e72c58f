/** A refused create names every fault that the rules find: those of its fields, and what it refers to that does not exist. */
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
    { action: 'REDIRECT_TO_POOL', listener_id: unknown, redirect_pool_id: unknown },
    ['listener_id', 'redirect_pool_id'],
  ],
])('the errors of %s', async (_name, path, body, fields) => {
  const { status, body: refused } = await cloud.post(path, body);
  expect(status).toBe(400);
  const paths = new Set<string>(refused.errors.map((error: { path: string }) => error.path));
  expect([...paths].sort()).toEqual(fields);
});
