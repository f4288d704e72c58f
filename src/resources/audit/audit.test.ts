/** The contents of the audit log. The test harness checks in every test that each mutation has its entry. */
import { describe, expect, it } from 'vitest';
import { createAudit } from '../../audit/audit.ts';
import { installAuditTriggers } from '../../audit/triggers.ts';
import { systemClock } from '../../platform/clock.ts';
import { update as updateNetwork } from '../networks/store.ts';
import { type RequestOptions, useCloudyard } from '../../../test/harness.ts';
import type { AuditEntry } from './schema.ts';

const cloud = useCloudyard();
const log = '/cloudyard/v1/audit';
const paths = (answer: { body: any }) => answer.body.errors?.map((error: { path: string }) => error.path);

async function newClient() {
  const client = await cloud.newClient();
  const options = { token: client.token };
  const keys = `/cloud/v1/caas/keys/${client.projectId}/1`;
  const entries = async (query = '', more: RequestOptions = options): Promise<AuditEntry[]> =>
    (await cloud.get(`${log}?${query}`, more)).body.results;
  return { ...client, options, keys, entries };
}

describe('an entry', () => {
  it('records the token, the origin, and each row before and after the change', async () => {
    const client = await newClient();
    const headers = { 'user-agent': 'test/1', 'x-forwarded-for': '192.0.2.1' };
    const containers = [{ name: 'web', namespace: 'default' }];
    const request = { ...client.options, headers };
    const created = await cloud.post(client.keys, { name: 'a-key', containers }, request);
    await cloud.patch(`${client.keys}/a-key`, { description: 'new', is_disabled: true }, request);
    await cloud.delete(`${client.keys}/a-key`, request);
    const [removed, updated, made] = await client.entries('table=api_keys');
    expect(made).toEqual({
      id: expect.any(Number),
      at: expect.stringMatching(/Z$/),
      operation: 'createApiKey',
      token: { id: expect.any(Number), name: 'test' },
      client_id: client.clientId,
      project_id: client.projectId,
      region_id: 1,
      request_id: created.headers['x-request-id'],
      origin: {
        address: '127.0.0.1',
        method: 'POST',
        path: client.keys,
        user_agent: 'test/1',
        forwarded_for: '192.0.2.1',
      },
      changes: [{ table: 'api_keys', id: expect.any(String), before: null, after: expect.any(Object) }],
    });
    expect(made!.changes[0]!.after).toMatchObject({ name: 'a-key', containers, secret_hash: '[redacted]' });
    const { id } = made!.changes[0]!;
    expect(updated!.changes).toEqual([
      {
        table: 'api_keys',
        id,
        before: { description: '', is_disabled: false, version: expect.any(Number) },
        after: { description: 'new', is_disabled: true, version: expect.any(Number) },
      },
    ]);
    expect(removed).toMatchObject({
      operation: 'deleteApiKey',
      changes: [{ id, before: { name: 'a-key', containers, deleted_at: null, secret_hash: '[redacted]' } }],
    });
    expect(Object.keys(removed!.changes[0]!.after!).sort()).toEqual(['deleted_at', 'version']);
  });

  it('has only its own changes, also if concurrent transactions share a commit', async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, newClient));
    const { clientId, projectId } = clients[0]!;
    const act = { operation: 'grouped', actor: null, clientId, projectId, regionId: 1, origin: {}, always: true };
    const audit = createAudit({ clock: systemClock, keepDays: 0 });
    const rename = (id: string) => audit.transaction(cloud.db, act, (tx) => updateNetwork(tx, id, { name: 'renamed' }));
    const { rows: networks } = await cloud.db.$client.query('select id from networks where project_id = any($1)', [
      clients.map((client) => client.projectId),
    ]);
    await Promise.all(networks.map(({ id }) => rename(id)));
    const { rows } = await cloud.db.$client.query(
      `select xmin::text as commit, jsonb_path_query_array(changes, '$[*].id') as ids
       from audit_entries where client_id = $1 and operation = 'grouped'`,
      [clientId],
    );
    expect(rows.map(({ ids }) => ids.join()).toSorted()).toEqual(networks.map(({ id }) => id).toSorted());
    expect(new Set(rows.map(({ commit }) => commit)).size).toBeLessThan(networks.length);
  });

  it('records that a secret changed without its value', async () => {
    const client = await newClient();
    const secrets = client.keys.replace('/keys/', '/secrets/');
    await cloud.post(secrets, { name: 's', registry: 'a.test', login: 'me', password: 'canary-one' }, client.options);
    await cloud.patch(`${secrets}/s`, { password: 'canary-two' }, client.options);
    await cloud.get(`${secrets.replace('/cloud/', '/cloudyard/')}/s/dockerconfigjson`, client.options);
    const [shown, changed, made] = await client.entries();
    expect(made!.changes[0]!.after).toMatchObject({ login: 'me', password: '[redacted]' });
    expect(changed!.changes[0]!.before).toMatchObject({ password: '[redacted]' });
    expect(changed!.changes[0]!.after).toMatchObject({ password: '[redacted]' });
    expect(Object.keys(changed!.changes[0]!.after!).sort()).toEqual(['password', 'updated_at']);
    const { id } = made!.changes[0]!;
    expect(shown).toMatchObject({
      operation: 'getPullSecretDockerConfigJson',
      changes: [{ table: 'pull_secrets', id, before: null, after: null }],
    });
    for (const given of [`${id}`, `${id}`.toUpperCase()])
      expect(await client.entries(`row_id=${given}`)).toHaveLength(3);
  });

  it('contains neither URLs of webhooks nor password hashes', async () => {
    const client = await newClient();
    const hooks = `/cloudyard/v1/clients/${client.clientId}/webhooks`;
    const { body } = await cloud.post(hooks, { url: 'https://hooks.example/?token=canary' }, client.options);
    await cloud.delete(`${hooks}/${body.id}`, client.options);
    const balancers = `/cloud/v1/loadbalancers/${client.projectId}/1`;
    const user = { username: 'alice', encrypted_password: `$6$salt$${'canary'.padEnd(86, 'x')}` };
    const listener = { name: 'listener', protocol: 'HTTP', protocol_port: 80, user_list: [user] };
    const balancer = { name: 'balancer', flavor: 'lb1-1-2', listeners: [listener] };
    expect((await cloud.post(balancers, balancer, client.options)).status).toBe(200);
    const entries = await client.entries();
    expect(JSON.stringify(entries)).not.toContain('canary');
    const changed = entries.flatMap(({ changes }) => changes).filter(({ after }) => after);
    expect(changed.find(({ table }) => table === 'webhooks')!.after).toMatchObject({ url: '[redacted]' });
    expect(changed.find(({ table }) => table === 'lb_listeners')!.after).toMatchObject({ user_list: '[redacted]' });
  });

  it('keeps the address that the last proxy added, whatever the client sends', async () => {
    const client = await newClient();
    const forged = `${'9.9.9.9, '.repeat(50)}203.0.113.66`;
    const request = { ...client.options, headers: { 'x-forwarded-for': forged } };
    await cloud.post(client.keys, { name: 'a-key', containers: [] }, request);
    expect((await client.entries())[0]!.origin['forwarded_for']).toMatch(/203\.0\.113\.66$/);
  });

  it('names the acknowledged tasks and their project', async () => {
    const client = await newClient();
    const subnets = `/cloud/v1/networks/${client.projectId}/1`;
    const { body } = await cloud.post(subnets, { name: 'network' }, client.options);
    const [id] = body.tasks;
    await cloud.post(`/cloud/v1/tasks/${id}/acknowledge`, undefined, client.options);
    expect((await client.entries('operation=acknowledgeTask'))[0]).toMatchObject({
      project_id: client.projectId,
      changes: [
        { table: 'tasks', id, before: { acknowledged_at: null }, after: { acknowledged_by: expect.any(Number) } },
      ],
    });
  });

  it('is absent for a refused request and empty for one without changes', async () => {
    const client = await newClient();
    await cloud.post(client.keys, { name: 'a-key', containers: [] }, client.options);
    const count = async () => (await client.entries()).length;
    const before = await count();
    await cloud.post(client.keys, { name: 'a-key', containers: [] }, client.options);
    await cloud.patch(`${client.keys}/nothing`, { description: 'x' }, client.options);
    await cloud.patch(`${client.keys}/a-key`, { description: 'x' }, { token: null });
    expect(await count()).toBe(before);
    await cloud.patch(`${client.keys}/a-key`, { description: '' }, client.options);
    expect((await client.entries())[0]).toMatchObject({ operation: 'updateApiKey', changes: [] });
  });

  it('has all rows of the request and none that a worker writes later', async () => {
    const client = await newClient();
    const [network] = (await cloud.get(`/cloud/v1/networks/${client.projectId}/1`, client.options)).body.results;
    const access = ['10.0.0.1', '10.0.0.2'].map((ip_address) => ({ access_mode: 'ro', ip_address }));
    const share = { name: 'a-share', protocol: 'NFS', size: 1, network: { network_id: network.id }, access };
    const created = await cloud.post(`/cloud/v1/file_shares/${client.projectId}/1`, share, client.options);
    const task = await cloud.ended(created, client.options);
    await cloud.afterDuties();
    const entries = await client.entries('operation=createFileShare');
    expect(entries).toHaveLength(1);
    const tables = entries[0]!.changes.map(({ table }) => table).filter((table) => table !== 'quota_counters');
    expect(tables.sort()).toEqual(['file_share_access_rules', 'file_share_access_rules', 'file_shares']);
    const [id] = task.body.created_resources.file_shares;
    expect(await client.entries(`row_id=${id}&table=file_shares`)).toHaveLength(1);
    expect(await client.entries(`row_id=${network.id}`)).toHaveLength(1);
  });

  it('records changes of limits and changes by commands', async () => {
    const client = await newClient();
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, sfs_count_limit: 5 });
    const [limited] = await client.entries('operation=updateClientQuotas');
    expect(limited!.changes).toEqual([
      expect.objectContaining({ table: 'quota_counters', after: expect.objectContaining({ limit_override: 5 }) }),
    ]);
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, sfs_count_limit: 6 });
    const [raised] = await client.entries('operation=updateClientQuotas');
    const counter = { client_id: client.clientId, region_id: 1, kind: 'sfs_count' };
    expect(raised!.changes).toMatchObject([
      { before: { ...counter, limit_override: 5 }, after: { ...counter, limit_override: 6 } },
    ]);
    const token = await cloud.newToken(client.clientId, 'reader');
    await cloud.services.tokens.revoke(token.split('$')[0]!);
    const [revoked, made] = await client.entries('table=tokens');
    expect(made).toMatchObject({ operation: 'createToken', token: null, request_id: null, client_id: client.clientId });
    expect(made!.origin).toEqual({});
    const [seen] = await cloud.get(`${log}?table=tokens&client_id=${client.clientId}`).then(({ body }) => body.results);
    expect(Object.keys(seen.origin).sort()).toEqual(['account', 'host']);
    expect(made!.changes[0]!.after).toMatchObject({ role: 'reader', secret_hash: '[redacted]' });
    expect(revoked).toMatchObject({ operation: 'revokeToken', changes: [{ before: { revoked_at: null } }] });
    const [creation] = await cloud.get(`${log}?operation=createClient&limit=1`).then(({ body }) => body.results);
    expect(creation).toMatchObject({ client_id: client.clientId });
  });

  it('is truncated above a limit and marked as truncated', async () => {
    const client = await newClient();
    const act = { operation: 'test', actor: null, clientId: client.clientId, origin: {}, always: true };
    const description = 'x'.repeat(100_000);
    await cloud.services.audit.transaction(cloud.db, act, async (tx) => {
      for (let i = 0; i < 10; i++) {
        await tx.$client.query('update projects set description = $1 where id = $2', [
          description + i,
          client.projectId,
        ]);
      }
    });
    const [entry] = await client.entries('operation=test');
    expect(entry!.changes.map(({ table }) => table)).toEqual(['projects', 'projects', '…']);
  });
});

