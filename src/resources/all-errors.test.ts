/**
 * One response names the fields that their schema rejects together with those that break a rule of the request alone. An
 * invalid request reaches no resource, so none needs to exist. For load balancers: load-balancers/all-errors.test.ts.
 */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({
  audit: false,
  driver: null,
  configuration: (shipped) => ({
    ...shipped,
    regions: shipped.regions.map((region) => ({
      ...region,
      file_share_types: ['standard' as const],
      volume_types: ['standard' as const],
    })),
  }),
});

type Method = 'POST' | 'PATCH' | 'PUT';
type Case = [method: Method, path: string, body: unknown, fields: string[]];

const id = '11111111-1111-4111-8111-111111111111';
const of = (resource: string, version = 'v1') => `/cloud/${version}/${resource}/1/1`;
const reserved = { 'cloudyard:a': '1' };
const past = '2001-01-01T00:00:00Z';
const web = { name: 'web', namespace: 'default' };

const withTags = (resource: string, versions: string[]): Case[] => [
  ['POST', of(resource), { name: 'x', tags: reserved }, ['name', 'tags.cloudyard:a']],
  ['POST', of(resource), { name: 'x', metadata: reserved }, ['metadata.cloudyard:a', 'name']],
  ...versions.map((version): Case => {
    const body = { name: 'x', tags: { ...reserved, created_by_policy: '1', a: null } };
    const fields = ['name', 'tags.cloudyard:a', 'tags.created_by_policy'];
    return ['PATCH', `${of(resource, version)}/${id}`, body, fields];
  }),
  ...(['POST', 'PUT'] as const).map((method): Case => {
    return [method, `${of(resource)}/${id}/metadata`, { 'cloudyard:x': '1', 'a b': '2' }, ['a b', 'cloudyard:x']];
  }),
];

