import { describe, expect, it } from 'vitest';
import { errorPaths, type RequestOptions, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({ driver: null });

let made = 0;
const secretBody = (changes: object = {}) => ({
  name: `secret-${made++}`,
  registry: 'registry.example.com',
  login: 'me',
  password: 'pass word',
  ...changes,
});

async function newClient() {
  const client = await cloud.newClient();
  const options = { token: client.token };
  const secrets = `/cloud/v1/caas/secrets/${client.projectId}/1`;
  const create = (body: object, more: RequestOptions = options) => cloud.post(secrets, body, more);
  const one = (name: string) => `${secrets}/${encodeURIComponent(name)}`;
  const file = (name: string, more: RequestOptions = options) =>
    cloud.get(`${one(name).replace('/cloud/', '/cloudyard/')}/dockerconfigjson`, more);
  return { ...client, options, secrets, create, one, file };
}

describe('a pull secret', () => {
  it('is shown as it was sent, without its password', async () => {
    const client = await newClient();
    const body = secretBody({ registry: 'HTTPS://Registry.Example.com/v2/' });
    const { status, body: secret } = await client.create(body);
    expect(status).toBe(200);
    expect(secret).toEqual({
      name: body.name,
      registry: body.registry,
      login: 'me',
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    });
    expect((await cloud.get(client.one(body.name), client.options)).body).toEqual(secret);
    expect((await cloud.get(client.secrets, client.options)).body).toEqual({ count: 1, results: [secret] });
    expect((await client.file(body.name)).body).toEqual({
      auths: { 'registry.example.com': { username: 'me', password: 'pass word', auth: 'bWU6cGFzcyB3b3Jk' } },
    });
  });

  it('is listed by name, in pages', async () => {
    const client = await newClient();
    for (const name of ['c', 'a', 'b']) await client.create(secretBody({ name }));
    const { body } = await cloud.get(`${client.secrets}?limit=2&offset=1`, client.options);
    expect([body.count, body.results.map((secret: { name: string }) => secret.name)]).toEqual([3, ['b', 'c']]);
    expect(errorPaths(await cloud.get(`${client.secrets}?limit=0&offset=x`, client.options)).sort()).toEqual([
      'limit',
      'offset',
    ]);
  });

  it('has a unique name in its project and region', async () => {
    const client = await newClient();
    const body = secretBody();
    await client.create(body);
    const taken = await client.create(body);
    expect(taken).toMatchObject({ status: 409, body: { exception_class: 'NameTaken' } });
    expect(taken.headers['x-should-retry']).toBe('false');
    expect((await (await newClient()).create(body)).status).toBe(200);
    expect(await cloud.delete(client.one(body.name), client.options)).toMatchObject({ status: 204, body: '' });
    expect((await cloud.delete(client.one(body.name), client.options)).status).toBe(404);
    expect((await client.create(body)).status).toBe(200);
  });

  it('is created once per Idempotency-Key', async () => {
    const client = await newClient();
    const once = { ...client.options, headers: { 'idempotency-key': 'once' } };
    const body = secretBody();
    const first = await client.create(body, once);
    expect(await client.create(body, once)).toMatchObject({ status: 200, body: first.body });
    expect((await client.create({ ...body, password: 'other' }, once)).status).toBe(409);
  });

  it('blocks the deletion of its project', async () => {
    const client = await newClient();
    const { id } = (await cloud.post('/cloud/v1/projects', { name: 'other' }, client.options)).body;
    const body = secretBody();
    await cloud.post(`/cloud/v1/caas/secrets/${id}/1`, body, client.options);
    const refused = await cloud.delete(`/cloud/v1/projects/${id}`, client.options);
    expect(refused.body.message).toContain(`1 pull secret (${body.name})`);
    await cloud.delete(`/cloud/v1/caas/secrets/${id}/1/${body.name}`, client.options);
    expect((await cloud.delete(`/cloud/v1/projects/${id}`, client.options)).status).toBe(200);
  });
});

describe('an update', () => {
  it('changes the given fields and keeps absent or null ones', async () => {
    const client = await newClient();
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const { name } = (await client.create(secretBody())).body;
    cloud.clock.advance(60);
    const update = async (changes: object) => (await cloud.patch(client.one(name), changes, client.options)).body;
    const before = { name, registry: 'registry.example.com', login: 'me', updated_at: '2026-11-20T10:00:00Z' };
    expect(await update({})).toEqual(before);
    expect(await update({ registry: null, login: null, password: null })).toEqual(before);
    expect(await update({ registry: 'registry.example.com', login: 'me', password: 'pass word' })).toEqual(before);
    expect(await update({ login: 'you' })).toEqual({ ...before, login: 'you', updated_at: '2026-11-20T10:01:00Z' });
    cloud.clock.advance(60);
    expect(await update({ password: 'other' })).toMatchObject({ login: 'you', updated_at: '2026-11-20T10:02:00Z' });
    expect(await update({ registry: 'docker.io' })).toMatchObject({ registry: 'docker.io' });
    cloud.clock.set(null);
    expect((await client.file(name)).body.auths['https://index.docker.io/v1/'].auth).toBe(
      Buffer.from('you:other').toString('base64'),
    );
  });

  it('of an unknown secret returns 404', async () => {
    const client = await newClient();
    expect((await cloud.patch(client.one('nothing'), { login: 'x' }, client.options)).status).toBe(404);
    expect((await cloud.get(client.one('nothing'), client.options)).status).toBe(404);
    expect((await client.file('nothing')).status).toBe(404);
  });
});

describe('invalid input', () => {
  it('is refused outside the limits of every field', async () => {
    const client = await newClient();
    const refusedAt = async (changes: object) => errorPaths(await client.create(secretBody(changes)));
    const host = (length: number) => `https://example.com/${'x'.repeat(length - 20)}`;
    const edges: Record<string, [shortest: string, longest: string, beyond: string]> = {
      login: ['x', 'x'.repeat(100), 'x'.repeat(101)],
      name: ['y', 'x'.repeat(250), 'x'.repeat(251)],
      password: ['x', 'ß'.repeat(5000), 'x'.repeat(5001)],
      registry: ['x', host(400), host(401)],
    };
    for (const [field, [shortest, longest, beyond]] of Object.entries(edges)) {
      for (const good of [shortest, longest])
        expect([field, await refusedAt({ [field]: good })]).toEqual([field, undefined]);
      for (const bad of ['', beyond, null, 7, [], undefined]) {
        expect([field, await refusedAt({ [field]: bad })]).toEqual([field, [field]]);
      }
    }
    const { name } = (await client.create(secretBody())).body;
    for (const [field, [, , beyond]] of Object.entries(edges).filter(([field]) => field !== 'name')) {
      for (const bad of ['', beyond, 7]) {
        expect(errorPaths(await cloud.patch(client.one(name), { [field]: bad }, client.options))).toEqual([field]);
      }
    }
    expect(errorPaths(await cloud.patch(client.one(name), { name: 'x', updated_at: null }, client.options))).toEqual([
      'name',
      'updated_at',
    ]);
    expect(errorPaths(await client.create({}))!.sort()).toEqual(['login', 'name', 'password', 'registry']);
  });

  it('in registry, login or password is refused', async () => {
    const client = await newClient();
    const { name } = (await client.create(secretBody())).body;
    for (const registry of ['https://me:pass-word@registry.example.com', 'me:pass-word@host']) {
      const answers = [
        await client.create(secretBody({ registry })),
        await cloud.patch(client.one(name), { registry }, client.options),
      ];
      for (const answer of answers) {
        expect([registry, errorPaths(answer)]).toEqual([registry, ['registry']]);
        expect(JSON.stringify(answer.body)).not.toContain('pass-word');
      }
    }
    const controls = [0x00, 0x01, 0x09, 0x0a, 0x0d, 0x1f, 0x7f, 0x80, 0x85, 0x9f].map((code) =>
      String.fromCharCode(code),
    );
    for (const field of ['registry', 'login', 'password']) {
      for (const control of controls) {
        const changes = { [field]: `a${control}b` };
        expect([changes, errorPaths(await client.create(secretBody(changes)))]).toEqual([changes, [field]]);
        expect(errorPaths(await cloud.patch(client.one(name), changes, client.options))).toEqual([field]);
      }
      expect(errorPaths(await client.create(secretBody({ [field]: 'a\ud800' })))).toEqual([field]);
    }
  });

  it('is not any other text in registry, login and password', async () => {
    const client = await newClient();
    const texts = [
      ' ',
      '\u00a0 x ',
      '"\\\'`$(id)',
      '<a href="x">',
      "'; drop table x; --",
      '日本語🙂',
      '\u202e\ufeff',
      '%00\\n',
    ];
    for (const text of texts) {
      const body = secretBody({ registry: text, login: text, password: text });
      expect(await client.create(body)).toMatchObject({ status: 200, body: { registry: text, login: text } });
      const usable = await cloud.patch(client.one(body.name), { registry: 'docker.io', login: 'me' }, client.options);
      expect(usable.status).toBe(200);
      const [auth] = Object.values((await client.file(body.name)).body.auths) as { password: string }[];
      expect(auth!.password).toBe(text);
    }
    // A Google service account key is a JSON file that is used as a password, on one line.
    expect((await client.create(secretBody({ login: '_json_key', password: '{"x":"y\\n"}' }))).status).toBe(200);
  });

  it('in registry or login is stored when no client can use it, and verify says why', async () => {
    const client = await newClient();
    const unusable: [object, string][] = [
      ...['host:0', 'ftp://host', ' ', 'my registry'].map(
        (registry) => [{ registry }, 'registry must '] as [object, string],
      ),
      [{ login: 'a:b' }, 'login must not contain a colon'],
    ];
    for (const [given, reason] of unusable) {
      const made = await client.create(secretBody(given));
      expect(made).toMatchObject({ status: 200, body: given });
      const message = expect.stringContaining(reason);
      const path = client.one(made.body.name).replace('/cloud/', '/cloudyard/');
      const verdict = await cloud.post(`${path}/verify`, undefined, client.options);
      expect(verdict).toMatchObject({ status: 200, body: { verified: false, outcome: 'unusable', message } });
      expect(await client.file(made.body.name)).toMatchObject({
        status: 409,
        body: { exception_class: 'Conflict', message },
      });
    }
  });

  it('in name is refused, and valid names may be percent-encoded in paths', async () => {
    const client = await newClient();
    for (const name of ['a.b', 'A_b-', '...', '.a', '0', '_', '-', 'x..y', 'verify', 'dockerconfigjson']) {
      expect([name, (await client.create(secretBody({ name }))).status]).toEqual([name, 200]);
      const encoded = [...name].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join('');
      for (const path of [encoded, name.replace(/\.{3}/, '%2e%2e%2e')]) {
        expect((await cloud.get(`${client.secrets}/${path}`, client.options)).body.name).toBe(name);
      }
      expect((await client.file(name)).status).toBe(200);
      expect((await cloud.delete(`${client.secrets}/${encoded}`, client.options)).status).toBe(204);
    }
    for (const name of ['.', '..', 'a b', 'a/b', 'ä', 'a%', 'a\n', '', '🙂']) {
      expect(errorPaths(await client.create(secretBody({ name })))).toEqual(['name']);
      // HTTP clients resolve these path segments before they send the request.
      if (['', '.', '..'].includes(name)) continue;
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const body = method === 'PATCH' ? {} : undefined;
        const answer = await cloud.request(method, client.one(name), body, client.options);
        expect([name, answer.status]).toEqual([name, 400]);
      }
    }
    for (const path of ['%', '%ff', '%zz', 'x'.repeat(251), 'x'.repeat(501), '%2e%2e%2f..']) {
      expect((await cloud.get(`${client.secrets}/${path}`, client.options)).status).toBe(400);
    }
  });
});

describe('a pull secret of another client', () => {
  it('returns 404, and readers cannot read its password', async () => {
    const [owner, other] = [await newClient(), await newClient()];
    const { name } = (await owner.create(secretBody())).body;
    for (const path of [owner.one(name), other.one(name)]) {
      expect((await cloud.get(path, other.options)).status).toBe(404);
      expect((await cloud.patch(path, { login: 'x' }, other.options)).status).toBe(404);
      expect((await cloud.delete(path, other.options)).status).toBe(404);
      const ours = path.replace('/cloud/', '/cloudyard/');
      expect((await cloud.get(`${ours}/dockerconfigjson`, other.options)).status).toBe(404);
      expect((await cloud.post(`${ours}/verify`, undefined, other.options)).status).toBe(404);
    }
    const reader = { token: await cloud.newToken(owner.clientId, 'reader') };
    expect((await cloud.get(owner.one(name), reader)).status).toBe(200);
    expect((await owner.file(name, reader)).status).toBe(403);
    const member = { token: await cloud.newToken(owner.clientId, 'member') };
    const file = await owner.file(name, member);
    expect([file.status, file.headers['cache-control']]).toEqual([200, 'no-store']);
  });
});
