/** What the test of the keyboard changes and deletes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Yard } from '../processes.ts';

type Ids = Record<string, string>;

/** Resources that the forms change, one after another. `spare…` are deleted. Returns their ids. */
export async function createResources(yard: Yard, receiver: string): Promise<Ids> {
  const ids: Ids = { receiver };
  const created = createdBy(yard);
  ids['network'] = await created('/cloud/v1/networks/1/1', { name: 'network' }, 'networks');
  const subnet = { name: 'subnet', network_id: ids['network'], cidr: '10.9.0.0/24' };
  ids['subnet'] = await created('/cloud/v1/subnets/1/1', subnet, 'subnets');
  const share = { name: 'share', protocol: 'NFS', size: 1, network: { network_id: ids['network'] } };
  ids['share'] = await created('/cloud/v1/file_shares/1/1', share, 'file_shares');
  ids['volume'] = await created('/cloud/v1/volumes/1/1', { name: 'volume', size: 1, source: 'new-volume' }, 'volumes');
  const snapshot = { name: 'snapshot', volume_id: ids['volume'] };
  const rule = { ip_address: '10.0.0.9', access_mode: 'ro' };
  ids['accessRule'] = (await yard.post(`/cloud/v1/file_shares/1/1/${ids['share']}/access_rule`, rule)).body.id;
  ids['snapshot'] = await created('/cloud/v1/snapshots/1/1', snapshot, 'snapshots');
  const pool = {
    name: 'web',
    protocol: 'HTTP',
    lb_algorithm: 'ROUND_ROBIN',
    members: [{ address: '10.1.0.1', protocol_port: 80 }],
  };
  const listeners = [{ name: 'http', protocol: 'HTTP', protocol_port: 80, pools: [pool] }];
  const balancer = await yard.ended(await yard.post('/cloud/v1/loadbalancers/1/1', { name: 'balancer', listeners }));
  ids['balancer'] = balancer.created_resources.loadbalancers[0];
  ids['listener'] = balancer.created_resources.listeners[0];
  ids['pool'] = balancer.created_resources.pools[0];
  const l7 = { listener_id: ids['listener'], name: 'deny', action: 'REJECT' };
  ids['l7'] = await created('/cloud/v1/l7policies/1/1', l7, 'l7polices');
  const match = { type: 'PATH', compare_type: 'STARTS_WITH', value: '/a' };
  ids['rule'] = await created(`/cloud/v1/l7policies/1/1/${ids['l7']}/rules`, match, 'l7rules');
  const schedules = [{ type: 'interval', hours: 1, max_quantity: 2 }];
  const policy = { action: 'volume_snapshot', name: 'policy', schedules };
  const { body: made } = await yard.post('/cloud/v1/lifecycle_policy/1/1', policy);
  ids['policy'] = made.id;
  ids['schedule'] = made.schedules[0].id;
  ids['registry'] = (await yard.post('/cloud/v1/registries/1/1', { name: 'images' })).body.id;
  ids['user'] = (
    await yard.post(`/cloud/v1/registries/1/1/${ids['registry']}/users`, { name: 'ci', duration: 9 })
  ).body.id;
  const containers = [{ namespace: 'default', name: 'web' }];
  const { body: apiKey } = await yard.post('/cloud/v1/caas/keys/1/1', { name: 'key', containers });
  ids['apiKey'] = apiKey.secret;
  const secret = { name: 'hub', registry: 'not a registry', login: 'me', password: 'secret' };
  await yard.post('/cloud/v1/caas/secrets/1/1', secret);
  const hook = { url: `http://${ids['receiver']}/hook` };
  ids['webhook'] = (await yard.post('/cloudyard/v1/clients/1/webhooks', hook)).body.id;
  const limits = { description: 'more', requested_limits: { global_limits: { project_count_limit: 50 } } };
  for (const _ of ['request', 'refused', 'deleted']) await yard.post('/cloud/v2/limits_request', limits);
  const requests = (await yard.get('/cloud/v2/limits_request')).body.results;
  [ids['request'], ids['refused'], ids['deletedRequest']] = requests.map(({ id }: { id: number }) => String(id));
  return { ...ids, ...(await createSpares(yard, ids)), ...createCertificate(yard) };
}

function createCertificate({ folder }: Yard): Ids {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-subj', '/CN=example.com'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  return { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') };
}

const createdBy =
  (yard: Yard) =>
  async (path: string, body: object, kind: string): Promise<string> =>
    (await yard.ended(await yard.post(path, body))).created_resources[kind][0];

async function createSpares(yard: Yard, { volume, balancer, registry }: Ids): Promise<Ids> {
  const created = createdBy(yard);
  const network = await created('/cloud/v1/networks/1/1', { name: 'spare' }, 'networks');
  const range = { name: 'spare', network_id: network, cidr: '10.12.0.0/24' };
  const pool = { name: 'spare', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', loadbalancer_id: balancer };
  const payload = { payload: 'c2VjcmV0', payload_content_encoding: 'base64', payload_content_type: 'text/plain' };
  const secret = { name: 'spare', secret_type: 'opaque', ...payload };
  const time = new Date();
  const [repository] = await yard.sql<{ id: number }>(
    `insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at)
     values ($1, 'team/app', $2, $2, $2) returning id`,
    [registry, time],
  );
  const digests = ['a', 'b'].map((letter) => `sha256:${letter.repeat(64)}`);
  await yard.sql(
    `with a as (insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at)
       select $1, unnest($2::text[]), 10, $3, $3 returning id)
     insert into registry_tags (repository_id, artifact_id, name, pushed_at, seen_at)
     select $1, id, 'v' || id, $3, $3 from a`,
    [repository!.id, digests, time],
  );
  const [tag] = await yard.sql<{ name: string }>(`select name from registry_tags order by id limit 1`);
  return {
    spareNetwork: network,
    spareSubnet: await created('/cloud/v1/subnets/1/1', range, 'subnets'),
    sparePool: await created('/cloud/v1/lbpools/1/1', pool, 'pools'),
    spareSecret: await created('/cloud/v1/secrets/1/1', secret, 'secrets'),
    spareSnapshot: await created('/cloud/v1/snapshots/1/1', { name: 'spare', volume_id: volume }, 'snapshots'),
    spareProject: String((await yard.post('/cloud/v1/projects', { name: 'spare' })).body.id),
    spareToken: String((await yard.post('/cloudyard/v1/tokens', { name: 'spare', role: 'reader' })).body.id),
    spareTag: tag!.name,
  };
}

/** A host of the region whose agent has ended. */
export async function createHost(yard: Yard): Promise<void> {
  await yard.sql(
    `insert into hosts (region_id, name, address, lease_until, report, joined_at, started_at)
     values (1, 'spare', '10.0.0.1', now() - interval '1 day', '{"drivers": [], "heldGroups": [], "version": "0"}', now(), now())`,
  );
}
