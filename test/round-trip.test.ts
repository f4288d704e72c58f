/** What a client reads it can send back: an update with the fields of the response is accepted and changes nothing. */
import { beforeAll, expect, it } from 'vitest';
import { declaredApi } from '../src/main/openapi-document.ts';
import { type Answer, useCloudyard } from './harness.ts';
import { dereferenced } from './openapi.ts';

interface Described {
  requestBody?: { content: Record<string, { schema: { properties?: object } }> };
}
type Paths = Record<string, Record<string, Described>>;

const cloud = useCloudyard();

/** Read in another form than written, as in the official API: tags are a list, and the settings of a share name its type. */
const otherForms = ['tags', 'share_settings', 'flavor'];

const { paths } = dereferenced((await declaredApi()).document) as { paths: Paths };
/** Later versions of an update belong to the read of v1. */
const readOf = (path: string) => [path, path.replace(/v\d/, 'v1')].find((each) => paths[each]?.['get']);
const updates = Object.entries(paths).flatMap(([path, operations]) =>
  (['patch', 'put'] as const).flatMap((method) => {
    const [content] = Object.values(operations[method]?.requestBody?.content ?? {});
    const fields = Object.keys(content?.schema.properties ?? {}).filter((name) => !otherForms.includes(name));
    const read = readOf(path);
    return read && fields.length > 0 ? [{ method: method.toUpperCase(), path, read, fields }] : [];
  }),
);

const ids: Record<string, string | number> = { project_id: 1, region_id: 1, client_id: 1 };
const fill = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name]));
const create = (kind: string, body: object) => cloud.post(`/cloud/v1/${kind}/1/1`, body);
const made = async (answer: Answer) => (await cloud.ended(answer)).body.created_resources;

beforeAll(async () => {
  const name = 'round trip';
  ids['network_id'] = (await made(await create('networks', { name }))).networks[0];
  const { network_id } = ids;
  ids['subnet_id'] = (await made(await create('subnets', { name, network_id, cidr: '10.1.0.0/24' }))).subnets[0];
  const share = { name, protocol: 'NFS', size: 1, network: { network_id } };
  ids['file_share_id'] = (await made(await create('file_shares', share))).file_shares[0];
  ids['volume_id'] = (await made(await create('volumes', { name, source: 'new-volume', size: 1 }))).volumes[0];
  const { volume_id } = ids;
  ids['snapshot_id'] = (await made(await create('snapshots', { name, volume_id }))).snapshots[0];
  const schedules = [{ type: 'cron', hour: '3', max_quantity: 1 }];
  const policy = await create('lifecycle_policy', { name, action: 'volume_snapshot', schedules });
  Object.assign(ids, { policy_id: policy.body.id, schedule_id: policy.body.schedules[0].id });

  const pool = {
    ...{ name, protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [{ address: '10.0.0.1', protocol_port: 80 }] },
    healthmonitor: { type: 'HTTP', delay: 10, timeout: 5, max_retries: 2 },
    session_persistence: { type: 'HTTP_COOKIE', cookie_name: 'sticky' },
  };
  const listener = { name, protocol: 'HTTP', protocol_port: 80, pools: [pool] };
  const balancer = await made(await create('loadbalancers', { name, listeners: [listener] }));
  const [load_balancer_id, listener_id] = [balancer.loadbalancers[0], balancer.listeners[0]];
  Object.assign(ids, { load_balancer_id, listener_id, pool_id: balancer.pools[0], member_id: balancer.members[0] });
  ids['l7policy_id'] = (await made(await create('l7policies', { listener_id, action: 'REJECT' }))).l7polices[0];
  const rule = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/x' };
  const rules = `/cloud/v1/l7policies/1/1/${ids['l7policy_id']}/rules`;
  ids['l7rule_id'] = (await made(await cloud.post(rules, rule))).l7rules[0];

  await create('caas/keys', { name: 'key-name', containers: [] });
  await create('caas/secrets', { name: 'secret-name', registry: 'registry.test', login: 'me', password: 'pass' });
  Object.assign(ids, { key_name: 'key-name', secret_name: 'secret-name' });
  const hook = await cloud.post('/cloudyard/v1/clients/1/webhooks', { url: 'https://hooks.example/' });
  ids['webhook_id'] = hook.body.id;
});

/** Health of members changes without a request. */
const withoutHealth = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body, (name, value) => (name === 'operating_status' ? undefined : value)));

it.each(updates)('$method $path accepts what its read returns', async ({ method, path, read, fields }) => {
  const before = (await cloud.get(fill(read))).body;
  const body = Object.fromEntries(fields.filter((name) => name in before).map((name) => [name, before[name]]));
  const { status, body: answer } = await cloud.request(method, fill(path), body);
  expect([status, answer.errors ?? answer.message]).toEqual([200, undefined]);
  expect(withoutHealth((await cloud.get(fill(read))).body)).toEqual(withoutHealth(before));
});
