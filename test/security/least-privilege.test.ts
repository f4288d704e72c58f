/** A token sees and changes only what its role and its projects allow. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { transaction } from '../../src/platform/db.ts';
import { useCloudyard } from '../harness.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });
const forbidden = { status: 403, body: { exception_class: 'Forbidden' } };
const hook = { url: 'http://127.0.0.1:9/hook' };

interface Tenant {
  clientId: number;
  projectId: number;
  token: string;
}
let tenant: Tenant;
let tenantPath: string;
/** An admin token of the tenant that is limited to one project. */
let limited: string;

beforeAll(async () => {
  tenant = await cloud.newClient();
  tenantPath = `/cloudyard/v1/clients/${tenant.clientId}`;
  limited = await cloud.newToken(tenant.clientId, 'admin', [tenant.projectId]);
});

describe('an admin token that is limited to projects', () => {
  it('cannot create a webhook, whose secret signs messages about all projects', async () => {
    expect(await cloud.post(`${tenantPath}/webhooks`, hook, { token: limited })).toMatchObject(forbidden);
    expect((await cloud.get(`${tenantPath}/webhooks`, tenant)).body.count).toBe(0);
  });

  it('cannot read or delete the webhooks of the client', async () => {
    const { body } = await cloud.post(`${tenantPath}/webhooks`, hook, tenant);
    const one = `${tenantPath}/webhooks/${body.id}`;
    expect(await cloud.get(`${tenantPath}/webhooks`, { token: limited })).toMatchObject(forbidden);
    expect(await cloud.get(one, { token: limited })).toMatchObject(forbidden);
    expect(await cloud.delete(one, { token: limited })).toMatchObject(forbidden);
    expect((await cloud.get(one, tenant)).status).toBe(200);
  });

  it('cannot change the e-mail addresses or the threshold of the client', async () => {
    const addresses = { emails: ['attacker@example.com'] };
    const client = `/cloudyard/v1/clients/${tenant.clientId}`;
    expect(await cloud.patch(client, addresses, { token: limited })).toMatchObject(forbidden);
    const threshold = `/cloud/v2/client_quotas/${tenant.clientId}/notification_threshold`;
    expect(await cloud.request('PUT', threshold, { threshold: 1 }, { token: limited })).toMatchObject(forbidden);
    expect(await cloud.delete(threshold, { token: limited })).toMatchObject(forbidden);
  });

  it('sees no notification about a policy of another project', async () => {
    const other = await cloud.post('/cloud/v1/projects', { name: 'the other' }, tenant);
    const type = 'lifecycle_policy_run_failed' as const;
    const issue = (subject: string, data: object) => {
      const message = { clientId: tenant.clientId, type, subject, body: { paragraphs: [] }, data: { ...data } };
      return transaction(cloud.db, (tx) => cloud.services.notifications.issue(tx, message));
    };
    const hidden = await issue('other', { project_id: other.body.id });
    const own = await issue('own', { project_id: tenant.projectId });
    const ofClient = await issue('client', {});
    const feed = `${tenantPath}/notifications`;
    const { body } = await cloud.get(feed, { token: limited });
    expect(body.count).toBe(2);
    expect(new Set(body.results.map(({ id }: { id: string }) => id))).toEqual(new Set([own, ofClient]));
    expect((await cloud.get(`${feed}/${hidden}`, { token: limited })).status).toBe(404);
    expect((await cloud.get(`${feed}/${own}`, { token: limited })).status).toBe(200);
    expect((await cloud.get(`${feed}/${hidden}`, tenant)).status).toBe(200);
  });

  it('cannot create a project and keeps access to its project', async () => {
    const created = await cloud.post('/cloud/v1/projects', { name: 'one more' }, { token: limited });
    expect(created).toMatchObject(forbidden);
    expect((await cloud.get(`/cloud/v1/projects/${tenant.projectId}`, { token: limited })).status).toBe(200);
  });

  it('of the operator has no access to other clients', async () => {
    const operator = await cloud.newToken(1, 'admin', [1]);
    const webhooks = await cloud.get(`${tenantPath}/webhooks`, { token: operator });
    expect(webhooks.status).toBe(403);
    expect((await cloud.get(tenantPath, { token: operator })).status).toBe(404);
    const quotas = { region_id: 1, sfs_count_limit: 1 };
    expect(await cloud.patch(`${tenantPath}/quotas`, quotas, { token: operator })).toMatchObject(forbidden);
  });
});