const cases: Case[] = [
  ...withTags('file_shares', ['v1', 'v3']),
  ...withTags('networks', ['v1', 'v2']),
  ...withTags('volumes', ['v1']),
  ...withTags('snapshots', ['v1']),
  ...withTags('subnets', ['v1']),
  ['PUT', `${of('snapshots')}/${id}/metadata`, { 'cloudyard:x': null, 'a b': '2' }, ['a b']],
  ['PATCH', `${of('loadbalancers', 'v2')}/${id}`, { name: 'x', tags: reserved }, ['name', 'tags.cloudyard:a']],
  ['PATCH', `${of('loadbalancers')}/${id}`, { name: 'x', tags: reserved }, ['name', 'tags.cloudyard:a']],
  ['POST', `${of('loadbalancers')}/${id}/metadata`, { ...reserved, b: 1 }, ['b', 'cloudyard:a']],
  [
    'POST',
    of('file_shares'),
    { name: 'a share', protocol: 'NFS', size: 1, type_name: 'vast', network: { network_id: id } },
    ['network', 'type_name'],
  ],
  ['POST', of('file_shares'), { type_name: 'large', share_settings: { path_length: 'LCD' } }, ['type_name']],
  [
    'POST',
    `${of('file_shares')}/${id}/access_rule`,
    { access_mode: 'RW', ip_address: '2001:db8::/110' },
    ['access_mode', 'ip_address'],
  ],
  [
    'POST',
    of('volumes'),
    { source: 'image', name: 'x', size: 1, image_id: id, type_name: 'ultra', instance_id_to_attach_to: id },
    ['instance_id_to_attach_to', 'name', 'source', 'type_name'],
  ],
  ['POST', of('volumes'), { source: 'tape', name: 'x', size: 1, type_name: 'ultra' }, ['name', 'source']],
  [
    'POST',
    '/cloud/v1/caas/keys/1/1',
    { name: '!', containers: [web, { name: '!' }, web], expire: past },
    ['containers.1.name', 'containers.1.namespace', 'containers.2', 'expire', 'name'],
  ],
  [
    'PATCH',
    '/cloud/v1/caas/keys/1/1/a-key',
    { containers: [web, web], is_disabled: 5, expire: past },
    ['containers.1', 'is_disabled'],
  ],
  [
    'PATCH',
    `${of('schedule')}/${id}`,
    { hours: 3, minute: '61', timezone: 'Mars/Base', max_quantity: 0, retention_time: {} },
    ['max_quantity', 'minute', 'timezone'],
  ],
  ['PATCH', `${of('schedule')}/${id}`, { type: 'cron', hours: 3, max_quantity: 0 }, ['hours', 'max_quantity']],
  ['PATCH', `${of('schedule')}/${id}`, { type: 'interval', days: 0, max_quantity: 0 }, ['max_quantity']],
  [
    'POST',
    `${of('lifecycle_policy')}/preview_schedule`,
    { schedule: { type: 'cron', hours: 3, minute: '61', max_quantity: 0 }, count: 0 },
    ['count', 'schedule.hours', 'schedule.max_quantity', 'schedule.minute'],
  ],
  [
    'POST',
    `${of('registries')}/1/users/batch`,
    { users: ['!', 'd1', 'd1'].map((name) => ({ name, duration: 1 })) },
    ['users.0.name', 'users.2.name'],
  ],
  [
    'POST',
    of('secrets', 'v2'),
    { name: '', payload: { certificate: 'a', certificate_chain: 'b', private_key: 'c' }, expiration: past },
    ['expiration', 'name', 'payload.certificate', 'payload.certificate_chain', 'payload.private_key'],
  ],
  ['POST', of('secrets', 'v2'), { name: '', payload: { certificate: 'a' } }, ['name']],
  [
    'POST',
    of('secrets'),
    { name: '', secret_type: 'certificate', payload: 'AA==', expiration: past },
    ['expiration', 'name', 'payload'],
  ],
  ['POST', of('secrets'), { name: '', secret_type: 'x', payload: '*' }, ['name', 'payload', 'secret_type']],
  ['PATCH', '/cloudyard/v1/clients/1', { name: '', emails: ['a@b.example', 'A@b.example'] }, ['emails.1', 'name']],
  [
    'PATCH',
    '/cloudyard/v1/clients/1/quotas',
    { sfs_count_limit: 1, network_count_limit: -1 },
    ['network_count_limit', 'sfs_count_limit'],
  ],
  ['PATCH', '/cloudyard/v1/clients/1/quotas', { sfs_count_limit: 1, region_id: 'x' }, ['region_id']],
  ...[1, -1].map((ofRegion): Case => {
    const limits = { project_count_limit: 1, sfs_count_limit: ofRegion, region_id: 99 };
    const fields = ['project_count_limit', 'region_id', ...(ofRegion < 0 ? ['sfs_count_limit'] : [])];
    return ['PATCH', '/cloudyard/v1/clients/1/quotas', limits, fields];
  }),
  [
    'POST',
    '/cloud/v1/user_actions/subscribe',
    { url: 'x', auth_header_name: 'Host', auth_header_value: 'x' },
    ['auth_header_name', 'url'],
  ],
  [
    'POST',
    '/cloud/v1/user_actions/subscribe',
    { url: 'ftp://example.com/', auth_header_name: 'X-Key', auth_header_value: '' },
    ['auth_header_value', 'url'],
  ],
  ['POST', '/cloudyard/v1/clients/1/webhooks', { url: 'http://127.0.0.1/', secret: 'short' }, ['secret', 'url']],
  [
    'PATCH',
    `/cloudyard/v1/clients/1/webhooks/${id}`,
    { url: 'https://user:password@example.com/', secret: 'short' },
    ['secret', 'url'],
  ],
  ['POST', '/cloudyard/v1/tokens', { name: '', role: 'reader', expires_at: past }, ['expires_at', 'name']],
];

it.each(cases)('%s %s of %j names %j', async (method, path, body, fields) => {
  const { status, body: answer } = await cloud.request(method, path, body);
  const errors: { path: string; message: string }[] = answer.errors;
  // The bodies lack fields that do not matter here.
  const named = errors.filter((error) => error.message !== 'is required' || fields.includes(error.path));
  expect({ status, fields: named.map((error) => error.path).sort() }).toEqual({ status: 400, fields });
});
