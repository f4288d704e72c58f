/** One example of each resource, by the API as version 0.2.0 had it. */
import { setTimeout as sleep } from 'node:timers/promises';

/** @throws if the response is not 2xx */
export type Request = (method: string, path: string, body?: unknown) => Promise<any>;

/** Values of path parameters, by name. */
type Parameters = Record<string, string | number>;

const inProject = (name: string) => `/cloud/v1/${name}/1/1`;
const tags = { team: 'web' };

/** Requires a worker. */
export async function createResources(request: Request): Promise<Parameters> {
  const create = creatorWith(request);
  const { networks: network_id } = await create(inProject('networks'), { name: 'one', tags });
  const subnet = { name: 'one', network_id, cidr: '192.168.10.0/24', tags };
  const { subnets: subnet_id } = await create(inProject('subnets'), subnet);
  const project = await request('POST', '/cloud/v1/projects', { name: 'another', description: 'one more' });
  await alertEarly(request);
  return {
    ...{ project_id: 1, region_id: 1, client_id: 1, another_project_id: project.id },
    ...{ network_id: network_id!, subnet_id: subnet_id! },
    ...(await createStorage(request, network_id!)),
    ...(await createBalancer(request)),
    ...(await createContainers(request)),
    ...(await notificationOf(request)),
  };
}

/** Changes whose jobs and deliveries are pending afterwards. Requires a server without a worker. */
export async function createPending(request: Request, parameters: Parameters): Promise<void> {
  const { network_id, file_share_id, volume_id, load_balancer_id } = parameters;
  const share = { name: 'pending', protocol: 'NFS', size: 1, network: { network_id }, tags };
  await request('POST', inProject('file_shares'), share);
  await request('POST', `${inProject('file_shares')}/${file_share_id}/extend`, { size: 3 });
  await request('POST', inProject('volumes'), { name: 'pending', source: 'new-volume', size: 1 });
  await request('POST', `${inProject('volumes')}/${volume_id}/extend`, { size: 3 });
  await request('POST', inProject('lblisteners'), {
    ...{ name: 'pending', load_balancer_id, protocol: 'TCP', protocol_port: 8443 },
  });
  // Crosses the threshold of a counter that has not crossed it.
  await request('POST', inProject('loadbalancers'), { name: 'pending' });
}

const creatorWith = (request: Request) => async (path: string, body: object) => {
  const { tasks } = await request('POST', path, body);
  const task = await request('GET', `/cloud/v1/tasks/${tasks[0]}?wait=60`);
  if (task.state !== 'FINISHED') throw new Error(`POST ${path}: the task is ${task.state}: ${task.error}`);
  const ids = Object.entries<string[]>(task.created_resources).map(([kind, [first]]) => [kind, first!]);
  return { ...Object.fromEntries(ids), task_id: tasks[0] } as Record<string, string>;
};

async function createStorage(request: Request, network_id: string): Promise<Parameters> {
  const create = creatorWith(request);
  const access = [{ access_mode: 'rw', ip_address: '10.0.0.0/24' }];
  const share = { name: 'one', protocol: 'NFS', size: 2, network: { network_id }, access, tags };
  const { file_shares: file_share_id, task_id } = await create(inProject('file_shares'), share);
  await create(inProject('file_shares'), { name: 'two', protocol: 'NFS', size: 1, network: { network_id } });
  const volume = { name: 'one', source: 'new-volume', size: 2, tags };
  const { volumes: volume_id } = await create(inProject('volumes'), volume);
  const { snapshots: snapshot_id } = await create(inProject('snapshots'), { name: 'one', volume_id, tags });
  const policy = await request('POST', inProject('lifecycle_policy'), {
    ...{ action: 'volume_snapshot', name: 'one', volume_ids: [volume_id] },
    schedules: [{ type: 'cron', hour: '3', timezone: 'Europe/Luxembourg', max_quantity: 7 }],
  });
  const [{ id: schedule_id }] = policy.schedules;
  const found = { file_share_id, task_id, volume_id, snapshot_id } as Record<string, string>;
  return { ...found, policy_id: policy.id, schedule_id };
}

async function createBalancer(request: Request): Promise<Parameters> {
  const create = creatorWith(request);
  const pool = (protocol: string) => ({
    ...{ name: protocol.toLowerCase(), protocol, lb_algorithm: 'ROUND_ROBIN' },
    members: [{ address: '127.0.0.1', protocol_port: 8080 }],
    session_persistence: { type: protocol === 'HTTP' ? 'HTTP_COOKIE' : 'SOURCE_IP' },
  });
  const healthmonitor = { type: 'TCP', delay: 10, timeout: 5, max_retries: 3 };
  const made = await create(inProject('loadbalancers'), {
    name: 'one',
    tags,
    listeners: [
      { name: 'http', protocol: 'HTTP', protocol_port: 80, pools: [{ ...pool('HTTP'), healthmonitor }] },
      { name: 'tcp', protocol: 'TCP', protocol_port: 443, connection_limit: 7, pools: [pool('TCP')] },
    ],
  });
  const ids = { load_balancer_id: made['loadbalancers']!, listener_id: made['listeners']! };
  return { ...ids, pool_id: made['pools']!, member_id: made['members']! };
}

async function createContainers(request: Request): Promise<Parameters> {
  const registry = await request('POST', inProject('registries'), { name: 'one', storage_limit: 10 });
  const user = { name: 'ci', duration: 30, read_only: false };
  const { id: user_id } = await request('POST', `${inProject('registries')}/${registry.id}/users`, user);
  const secret = { name: 'one', secret_type: 'opaque', payload: 'ZXhhbXBsZQ==', payload_content_encoding: 'base64' };
  const content = { payload_content_type: 'application/octet-stream' };
  const { secrets: secret_id } = await creatorWith(request)(inProject('secrets'), { ...secret, ...content });
  const key = { name: 'one', containers: [{ name: 'web', namespace: 'a' }], expire: '2099-01-01T00:00:00Z' };
  await request('POST', inProject('caas/keys'), key);
  const pull = { name: 'one', registry: 'registry.example.com', login: 'ci', password: 'example' };
  await request('POST', inProject('caas/secrets'), pull);
  return { registry_id: registry.id, user_id, secret_id: secret_id!, key_name: 'one', secret_name: 'one' };
}

/** The second share crosses its threshold. The host name of the webhook never resolves, so its delivery stays pending. */
async function alertEarly(request: Request): Promise<void> {
  const limits = { region_id: 1, sfs_count_limit: 4, loadbalancer_count_limit: 4 };
  await request('PATCH', '/cloudyard/v1/clients/1/quotas', limits);
  await request('PATCH', '/cloudyard/v1/clients/1', { emails: ['operator@example.com'] });
  await request('POST', '/cloudyard/v1/clients/1/webhooks', { url: 'https://hooks.invalid/' });
  await request('PUT', '/cloud/v2/client_quotas/1/notification_threshold', { threshold: 50 });
}

async function notificationOf(request: Request): Promise<Parameters> {
  for (;;) {
    const { results } = await request('GET', '/cloudyard/v1/clients/1/notifications');
    const last = results.at(-1);
    if (last?.deliveries?.every((each: any) => each.attempts?.length !== 0)) {
      const { results: webhooks } = await request('GET', '/cloudyard/v1/clients/1/webhooks');
      return { notification_id: last.id, webhook_id: webhooks[0].id };
    }
    await sleep(100);
  }
}
