import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { Answer, RequestOptions } from '../../../test/harness.ts';
import type { Container } from './schema.ts';

const rateLimit = 100;
const cloud = useCloudyard({ driver: null, clientLimits: { requestsPerSecond: rateLimit } });

const web: Container = { name: 'web', namespace: 'default' };
const paths = (answer: Answer) => answer.body.errors?.map((error: { path: string }) => error.path);
const soon = () => new Date(Date.now() + 3_600_000).toISOString();

let made = 0;
const keyBody = (changes: object = {}) => ({ name: `key-${made++}`, containers: [web], ...changes });

async function newClient() {
  const client = await cloud.newClient();
  const options = { token: client.token };
  const keys = `/cloud/v1/caas/keys/${client.projectId}/1`;
  const create = (body: object, more: RequestOptions = options) => cloud.post(keys, body, more);
  const one = (name: string) => `${keys}/${encodeURIComponent(name)}`;
  return { ...client, options, keys, create, one };
}

/** The answer to a proxy that authorizes this key for a container. */
async function authorize(key: string | undefined, container: Container = web, query = {}): Promise<string | number> {
  const url = `/cloudyard/v1/authorize?${new URLSearchParams({ ...container, ...query })}`;
  const answer = await cloud.get(url, { token: null, headers: key === undefined ? {} : { 'x-api-key': key } });
  if (answer.status === 204) return 204;
  expect(answer.body.message).toBeTruthy();
  return `${answer.status} ${String(answer.headers['x-cloudyard-reason'])}`;
}

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
    expect(paths(await cloud.get(`${client.keys}?limit=0&offset=-1`, client.options))).toEqual(['limit', 'offset']);
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
    expect(await update({ description: null, expire: null, containers: null, is_disabled: null })).toEqual({
      ...key,
      containers: [],
      description: '',
      expire: null,
      is_disabled: false,
      status: 'active',
    });
    expect(await version()).toBeGreaterThan(before);
  });

  it('accepts the current expire although it has passed, and refuses another past one', async () => {
    const client = await newClient();
    const expire = soon();
    const { name } = (await client.create(keyBody({ expire }))).body;
    cloud.clock.advance(7200);
    const update = (changes: object) => cloud.patch(client.one(name), changes, client.options);
    expect(await update({ expire, description: 'x' })).toMatchObject({ status: 200, body: { status: 'expired' } });
    expect(paths(await update({ expire: '2020-01-01T00:00:00Z' }))).toEqual(['expire']);
    expect((await update({ expire: '2098-01-01T00:00:00Z' })).body.status).toBe('active');
    cloud.clock.set(null);
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

describe('invalid input', () => {
  it('is refused with every field named', async () => {
    const client = await newClient();
    const refused = await client.create({
      name: 'Upper',
      containers: [{ name: 'x', namespace: '' }, { name: 'web' }, 'web'],
      description: null,
      expire: 'tomorrow',
      is_disabled: 'no',
      secret: 'mine',
    });
    expect(refused.status).toBe(400);
    expect(paths(refused).sort()).toEqual([
      'containers.0.name',
      'containers.0.namespace',
      'containers.1.namespace',
      'containers.2',
      'description',
      'expire',
      'is_disabled',
      'name',
      'secret',
    ]);
  });

  it('in name is refused at its length limits and for invalid characters', async () => {
    const client = await newClient();
    for (const name of ['ab', 'a-', 'a1', `a${'b'.repeat(62)}`, `a${'b'.repeat(63)}`]) {
      const good = /^[a-z][-a-z0-9]{0,62}[a-z0-9]$/.test(name);
      expect([name, (await client.create(keyBody({ name }))).status]).toEqual([name, good ? 200 : 400]);
    }
    for (const name of [
      'a',
      '',
      `a${'b'.repeat(64)}`,
      '1a',
      'a_b',
      'ä-b',
      'a b',
      '../x',
      'a%2fb',
      'a\u0000',
      null,
      7,
    ]) {
      expect(paths(await client.create(keyBody({ name })))).toEqual(['name']);
    }
  });

  it.each(['%2e%2e%2f', 'a%2Fb', 'A', 'a%00b', 'a%20b', '%C3%A4', 'a.b', "a'--", 'a%', 'x'.repeat(65), '%ff'])(
    'in the path is refused: %s',
    async (name) => {
      const client = await newClient();
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const body = method === 'PATCH' ? {} : undefined;
        const { status, body: error } = await cloud.request(method, `${client.keys}/${name}`, body, client.options);
        expect([status, error.exception_class]).toEqual([400, 'InvalidInput']);
      }
    },
  );

  it('in expire is refused', async () => {
    const client = await newClient();
    const past = ['2020-01-01T00:00:00Z', new Date(Date.now() - 1000).toISOString()];
    const none = [
      '',
      'x',
      '2099-01-01',
      '2099-13-01T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '2016-12-31T23:59:60Z',
      5,
      true,
    ];
    for (const expire of [...past, ...none])
      expect(paths(await client.create(keyBody({ expire })))).toEqual(['expire']);
    for (const expire of ['2099-01-01T00:00:00', '2099-01-01 00:00:00+02', '2099-01-01t00:00:00.5z', null, undefined]) {
      expect([expire, (await client.create(keyBody({ expire }))).status]).toEqual([expire, 200]);
    }
  });

  it('in containers is refused: duplicates and more than 10,000', async () => {
    const client = await newClient();
    const other = { name: 'web', namespace: 'other' };
    const twice = await client.create(keyBody({ containers: [web, other, web] }));
    expect(twice.body.errors).toEqual([{ path: 'containers.2', message: 'is the same as containers.0' }]);
    const { name } = (await client.create(keyBody({ containers: [web, other] }))).body;
    expect(paths(await cloud.patch(client.one(name), { containers: [other, other] }, client.options))).toEqual([
      'containers.1',
    ]);
    const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `c${i}x`, namespace: 'default' }));
    expect(paths(await client.create(keyBody({ containers: many(10_001) })))).toEqual(['containers']);
    const all = await client.create(keyBody({ containers: many(10_000) }));
    expect(all.status).toBe(200);
    expect(await authorize(all.body.secret, { name: 'c9999x', namespace: 'default' })).toBe(204);
    expect(await authorize(all.body.secret, { name: 'c10000x', namespace: 'default' })).toBe('403 other_container');
    expect((await cloud.get(client.one(all.body.name), client.options)).body.containers).toEqual(many(10_000));
  });

  it('in an update is refused: unknown fields and wrong types', async () => {
    const client = await newClient();
    const { name } = (await client.create(keyBody())).body;
    const update = async (changes: unknown) => paths(await cloud.patch(client.one(name), changes, client.options));
    expect(await update({ name: 'other', source: 'iate', created_at: null })).toEqual(['name', 'source', 'created_at']);
    expect(await update({ containers: {}, description: 1, expire: 'x', is_disabled: 0 })).toEqual([
      'containers',
      'description',
      'expire',
      'is_disabled',
    ]);
    expect(await update({ containers: [null] })).toEqual(['containers.0']);
    expect(await update([])).toEqual(['']);
    expect(await client.create({ name: 'x' })).toMatchObject({ status: 400 });
    expect(paths(await client.create({ name: 'xx', containers: null }))).toEqual(['containers']);
  });
});