describe('the log', () => {
  it('is read in pages, newest first, with filters', async () => {
    const client = await newClient();
    for (let i = 0; i < 5; i++) await cloud.post(client.keys, { name: `key-${i}`, containers: [] }, client.options);
    const names = (results: AuditEntry[]) => results.map(({ changes }) => changes[0]!.after!['name']);
    const page = async (query: string) =>
      (await cloud.get(`${log}?operation=createApiKey&${query}`, client.options)).body;
    const first = await page('limit=2');
    expect([names(first.results), first.next]).toEqual([['key-4', 'key-3'], first.results[1].id]);
    const rest = await page(`limit=3&before=${first.next}`);
    expect([names(rest.results), rest.next]).toEqual([['key-2', 'key-1', 'key-0'], null]);
    const [newest] = first.results;
    const filters = {
      project_id: client.projectId,
      client_id: client.clientId,
      region_id: 1,
      token_id: newest.token.id,
      request_id: newest.request_id,
      from_timestamp: newest.at,
      table: 'api_keys',
      row_id: newest.changes[0].id,
    };
    for (const [name, value] of Object.entries(filters)) {
      expect([name, names((await page(`${name}=${value}`)).results)[0]]).toEqual([name, 'key-4']);
    }
    for (const filter of ['project_id=1', 'region_id=2', 'token_id=0', 'request_id=x', 'table=x', 'row_id=x']) {
      expect([filter, (await page(filter)).results]).toEqual([filter, []]);
    }
    expect((await page('to_timestamp=2020-01-01T00:00:00Z')).results).toEqual([]);
    await cloud.db.$client.query(`update audit_entries set at = '2020-01-01T00:00:00.4Z' where id = $1`, [newest.id]);
    expect(names((await page('to_timestamp=2020-01-01T00:00:00Z')).results)).toEqual(['key-4']);
    expect((await page('to_timestamp=2019-12-31T23:59:59')).results).toEqual([]);
  });

  it('is filtered by the name of rows, also of deleted and renamed ones', async () => {
    const client = await newClient();
    const other = await newClient();
    const containers: object[] = [];
    await cloud.post(client.keys, { name: 'named', containers }, client.options);
    await cloud.post(client.keys, { name: 'not-named', containers }, client.options);
    await cloud.patch(`${client.keys}/named`, { description: 'new' }, client.options);
    await cloud.delete(`${client.keys}/named`, client.options);
    await cloud.post(other.keys, { name: 'named', containers }, other.options);
    const operations = async (query: string, of = client) =>
      (await of.entries(query)).map(({ operation }) => operation);
    const all = ['deleteApiKey', 'updateApiKey', 'createApiKey'];
    expect(await operations('table=api_keys&row_name=named')).toEqual(all);
    expect(await operations('table=api_keys&row_name=named', other)).toEqual(['createApiKey']);
    const inProject = `${log}?table=api_keys&row_name=named&project_id=${client.projectId}`;
    expect((await cloud.get(inProject)).body.results).toHaveLength(3);
    expect((await cloud.get(`${inProject}&format=csv`)).body.trim().split('\n')).toHaveLength(4);
    expect(await operations(`table=api_keys&row_name=named&row_id=${crypto.randomUUID()}`)).toEqual([]);
    for (const query of ['table=api_keys&row_name=unknown', 'table=volumes&row_name=named']) {
      expect([query, await operations(query)]).toEqual([query, []]);
    }
    expect(paths(await cloud.get(`${log}?row_name=named`))).toEqual(['row_name']);
  });

  it('refuses invalid filters', async () => {
    const refusedAt = async (query: string) => paths(await cloud.get(`${log}?${query}`));
    expect(await refusedAt('limit=0')).toEqual(['limit']);
    expect(await refusedAt('limit=1001&before=0&client_id=x')).toEqual(['client_id', 'limit', 'before']);
    for (const text of ['x', '2016-12-31T23:59:60Z', '0000-01-01T00:00:00Z']) {
      expect(await refusedAt(`from_timestamp=${text}`)).toEqual(['from_timestamp']);
    }
  });

  it('shows a client the entries of its own resources, and the operator all entries', async () => {
    const [client, other] = [await newClient(), await newClient()];
    await cloud.post(client.keys, { name: 'a-key', containers: [] }, client.options);
    const ofClient = `client_id=${client.clientId}`;
    expect(await client.entries(ofClient)).not.toEqual([]);
    expect(await other.entries(ofClient)).toEqual([]);
    expect((await other.entries()).every(({ client_id }) => client_id === other.clientId)).toBe(true);
    const ids = (entries: AuditEntry[]) => entries.map(({ id }) => id);
    expect(ids((await cloud.get(`${log}?${ofClient}`)).body.results)).toEqual(ids(await client.entries(ofClient)));
    const member = { token: await cloud.newToken(client.clientId, 'member') };
    expect((await cloud.get(log, member)).status).toBe(403);
    const limited = { token: await cloud.newToken(client.clientId, 'admin', [client.projectId]) };
    const seen = await client.entries('', limited);
    expect(seen.map(({ operation }) => operation)).toContain('createApiKey');
    expect(seen.every(({ project_id }) => project_id === client.projectId)).toBe(true);
  });

  it('is kept for the configured number of days', async () => {
    const client = await newClient();
    await cloud.post(client.keys, { name: 'a-key', containers: [] }, client.options);
    const later = { now: () => new Date(Date.now() + 10 * 86_400_000) };
    await createAudit({ clock: later, keepDays: 0 }).deleteExpired(cloud.db);
    await createAudit({ clock: later, keepDays: 11 }).deleteExpired(cloud.db);
    expect(await client.entries()).not.toEqual([]);
    await createAudit({ clock: later, keepDays: 9 }).deleteExpired(cloud.db);
    expect(await client.entries()).toEqual([]);
  });

  it('redacts the secret columns of every table, and a restart keeps existing triggers', async () => {
    const client = await cloud.db.$client.connect();
    const triggers = async () =>
      (
        await client.query(
          `select oid, pg_get_triggerdef(oid) as text from pg_trigger where tgname = 'cloudyard_audit'`,
        )
      ).rows;
    const before = await triggers();
    await installAuditTriggers(client as never);
    expect(await triggers()).toEqual(before);
    for (const [table, columns] of [
      ['tokens', "('secret_hash')"],
      ['secrets', "('payload')"],
      ['api_keys', "('secret_hash')"],
      ['pull_secrets', "('password')"],
      ['networks', '()'],
    ]) {
      expect(before.some(({ text }) => text.includes(`.${table} `) && text.endsWith(columns))).toBe(true);
    }
    client.release();
  });
});