describe('a response stored under an Idempotency-Key', () => {
  const key = { 'idempotency-key': 'rotate' };
  const body = { name: 'a-key', containers: [{ name: 'web', namespace: 'default' }] };

  it('is not returned to another token of the client', async () => {
    const keys = `/cloud/v1/caas/keys/${tenant.projectId}/1`;
    const mine = await cloud.post(keys, body, { token: tenant.token, headers: key });
    expect(mine.body.secret).toEqual(expect.any(String));
    const other = await cloud.newToken(tenant.clientId, 'admin');
    const theirs = await cloud.post(keys, body, { token: other, headers: key });
    expect(JSON.stringify(theirs.body)).not.toContain(mine.body.secret);
    expect((await cloud.post(keys, body, { token: tenant.token, headers: key })).body).toEqual(mine.body);
  });
});

describe('a reader', () => {
  const encrypted = '$5$rounds=1000$abcdefgh$1Tr0oZ3C5M7mJwq8JX0mUW3sVbV7M3nJ2xGJpWQ5gA0';
  let one: string;
  let all: string;
  let reader: string;

  beforeAll(async () => {
    all = `/cloud/v1/lblisteners/${tenant.projectId}/1`;
    const user_list = [{ username: 'visitor', encrypted_password: encrypted }];
    const listeners = [{ name: 'web', protocol: 'HTTP', protocol_port: 80, user_list }];
    const balancers = `/cloud/v1/loadbalancers/${tenant.projectId}/1`;
    expect((await cloud.post(balancers, { name: 'balancer', listeners }, tenant)).status).toBe(200);
    const { body } = await cloud.get(all, tenant);
    one = `${all}/${body.results[0].id}`;
    reader = await cloud.newToken(tenant.clientId, 'reader');
  });

  it('sees user names in user_list but no password hashes', async () => {
    const hidden = [{ username: 'visitor', encrypted_password: '*' }];
    expect((await cloud.get(one, { token: reader })).body.user_list).toEqual(hidden);
    expect((await cloud.get(all, { token: reader })).body.results[0].user_list).toEqual(hidden);
  });

  it('gets no password hash from any other operation', async () => {
    const { body } = await cloud.get(one, tenant);
    const balancer = body.load_balancer_id;
    const paths = [
      `/cloud/v1/loadbalancers/${tenant.projectId}/1/${balancer}`,
      `/cloud/v1/loadbalancers/${tenant.projectId}/1/${balancer}/status`,
      `/cloud/v1/loadbalancers/${tenant.projectId}/1`,
      '/cloud/v1/tasks',
    ];
    for (const path of paths) {
      expect(JSON.stringify((await cloud.get(path, { token: reader })).body)).not.toContain(encrypted);
    }
  });

  it('hashes are visible to members, whose tools compare them with their configuration', async () => {
    const member = await cloud.newToken(tenant.clientId, 'member');
    const [user] = (await cloud.get(one, { token: member })).body.user_list;
    expect(user.encrypted_password).toBe(encrypted);
  });
});

describe('a caller without a token', () => {
  it('sees no ID of a resource in the status of a driver', async () => {
    const id = randomUUID();
    const detail = `serves; mkfs.xfs file-shares/images/${id}.xfs: No space left on device`;
    const status = { kind: 'file shares', driver: 'ganesha', real: true, healthy: false, detail };
    await cloud.db.$client.query(
      `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at)
       values ('full', 'host', 1, '{1}', $1, now(), now())`,
      [JSON.stringify([status])],
    );
    const { body } = await cloud.get('/healthz/drivers', { token: null });
    expect(body.drivers).toContainEqual({
      ...{ ...status, worker: 'full', region_ids: [1] },
      detail: 'serves; mkfs.xfs file-shares/images/….xfs: No space left on device',
    });
    expect(JSON.stringify(body)).not.toContain(id);
  });
});