describe('authorize', () => {
  it('allows the containers of a key and gives a reason for each refusal', async () => {
    const client = await newClient();
    const other = { name: 'db', namespace: 'default' };
    const { secret, name } = (await client.create(keyBody({ containers: [web, other] }))).body;
    expect(await authorize(secret)).toBe(204);
    expect(await authorize(secret, other)).toBe(204);
    expect(await authorize(secret, { name: 'web', namespace: 'other' })).toBe('403 other_container');
    expect(await authorize(undefined)).toBe('401 missing_key');
    expect(await authorize('')).toBe('401 missing_key');
    const [keyId, text] = secret.split('.');
    for (const wrong of ['x', '.', `${keyId}.`, keyId, `${keyId}.${text}x`, `.${text}`, `x.${text}`, client.token]) {
      expect(await authorize(wrong)).toBe('401 unknown_key');
    }
    const update = (changes: object) => cloud.patch(client.one(name), changes, client.options);
    await update({ is_disabled: true });
    expect(await authorize(secret)).toBe('403 disabled_key');
    await update({ is_disabled: false, containers: [other] });
    expect(await authorize(secret)).toBe('403 other_container');
    await update({ containers: null });
    expect(await authorize(secret)).toBe('403 no_containers');
    await update({ containers: [web], expire: soon() });
    expect(await authorize(secret)).toBe(204);
    cloud.clock.advance(4000);
    expect(await authorize(secret)).toBe('401 expired_key');
    await update({ is_disabled: true });
    expect(await authorize(secret)).toBe('403 disabled_key');
    await update({ is_disabled: false });
    cloud.clock.set(new Date(Date.now() - 60_000));
    expect(await authorize(secret)).toBe('403 pending_key');
    cloud.clock.set(null);
    await cloud.delete(client.one(name), client.options);
    expect(await authorize(secret)).toBe('401 unknown_key');
  });

  it('checks project and region if the proxy names them', async () => {
    const [mine, other] = [await newClient(), await newClient()];
    const { secret } = (await mine.create(keyBody())).body;
    const project_id = String(mine.projectId);
    expect(await authorize(secret, web, { project_id, region_id: '1' })).toBe(204);
    expect(await authorize(secret, web, { project_id, region_id: '2' })).toBe('403 other_place');
    expect(await authorize(secret, web, { project_id: String(other.projectId) })).toBe('403 other_place');
    for (const nothing of [{ project_id: '' }, { project_id, region_id: '' }, { project_id, region_id: '0x1' }]) {
      expect(await authorize(secret, web, nothing)).toBe('403 other_place');
    }
  });

  it('reads the container from the query, the headers or the path, never from a part that clients control', async () => {
    const client = await newClient();
    const { secret } = (await client.create(keyBody())).body;
    const send = async (method: string, url: string, headers: object = {}) => {
      const all = { 'x-api-key': secret, ...headers };
      const { statusCode } = await cloud.app.inject({ method: method as 'GET', url, headers: all, payload: undefined });
      return statusCode;
    };
    const path = '/cloudyard/v1/authorize';
    const named = { 'x-container-name': 'web', 'x-container-namespace': 'default' };
    expect(await send('GET', path, named)).toBe(204);
    expect(await send('HEAD', path, named)).toBe(204);
    expect(await send('GET', path)).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-project': String(client.projectId) })).toBe(204);
    expect(await send('GET', path, { ...named, 'x-container-project': '1' })).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-region': 'x' })).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-region': '' })).toBe(403);
    expect(await send('GET', `${path}?name=db&namespace=default`, named)).toBe(403);
    // Envoy sends this with a path_prefix that names no container.
    expect(await send('GET', `${path}/?name=web&namespace=default`)).toBe(403);

    const whole = `${path}/${client.projectId}/1/default/web`;
    for (const url of [whole, `${whole}/`, `${whole}/any/thing?name=db`, `${whole}?x`]) {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect([method, url, await send(method, url, { 'x-container-name': 'db' })]).toEqual([method, url, 200]);
      }
    }
    expect(await send('POST', whole, { 'content-type': 'text/html', 'content-length': '0' })).toBe(200);
    expect(await send('GET', whole.replace(/web$/, 'db/web'))).toBe(403);
    expect(await send('GET', whole.replace('/1/default', '/2/default'))).toBe(403);
    expect(await send('GET', `${path}/1/1/default/web`)).toBe(403);
    for (const odd of [
      'name=UPPER',
      'name=web&name=web',
      'name=web&project_id=x',
      'name=%00',
      'name=%ff',
      'name[]=web',
    ]) {
      expect([odd, await send('GET', `${path}?${odd}&namespace=default`)]).toEqual([odd, 403]);
    }
  });

  it('responds identically over a connection and within the framework', async () => {
    const client = await newClient();
    const dotted = { name: 'web', namespace: 'a.b_c' };
    const { secret } = (await client.create(keyBody({ containers: [web, dotted, { name: 'web', namespace: 'ü/x' }] })))
      .body;
    const at = await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    const place = `${client.projectId}/1`;
    const answers = new Set<number>();
    for (const url of [
      ...[
        '?name=web&namespace=default',
        '?namespace=default&name=web&project_id=&x',
        '?name=web&namespace=default&name=web',
      ],
      ...[
        `?name=web&namespace=default&project_id=${client.projectId}`,
        '?name=web&namespace=default&region_id=2',
        '?name=%77eb&namespace=default',
      ],
      ...[
        '',
        '?',
        '?name=',
        'x?name=web&namespace=default',
        '/?name=web&namespace=default',
        `/${place}`,
        `/${place}/default/web`,
      ],
      ...[
        `/${place}/default/web/`,
        `/${place}/default/web/a?b`,
        `/${place}/default/web?b`,
        `/${place}/default/webs`,
        `/${place}/a.b_c/web`,
      ],
      ...[
        `/${place}/%C3%BC%2Fx/web`,
        `/${place}/default/%77eb`,
        `/1/1/default/web`,
        `/x/1/default/web`,
        `/0${place}/default/web`,
      ],
    ]) {
      for (const key of [secret, 'x', undefined]) {
        const headers = key === undefined ? {} : { 'x-api-key': key };
        const path = `/cloudyard/v1/authorize${url}`;
        const { status, headers: shown } = await fetch(`${at}${path}`, { headers });
        const within = await cloud.app.inject({ url: path, headers });
        const said = [status, shown.get('content-length'), shown.get('x-cloudyard-reason')];
        const { statusCode, headers: expected } = within;
        expect([path, key, ...said]).toEqual([
          path,
          key,
          statusCode,
          expected['content-length'] ?? null,
          expected['x-cloudyard-reason'] ?? null,
        ]);
        answers.add(status);
      }
    }
    expect([...answers].sort()).toEqual([200, 204, 401, 403, 404]);
  });

  it('has no rate limit and needs no token', async () => {
    const client = await newClient();
    const { secret } = (await client.create(keyBody())).body;
    for (let i = 0; i <= rateLimit; i++) expect(await authorize(secret)).toBe(204);
    for (let i = 0; i <= rateLimit; i++) expect(await authorize('x')).toBe('401 unknown_key');
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
