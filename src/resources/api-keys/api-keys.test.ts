/** API keys through the API. */
import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';
import { holdLock, waiting } from '../../../test/worker.ts';
import { keyBody, keyBuilders, soon, web } from './test-api-keys.ts';

const cloud = useCloudyard({ driver: null });
const { newClient } = keyBuilders(cloud);

describe('an API key', () => {
  it('shows its secret once', async () => {
    const client = await newClient();
    const body = keyBody({ description: 'for the web', expire: '2099-01-01T00:00:00+02:00' });
    const { body: created, status } = await client.create(body);
    expect(status).toBe(200);
    const { secret, ...key } = created;
    expect(secret).toMatch(/^[0-9a-f]{16}\.[\w-]{43}$/);
    expect(key).toEqual({
      name: body.name,
      containers: [web],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      description: 'for the web',
      expire: '2098-12-31T22:00:00Z',
      is_disabled: false,
      source: 'cloud',
      status: 'active',
    });
    expect((await cloud.get(client.one(body.name), client.options)).body).toEqual(key);
    expect((await cloud.get(client.keys, client.options)).body).toEqual({ count: 1, results: [key] });
    const { rows } = await cloud.db.$client.query(`select to_jsonb(k)::text as text from api_keys k`);
    expect(rows.map(({ text }) => text).join()).not.toContain(secret.split('.')[1]);
  });

  it('is created once per Idempotency-Key, and the stored response has no plain-text secret', async () => {
    const client = await newClient();
    const once = { ...client.options, headers: { 'idempotency-key': 'once' } };
    const body = keyBody();
    const first = await client.create(body, once);
    expect(await client.create(body, once)).toMatchObject({ status: 200, body: first.body });
    const { rows } = await cloud.db.$client.query(`select answer::text as text from idempotency_keys`);
    expect(rows.map(({ text }) => text).join()).not.toContain(first.body.secret);
    expect((await cloud.get(client.keys, client.options)).body.count).toBe(1);
  });

  it('is listed by name, in pages', async () => {
    const client = await newClient();
    for (const name of ['cc', 'aa', 'bb']) await client.create(keyBody({ name }));
    const list = async (query: string) => {
      const { body } = await cloud.get(`${client.keys}?${query}`, client.options);
      return [body.count, body.results.map((key: { name: string }) => key.name)];
    };
    expect(await list('')).toEqual([3, ['aa', 'bb', 'cc']]);
    expect(await list('limit=1&offset=1')).toEqual([3, ['bb']]);
    expect(errorPaths(await cloud.get(`${client.keys}?limit=0&offset=-1`, client.options))).toEqual([
      'limit',
      'offset',
    ]);
    expect((await cloud.get(`${client.keys}?limit=1001`, client.options)).status).toBe(400);
  });

  it('has its current status', async () => {
    const client = await newClient();
    const body = keyBody({ expire: soon() });
    await client.create(body);
    const status = async () => (await cloud.get(client.one(body.name), client.options)).body.status;
    expect(await status()).toBe('active');
    cloud.clock.advance(4000);
    expect(await status()).toBe('expired');
    cloud.clock.set(new Date(Date.now() - 60_000));
    expect(await status()).toBe('pending');
    cloud.clock.set(null);
    await cloud.patch(client.one(body.name), { is_disabled: true }, client.options);
    expect(await status()).toBe('disabled');
  });

  it('has a unique name in its project and region, which can be reused after deletion', async () => {
    const client = await newClient();
    const body = keyBody();
    await client.create(body);
    const taken = await client.create(body);
    expect(taken).toMatchObject({ status: 409, body: { exception_class: 'NameTaken' } });
    expect(taken.headers['x-should-retry']).toBe('false');
    expect((await (await newClient()).create(body)).status).toBe(200);
    expect(await cloud.delete(client.one(body.name), client.options)).toMatchObject({ status: 204, body: '' });
    expect((await cloud.delete(client.one(body.name), client.options)).status).toBe(404);
    expect((await client.create(body)).status).toBe(200);
  });

  it('blocks the deletion of its project', async () => {
    const client = await newClient();
    const { id } = (await cloud.post('/cloud/v1/projects', { name: 'other' }, client.options)).body;
    const key = keyBody();
    await cloud.post(`/cloud/v1/caas/keys/${id}/1`, key, client.options);
    const refused = await cloud.delete(`/cloud/v1/projects/${id}`, client.options);
    expect(refused.body.message).toContain(`1 API key (${key.name})`);
    await cloud.delete(`/cloud/v1/caas/keys/${id}/1/${key.name}`, client.options);
    expect((await cloud.delete(`/cloud/v1/projects/${id}`, client.options)).status).toBe(200);
    expect((await cloud.post(`/cloud/v1/caas/keys/${id}/1`, key, client.options)).status).toBe(404);
  });
});

describe('a create that waits for its project', () => {
  it('delays no other project', async (t) => {
    const [one, other] = [await newClient(), await newClient()];
    const lock = await holdLock(t, cloud, `select from projects where id = ${one.projectId} for no key update`);
    const waits = one.create(keyBody());
    await expect.poll(waiting(cloud, 'limit_api_keys')).toBe(1);
    expect((await other.create(keyBody())).status).toBe(200);
    await lock.release();
    expect((await waits).status).toBe(200);
  });
});

