/** Creates some of every resource, for `reads`. Simulated drivers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cloudyard, ended } from './cloudyard.ts';
import { liftQuotas } from './shares.ts';

/** Values of path parameters, by name. */
export type Examples = Record<string, string | number>;

/** Of each resource that has a page of its own. */
export const count = 20;

const inProject = (name: string) => `/cloud/v1/${name}/1/1`;
const tags = { team: 'web' };

export async function createExamples(cloudyard: Cloudyard): Promise<Examples> {
  await liftQuotas(cloudyard);
  await cloudyard.request('PATCH', '/cloudyard/v1/clients/1/quotas', { project_count_limit: 1e9 });
  const post = (path: string, body: object) => cloudyard.request('POST', path, body);
  /** The ids of the first resources that a task has created, by kind. */
  const created: Make['created'] = async (path, body) => {
    const task = await ended(cloudyard, await post(path, body));
    const first = Object.entries<string[]>(task.created_resources).map(([kind, ids]) => [kind, ids[0]!]);
    return { ...Object.fromEntries(first), task: task.id };
  };
  const make = { cloudyard, post, created };
  const network = await several((name) => created(inProject('networks'), { name, tags }));
  const network_id = network['networks']!;
  const subnet = await created(inProject('subnets'), { name: 'bench', network_id, cidr: '192.168.10.0/24', tags });
  return {
    ...{ project_id: 1, region_id: 1, client_id: 1, network_id, subnet_id: subnet['subnets']! },
    ...(await storage(make, network_id)),
    ...(await balancing(make)),
    ...(await registries(make)),
    ...(await ofClient(make)),
  };
}

interface Make {
  cloudyard: Cloudyard;
  post(path: string, body: object): Promise<any>;
  created(path: string, body: object): Promise<Record<string, string> & { task: string }>;
}

/** Makes `count` of a resource, and returns the first one. */
async function several<T>(make: (name: string, index: number) => Promise<T>): Promise<T> {
  return (await Promise.all(Array.from({ length: count }, (_, index) => make(`bench-${index}`, index))))[0]!;
}

async function storage({ created, post }: Make, network_id: string): Promise<Examples> {
  const access = [{ access_mode: 'rw', ip_address: '10.0.0.0/24' }];
  const share = { protocol: 'NFS', size: 1, network: { network_id }, access, tags };
  const shares = await several((name) => created(inProject('file_shares'), { ...share, name }));
  const volume = { source: 'new-volume', size: 1, tags };
  const volumes = await several((name) => created(inProject('volumes'), { ...volume, name }));
  const volume_id = volumes['volumes']!;
  const snapshots = await created(inProject('snapshots'), { name: 'bench', volume_id, tags });
  const policy = await several((name) =>
    post(inProject('lifecycle_policy'), {
      ...{ action: 'volume_snapshot', name, volume_ids: [] },
      schedules: [{ type: 'cron', hour: '3', timezone: 'Europe/Luxembourg', max_quantity: 7 }],
    }),
  );
  return {
    file_share_id: shares['file_shares']!,
    volume_id,
    snapshot_id: snapshots['snapshots']!,
    policy_id: policy.id,
    schedule_id: policy.schedules[0].id,
    task_id: shares.task,
  };
}

async function balancing({ created }: Make): Promise<Examples> {
  const pools = [
    {
      ...{ name: 'bench', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' },
      members: [{ address: '127.0.0.1', protocol_port: 8080 }],
      healthmonitor: { type: 'TCP', delay: 10, timeout: 5, max_retries: 3 },
    },
  ];
  const listeners = [{ name: 'bench', protocol: 'HTTP', protocol_port: 80, pools }];
  const balancer = await several((name) => created(inProject('loadbalancers'), { name, listeners, tags }));
  const policy = {
    listener_id: balancer['listeners']!,
    action: 'REDIRECT_PREFIX',
    redirect_prefix: 'https://a.example',
  };
  const { l7polices } = await created(inProject('l7policies'), policy);
  const rule = { type: 'PATH', compare_type: 'STARTS_WITH', value: '/api/' };
  const rules = await created(`${inProject('l7policies')}/${l7polices}/rules`, rule);
  return {
    load_balancer_id: balancer['loadbalancers']!,
    listener_id: balancer['listeners']!,
    pool_id: balancer['pools']!,
    member_id: balancer['members']!,
    l7policy_id: l7polices!,
    l7rule_id: rules['l7rules'] ?? rules['rules']!,
  };
}

async function registries({ post }: Make): Promise<Examples> {
  const registry = await several((name) => post(inProject('registries'), { name, storage_limit: 10 }));
  const user = { name: 'ci', duration: 30, read_only: false };
  await post(`${inProject('registries')}/${registry.id}/users`, user);
  return { registry_id: registry.id };
}

/** What belongs to no region, and what the platform for containers uses. */
async function ofClient({ cloudyard, post, created }: Make): Promise<Examples> {
  await several((name) => post('/cloud/v1/projects', { name }));
  const secret = { secret_type: 'opaque', payload: 'c2VjcmV0', payload_content_encoding: 'base64' };
  const content = { payload_content_type: 'application/octet-stream' };
  const secrets = await several((name) => created(inProject('secrets'), { ...secret, ...content, name }));
  const expire = '2099-01-01T00:00:00Z';
  await several((name) =>
    post(inProject('caas/keys'), { name, containers: [{ name: 'web', namespace: 'a' }], expire }),
  );
  const login = { registry: 'registry.example.com', login: 'ci', password: 'password' };
  await several((name) => post(inProject('caas/secrets'), { ...login, name }));
  await cloudyard.request('PUT', '/cloud/v2/client_quotas/1/notification_threshold', { threshold: 80 });
  const webhook = await post('/cloudyard/v1/clients/1/webhooks', { url: 'https://hooks.example.com/' });
  const requested_limits = { regional_limits: [{ region_id: 1, volume_count_limit: 2_000_000_000 }] };
  await post('/cloud/v2/limits_request', { description: 'bench', requested_limits });
  const requests = await cloudyard.request('GET', '/cloud/v2/limits_request');
  const request_id = requests.results[0].id;
  // The client is notified.
  await post(`/cloudyard/v1/limits_requests/${request_id}/decline`, { reason: 'bench' });
  const tokens = await cloudyard.request('GET', '/cloudyard/v1/tokens');
  return {
    secret_id: secrets['secrets']!,
    key_name: 'bench-0',
    secret_name: 'bench-0',
    webhook_id: webhook.id,
    request_id,
    token_id: tokens.results[0].id,
    notification_id: await firstNotification(cloudyard),
  };
}

async function firstNotification(cloudyard: Cloudyard): Promise<string> {
  for (;;) {
    const { results } = await cloudyard.request('GET', '/cloudyard/v1/clients/1/notifications');
    if (results.length > 0) return results[0].id;
    await sleep(100);
  }
}
