/** The client that the authorization tests attack. It has one resource of each kind that needs more than the example of a request. */
import { transaction } from '../../src/platform/db.ts';
import type { Cloudyard } from '../harness.ts';

/** Names and texts of the victim's resources, which no other client may see. */
export const secretText = 'secret of the victim';

export type Victim = Awaited<ReturnType<Cloudyard['newClient']>>;

interface Scene {
  cloud: Cloudyard;
  victim: Victim;
  /** The values of path parameters that the rows of the victim do not show. */
  owned: Map<string, string>;
}

export async function createVictim(cloud: Cloudyard, owned: Map<string, string>): Promise<Victim> {
  const victim = await cloud.newClient();
  const scene = { cloud, victim, owned };
  await createShare(scene);
  await createBalancer(scene);
  await createRegistry(scene);
  await createNotification(scene);
  await createVolume(scene);
  await createKeys(scene);
  await createFault(scene);
  return victim;
}

async function createShare({ cloud, victim: { projectId, token } }: Scene): Promise<void> {
  await cloud.patch(`/cloud/v1/projects/${projectId}`, { name: secretText }, { token });
  const [network] = (await cloud.get(`/cloud/v1/networks/${projectId}/1`, { token })).body.results;
  const access = [{ access_mode: 'ro', ip_address: '10.0.0.1' }];
  const share = { name: secretText, protocol: 'NFS', size: 1, network: { network_id: network.id }, access };
  await cloud.ended(await cloud.post(`/cloud/v1/file_shares/${projectId}/1`, share, { token }), { token });
}

/** A load balancer with a listener, a pool and a member, and a secret. */
async function createBalancer({ cloud, victim, owned }: Scene): Promise<void> {
  const { projectId, token } = victim;
  const name = secretText;
  const pool = {
    name,
    protocol: 'HTTP',
    lb_algorithm: 'ROUND_ROBIN',
    members: [{ address: '10.0.0.1', protocol_port: 80 }],
  };
  const listeners = [{ name, protocol: 'HTTP', protocol_port: 80, pools: [pool] }];
  const path = `/cloud/v1/loadbalancers/${projectId}/1`;
  const made = await cloud.ended(await cloud.post(path, { name, listeners, tags: { secret: name } }, { token }), {
    token,
  });
  const l7policies = `/cloud/v1/l7policies/${projectId}/1`;
  const [listener_id] = made.body.created_resources.listeners;
  const policy = { name, listener_id, action: 'REJECT', tags: [name] };
  const added = await cloud.ended(await cloud.post(l7policies, policy, { token }), { token });
  const [l7policy] = added.body.created_resources.l7polices;
  const rule = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/secret-of-the-victim' };
  const ruled = await cloud.ended(await cloud.post(`${l7policies}/${l7policy}/rules`, rule, { token }), { token });
  owned.set('l7policy_id', l7policy).set('l7rule_id', Object.values<string[]>(ruled.body.created_resources)[0]![0]!);
  const opaque = { name, secret_type: 'opaque', payload: 'AAAA', payload_content_type: 'application/octet-stream' };
  const secret = { ...opaque, payload_content_encoding: 'base64' };
  await cloud.ended(await cloud.post(`/cloud/v1/secrets/${projectId}/1`, secret, { token }), { token });
}

/** A registry with a user. Names cannot mark the victim here, so both get ids that occur nowhere else. */
async function createRegistry({ cloud, victim, owned }: Scene): Promise<void> {
  const { projectId, token } = victim;
  const path = `/cloud/v1/registries/${projectId}/1`;
  await cloud.db.$client.query(`select setval('registries_id_seq', 7654321), setval('registry_users_id_seq', 8765432)`);
  const { id } = (await cloud.post(path, { name: 'victim' }, { token })).body;
  await cloud.post(`${path}/${id}/users`, { name: 'victim', duration: 1 }, { token });
  const digest = `sha256:${'7'.repeat(64)}`;
  await cloud.db.$client.query(
    `with repository as (
       insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at)
       values (${id}, 'repository-of-the-victim', now(), now(), now()) returning id),
     artifact as (
       insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at)
       select id, '${digest}', 1, now(), now() from repository returning id, repository_id)
     insert into registry_tags (repository_id, artifact_id, name, pushed_at, seen_at)
     select repository_id, id, 'tag-of-the-victim', now(), now() from artifact`,
  );
  owned.set('repository_name', 'repository-of-the-victim').set('digest', digest).set('tag_name', 'tag-of-the-victim');
}

/** A notification, its webhook, a user action that is delivered, and a quota request, whose id occurs nowhere else. */
async function createNotification({ cloud, victim, owned }: Scene): Promise<void> {
  const { clientId, token } = victim;
  const hook = { url: 'https://hooks.example/', secret: secretText };
  await cloud.post(`/cloudyard/v1/clients/${clientId}/webhooks`, hook, { token });
  const subject = secretText;
  const message = { clientId, type: 'quota_threshold' as const, subject, body: { paragraphs: [] }, data: {} };
  await transaction(cloud.db, (tx) => cloud.services.notifications.issue(tx, message));
  await cloud.db.$client.query(`select setval(pg_get_serial_sequence('quota_requests', 'id'), 9876543)`);
  const header = { auth_header_name: 'X-Key', auth_header_value: hook.secret };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: hook.url, ...header }, { token });
  const requested_limits = { global_limits: { project_count_limit: 50 } };
  await cloud.post('/cloud/v2/limits_request', { description: secretText, requested_limits }, { token });
  const { rows } = await cloud.db.$client.query('select max(entry_id)::text as id from user_action_deliveries');
  owned.set('user_action_id', rows[0].id);
}

async function createVolume({ cloud, victim, owned }: Scene): Promise<void> {
  const { projectId, token } = victim;
  const name = secretText;
  const made = await cloud.ended(
    await cloud.post(`/cloud/v1/volumes/${projectId}/1`, { name, source: 'new-volume', size: 1 }, { token }),
    { token },
  );
  const [volume_id] = made.body.created_resources.volumes;
  await cloud.ended(await cloud.post(`/cloud/v1/snapshots/${projectId}/1`, { name, volume_id }, { token }), { token });
  const schedules = [{ type: 'cron', hour: '3', max_quantity: 1 }];
  const policy = { action: 'volume_snapshot', name, volume_ids: [volume_id], schedules };
  const { body } = await cloud.post(`/cloud/v1/lifecycle_policy/${projectId}/1`, policy, { token });
  owned.set('policy_id', String(body.id)).set('schedule_id', body.schedules[0].id);
}

/** An API key and a pull secret, which paths identify by name. */
async function createKeys({ cloud, victim, owned }: Scene): Promise<void> {
  const { projectId, token } = victim;
  const [keys, secrets] = ['keys', 'secrets'].map((kind) => `/cloud/v1/caas/${kind}/${projectId}/1`) as [
    string,
    string,
  ];
  await cloud.post(keys, { name: 'of-the-victim', containers: [], description: secretText }, { token });
  const login = { registry: 'registry.test', login: secretText, password: secretText };
  await cloud.post(secrets, { name: 'of-the-victim', ...login }, { token });
  owned.set('key_name', 'of-the-victim').set('secret_name', 'of-the-victim');
}

/** A fault of development mode, which belongs to the operator, and delays nothing. */
async function createFault({ cloud, owned }: Scene): Promise<void> {
  const fault = { resource: 'volume', operation: 'apply', mode: 'slow', seconds: 0 };
  const { body } = await cloud.post('/cloudyard/v1/dev/faults', fault);
  owned.set('fault_id', String(body.id));
}