describe('an update', () => {
  it('keeps absent fields, clears null fields, and ignores unchanged values', async () => {
    const client = await newClient();
    const containers = [web, { name: 'db', namespace: 'default' }];
    const body = keyBody({ containers, description: 'text', expire: '2099-01-01T00:00:00Z', is_disabled: true });
    const { secret: _, ...key } = (await client.create(body)).body;
    const update = async (changes: object) => (await cloud.patch(client.one(body.name), changes, client.options)).body;
    const version = async () =>
      (await cloud.db.$client.query('select version from api_keys where name = $1', [body.name])).rows[0].version;
    const before = await version();
    expect(await update({})).toEqual(key);
    expect(await update({ containers, description: 'text', is_disabled: true, expire: key.expire })).toEqual(key);
    expect(await version()).toBe(before);
    expect(await update({ description: 'other' })).toEqual({ ...key, description: 'other' });
    expect(await update({ containers: [web] })).toMatchObject({ containers: [web], description: 'other' });
    const cleared = { ...key, containers: [], description: '', expire: null };
    expect(await update({ description: null, expire: null, containers: null, is_disabled: null })).toEqual(cleared);
    expect(await update({ is_disabled: false })).toEqual({ ...cleared, is_disabled: false, status: 'active' });
    expect(await version()).toBeGreaterThan(before);
  });

  it('accepts the current expire although it has passed, and refuses another past one', async () => {
    const client = await newClient();
    const expire = soon();
    const { name } = (await client.create(keyBody({ expire }))).body;
    cloud.clock.advance(7200);
    const update = (changes: object) => cloud.patch(client.one(name), changes, client.options);
    expect(await update({ expire, description: 'x' })).toMatchObject({ status: 200, body: { status: 'expired' } });
    expect(errorPaths(await update({ expire: '2020-01-01T00:00:00Z' }))).toEqual(['expire']);
    expect((await update({ expire: '2098-01-01T00:00:00Z' })).body.status).toBe('active');
    cloud.clock.set(null);
  });

  it('accepts the expire that responses show, which is without the fraction of its second', async () => {
    const client = await newClient();
    const expire = soon().replace(/\.\d+Z$/, '.700Z');
    const { name, expire: shown } = (await client.create(keyBody({ expire }))).body;
    expect(shown).toBe(expire.replace('.700', ''));
    const update = (body: object) => cloud.patch(client.one(name), body, client.options);
    expect(await update({ expire: shown, description: 'x' })).toMatchObject({ status: 200, body: { expire: shown } });
    cloud.clock.set(new Date(expire));
    expect(await update({ expire: shown, description: 'y' })).toMatchObject({
      status: 200,
      body: { status: 'expired' },
    });
    cloud.clock.set(null);
    const { rows } = await cloud.db.$client.query('select expire from api_keys where name = $1', [name]);
    expect(rows[0].expire).toEqual(new Date(expire));
  });

  it('of an unknown key returns 404', async () => {
    const client = await newClient();
    for (const name of ['nothing', 'aa']) {
      expect((await cloud.patch(client.one(name), { description: 'x' }, client.options)).status).toBe(404);
      expect((await cloud.get(client.one(name), client.options)).status).toBe(404);
      expect((await cloud.delete(client.one(name), client.options)).status).toBe(404);
    }
  });
});

describe('keys with very many containers', () => {
  it('are accepted and listed', async () => {
    const client = await newClient();
    const containers = Array.from({ length: 10_000 }, (_, i) => ({
      name: `c${i}`.padEnd(64, 'x'),
      namespace: 'n'.repeat(255),
    }));
    for (let i = 0; i < 4; i++)
      expect((await client.create(keyBody({ name: `big-${i}`, containers }))).status).toBe(200);
    for (const name of ['a-small-one', 'z-small-one']) await client.create(keyBody({ name }));
    const { status, body } = await cloud.get(client.keys, client.options);
    expect([status, body.count]).toEqual([200, 6]);
    const sizes = body.results.map(({ name, containers }: any) => [name, containers.length]);
    expect(sizes).toEqual([['a-small-one', 1], ...[0, 1, 2, 3].map((i) => [`big-${i}`, 10_000]), ['z-small-one', 1]]);
    expect((await cloud.get(`${client.keys}?limit=2&offset=4`, client.options)).body.results).toHaveLength(2);
  });
});

describe('a key of another client', () => {
  it('returns 404', async () => {
    const [owner, other] = [await newClient(), await newClient()];
    const { name } = (await owner.create(keyBody())).body;
    for (const path of [owner.one(name), other.one(name)]) {
      expect((await cloud.get(path, other.options)).status).toBe(404);
      expect((await cloud.patch(path, { description: 'x' }, other.options)).status).toBe(404);
      expect((await cloud.delete(path, other.options)).status).toBe(404);
    }
    const reader = { token: await cloud.newToken(owner.clientId, 'reader') };
    expect((await cloud.get(owner.one(name), reader)).status).toBe(200);
    expect((await owner.create(keyBody(), reader)).status).toBe(403);
  });
});
