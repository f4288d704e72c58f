/** Registries through the API: validation, quota, users and visibility. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { tablesContaining } from '../../../test/table-dump.ts';

const cloud = useCloudyard();
let client: { clientId: number; projectId: number; token: string };
let all: string;
let names = 0;

beforeAll(async () => {
  client = await cloud.newClient();
  all = `/cloud/v1/registries/${client.projectId}/1`;
  const limits = { registry_count: 1000, registry_storage: 100_000 };
  await cloud.services.quota.setLimits(cloud.db as never, { clientId: client.clientId, regionId: 1 }, limits);
});

const by = () => ({ token: client.token });
const freshName = () => `registry-${(names += 1)}`;
const make = async (body: object = {}) => {
  const answer = await cloud.post(all, { name: freshName(), ...body }, by());
  expect(answer.status).toBe(201);
  return answer.body as { id: number; name: string; url: string };
};
const usage = async () =>
  cloud.services.quota.figures(cloud.db, { clientId: client.clientId, regionId: 1 }, [
    'registry_count',
    'registry_storage',
  ]);
const used = async () => (await usage()).map((each) => each.usage);

describe('a registry', () => {
  it('is available immediately, under a unique URL', async () => {
    const { status, body } = await cloud.post(all, { name: 'images' }, by());
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(Number),
      name: 'images',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      updated_at: body.created_at,
      repo_count: 0,
      storage_limit: 5,
      storage_used: 0,
      url: `127.0.0.1:5000/images-${body.id}`,
    });
    expect((await cloud.get(`${all}/${body.id}`, by())).body).toEqual(body);
    expect((await cloud.get(all, by())).body).toMatchObject({ count: 1, results: [body] });
  });

  it.each([
    [{}, 'name'],
    [{ name: 'Upper' }, 'name'],
    [{ name: 'a' }, 'name'],
    [{ name: `a${'b'.repeat(24)}` }, 'name'],
    [{ name: '1abc' }, 'name'],
    [{ name: 'abc-' }, 'name'],
    [{ name: 'under_score' }, 'name'],
    [{ name: 'good', storage_limit: 0 }, 'storage_limit'],
    [{ name: 'good', storage_limit: -1 }, 'storage_limit'],
    [{ name: 'good', storage_limit: 1.5 }, 'storage_limit'],
    [{ name: 'good', storage_limit: '5' }, 'storage_limit'],
    [{ name: 'good', storage_limit: 1001 }, 'storage_limit'],
    [{ name: 'good', storage_limit: null }, 'storage_limit'],
    [{ name: 'good', tags: {} }, 'tags'],
  ])('is refused for %j', async (body, path) => {
    const answer = await cloud.post(all, body, by());
    expect(answer).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(answer.body.errors.map((each: { path: string }) => each.path)).toContain(path);
  });

  it('has a unique name in its project and region, also with parallel requests', async () => {
    const name = freshName();
    const answers = await Promise.all(Array.from({ length: 8 }, () => cloud.post(all, { name }, by())));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
    const refused = answers.find(({ status }) => status === 409)!;
    expect(refused.body).toMatchObject({ exception_class: 'NameTaken' });
    expect(refused.headers['x-should-retry']).toBe('false');
    const other = await cloud.newClient();
    const path = `/cloud/v1/registries/${other.projectId}/1`;
    expect((await cloud.post(path, { name }, { token: other.token })).status).toBe(201);
  });

  it('is created once per Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'once' };
    const body = { name: freshName() };
    const [first, second] = [
      await cloud.post(all, body, { ...by(), headers }),
      await cloud.post(all, body, { ...by(), headers }),
    ];
    expect(second).toMatchObject({ status: 201, body: first.body });
  });

  it('counts against the quota on create and resize, and releases it on delete', async () => {
    const [count, storage] = (await used()) as [number, number];
    const { id } = await make({ storage_limit: 10 });
    expect(await used()).toEqual([count + 1, storage + 10]);
    const resize = (storage_limit: unknown) => cloud.patch(`${all}/${id}/resize`, { storage_limit }, by());
    expect((await resize(12)).body).toMatchObject({ id, storage_limit: 12 });
    expect(await used()).toEqual([count + 1, storage + 12]);
    expect((await resize(1)).body).toMatchObject({ storage_limit: 1 });
    expect(await used()).toEqual([count + 1, storage + 1]);
    for (const wrong of [0, -1, 1.5, '5', 1001, null]) expect((await resize(wrong)).status).toBe(400);
    expect((await cloud.patch(`${all}/${id}/resize`, {}, by())).body.storage_limit).toBe(5);
    expect((await cloud.delete(`${all}/${id}`, by())).status).toBe(204);
    expect((await cloud.delete(`${all}/${id}`, by())).status).toBe(404);
    expect(await used()).toEqual([count, storage]);
  });

  it('cannot exceed the quota, also with parallel requests', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const scope = { clientId, regionId: 1 };
    await cloud.services.quota.setLimits(cloud.db as never, scope, { registry_storage: 20, registry_count: 100 });
    const path = `/cloud/v1/registries/${projectId}/1`;
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => cloud.post(path, { name: `many-${i}`, storage_limit: 6 }, { token })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    const refused = answers.find(({ status }) => status === 409)!;
    expect(refused.body.message).toContain('registry_storage');
    const { id } = answers.find(({ status }) => status === 201)!.body;
    const grown = await cloud.patch(`${path}/${id}/resize`, { storage_limit: 9 }, { token });
    expect(grown).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
    expect((await cloud.get(`${path}/${id}`, { token })).body.storage_limit).toBe(6);
  });

  it('returns 404 to other clients and for an unknown id, 400 for an invalid id', async () => {
    const { id } = await make();
    const otherClient = await cloud.newClient();
    const foreignPath = `/cloud/v1/registries/${otherClient.projectId}/1/${id}`;
    for (const path of [foreignPath, `${foreignPath}/users`, `${foreignPath}/repositories`]) {
      expect((await cloud.get(path, { token: otherClient.token })).status).toBe(404);
    }
    expect((await cloud.delete(foreignPath, { token: otherClient.token })).status).toBe(404);
    expect((await cloud.get(`${all}/x`, by())).status).toBe(400);
    expect((await cloud.get(`${all}/99999999999`, by())).status).toBe(400);
    expect((await cloud.get(`${all}/2147483647`, by())).status).toBe(404);
  });

  it('blocks the deletion of its project', async () => {
    const { clientId, token } = await cloud.newClient();
    const project = (await cloud.post('/cloud/v1/projects', { name: `for ${clientId}` }, { token })).body;
    const path = `/cloud/v1/registries/${project.id}/1`;
    const { id } = (await cloud.post(path, { name: 'keeper' }, { token })).body;
    const refused = await cloud.delete(`/cloud/v1/projects/${project.id}`, { token });
    expect(refused).toMatchObject({ status: 409 });
    expect(refused.body.message).toContain(`1 registry (${id})`);
  });
});

describe('check_limits', () => {
  it('returns only the limits that would be exceeded', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const scope = { clientId, regionId: 1 };
    const check = (body: unknown) => cloud.post(`/cloud/v1/registries/${projectId}/1/check_limits`, body, { token });
    await cloud.services.quota.setLimits(cloud.db as never, scope, { registry_storage: 10, registry_count: 1 });
    expect((await check({ storage_limit: 10 })).body).toEqual({});
    expect((await check({ storage_limit: 11 })).body).toEqual({
      registry_storage_limit: 10,
      registry_storage_requested: 11,
      registry_storage_usage: 0,
    });
    await cloud.post(`/cloud/v1/registries/${projectId}/1`, { name: 'one', storage_limit: 10 }, { token });
    expect((await check({})).body).toEqual({
      registry_count_limit: 1,
      registry_count_requested: 1,
      registry_count_usage: 1,
    });
  });

  it('returns limits for any size', async () => {
    const storage_limit = Number.MAX_SAFE_INTEGER;
    const { status, body } = await cloud.post(`${all}/check_limits`, { storage_limit }, by());
    expect([status, body.registry_storage_requested]).toEqual([200, storage_limit]);
  });

  it.each([-1, 1.5, '1', 2 ** 53, null, true])('refuses %j', async (storage_limit) => {
    const answer = await cloud.post(`${all}/check_limits`, { storage_limit }, by());
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: 'storage_limit' }] } });
  });
});

describe('a user', () => {
  it('has a secret that is shown once and never stored in plain text', async () => {
    const { id } = await make();
    const users = `${all}/${id}/users`;
    const headers = { 'idempotency-key': 'a user' };
    const body = { name: 'ci', duration: 30 };
    const { status, body: made } = await cloud.post(users, body, { ...by(), headers });
    expect(status).toBe(201);
    expect(made).toEqual({
      id: expect.any(Number),
      name: 'ci',
      created_at: expect.any(String),
      duration: 30,
      expires_at: expect.any(String),
      read_only: false,
      secret: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(30 * 86_400_000);
    // The response stored for the Idempotency-Key is encrypted.
    expect((await cloud.post(users, body, { ...by(), headers })).body).toEqual(made);
    const { secret, ...shown } = made;
    expect((await cloud.get(users, by())).body).toEqual({ count: 1, results: [shown] });
    expect(await tablesContaining(cloud.db, secret, Buffer.from(secret).toString('hex'))).toEqual([]);
    const fresh = (await cloud.post(`${users}/${made.id}/refresh_secret`, undefined, by())).body;
    expect(fresh).toEqual({ ...shown, secret: expect.stringMatching(/^[\w-]{43}$/) });
    expect(fresh.secret).not.toBe(secret);
  });

  it('expires after its duration, counted from the last change of the duration', async () => {
    const { id } = await make();
    const users = `${all}/${id}/users`;
    const made = (await cloud.post(users, { name: 'a', duration: -1, read_only: true }, by())).body;
    expect(made.expires_at).toBe('9999-12-31T00:00:00Z');
    const changed = (await cloud.patch(`${users}/${made.id}`, { duration: 0 }, by())).body;
    expect(changed).toMatchObject({ duration: 0, read_only: true });
    expect(Date.parse(changed.expires_at)).toBeLessThanOrEqual(Date.now());
    const open = (await cloud.patch(`${users}/${made.id}`, { duration: 365, read_only: false }, by())).body;
    expect(open).toMatchObject({ duration: 365, read_only: false });
    expect((await cloud.delete(`${users}/${made.id}`, by())).status).toBe(204);
    for (const gone of [
      cloud.delete(`${users}/${made.id}`, by()),
      cloud.patch(`${users}/${made.id}`, { duration: 1 }, by()),
      cloud.post(`${users}/${made.id}/refresh_secret`, undefined, by()),
    ]) {
      expect((await gone).status).toBe(404);
    }
  });

  it.each([
    [{ duration: 1 }, 'name'],
    [{ name: '', duration: 1 }, 'name'],
    [{ name: 'Upper', duration: 1 }, 'name'],
    [{ name: 'with-dash', duration: 1 }, 'name'],
    [{ name: 'a'.repeat(17), duration: 1 }, 'name'],
    [{ name: 'a' }, 'duration'],
    [{ name: 'a', duration: -2 }, 'duration'],
    [{ name: 'a', duration: 366 }, 'duration'],
    [{ name: 'a', duration: 1.5 }, 'duration'],
    [{ name: 'a', duration: '1' }, 'duration'],
    [{ name: 'a', duration: 1, read_only: 'yes' }, 'read_only'],
    [{ name: 'a', duration: 1, secret: 5 }, 'secret'],
    [{ name: 'a', duration: 1, secret: 'a\u0000b' }, 'secret'],
    [{ name: 'a', duration: 1, secret: 'a'.repeat(256) }, 'secret'],
    [{ name: 'a', duration: 1, admin: true }, 'admin'],
  ])('is refused for %j, alone or in a batch', async (body, path) => {
    const { id } = await make();
    const users = `${all}/${id}/users`;
    const alone = await cloud.post(users, body, by());
    expect([alone.status, alone.body.errors[0].path]).toEqual([400, path]);
    const batch = await cloud.post(`${users}/batch`, { users: [{ name: 'good', duration: 1 }, body] }, by());
    expect([batch.status, batch.body.errors[0].path]).toEqual([400, `users.1.${path}`]);
    expect((await cloud.get(users, by())).body.count).toBe(0);
  });

  it('is listed in pages, as registries are', async () => {
    const { id } = await make();
    await cloud.post(all, { name: 'another' }, by());
    const first = (await cloud.get(`${all}?limit=1`, by())).body;
    expect(first.results).toHaveLength(1);
    expect(first.count).toBeGreaterThan(1);
    const users = `${all}/${id}/users`;
    const given = ['one', 'two', 'three'].map((name) => ({ name, duration: -1 }));
    await cloud.post(`${users}/batch`, { users: given }, by());
    const page = (await cloud.get(`${users}?limit=1&offset=1`, by())).body;
    expect(page).toMatchObject({ count: 3, results: [{ name: 'two' }] });
  });

  it('is created in a batch atomically', async () => {
    const { id } = await make();
    const users = `${all}/${id}/users`;
    const batch = (...names: string[]) =>
      cloud.post(`${users}/batch`, { users: names.map((name) => ({ name, duration: 1 })) }, by());
    expect((await batch()).status).toBe(400);
    expect((await batch('a', 'b', 'a')).body.errors).toMatchObject([{ path: 'users.2.name' }]);
    const { status, body } = await batch('a', 'b');
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: 'a', count: 2, results: [{ name: 'a' }, { name: 'b' }] });
    expect(body.secret).toBe(body.results[0].secret);
    const taken = (path: string) => ({ status: 409, body: { errors: [{ path, message: 'is taken' }] } });
    expect(await batch('c', 'b')).toMatchObject(taken('users.1.name'));
    expect(await cloud.post(users, { name: 'a', duration: 1 }, by())).toMatchObject(taken('name'));
    expect((await cloud.get(users, by())).body.results.map((each: { name: string }) => each.name)).toEqual(['a', 'b']);
  });
});
