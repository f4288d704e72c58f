/** Invalid requests of API keys. */
import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';
import { keyBody, keyBuilders, web } from './test-api-keys.ts';

const cloud = useCloudyard({ driver: null });
const { authorize, newClient } = keyBuilders(cloud);

describe('invalid input', () => {
  it('in containers is refused where all keys of the project would name more than 100,000', async () => {
    const client = await newClient();
    const name = (await client.create(keyBody({ name: 'large' }))).body.name as string;
    await cloud.db.$client.query(
      `update api_keys set containers = (select jsonb_agg(jsonb_build_object('name', 'c' || n, 'namespace', 'd'))
         from generate_series(1, 99999) n) where name = $1 and project_id = $2`,
      [name, client.projectId],
    );
    const other = { name: 'api', namespace: 'default' };
    const refused = await client.create(keyBody({ name: 'second', containers: [web, other] }));
    const message =
      'must have at most 1 containers: the API keys of a project name at most 100000 together, and the others name 99999';
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path: 'containers', message }] } });
    expect((await client.create(keyBody({ name: 'second', containers: [web] }))).status).toBe(200);
    const update = (containers: object[]) =>
      cloud.patch(`/cloud/v1/caas/keys/${client.projectId}/1/second`, { containers }, { token: client.token });
    expect(await update([web, other])).toMatchObject({ status: 400, body: { errors: [{ path: 'containers' }] } });
    expect((await update([other])).status).toBe(200);
    expect((await update([])).status).toBe(200);
  });

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
    expect(errorPaths(refused).sort()).toEqual([
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

  it('in name is refused outside its length limits and for invalid characters', async () => {
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
      expect(errorPaths(await client.create(keyBody({ name })))).toEqual(['name']);
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
      expect(errorPaths(await client.create(keyBody({ expire })))).toEqual(['expire']);
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
    expect(errorPaths(await cloud.patch(client.one(name), { containers: [other, other] }, client.options))).toEqual([
      'containers.1',
    ]);
    const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `c${i}x`, namespace: 'default' }));
    expect(errorPaths(await client.create(keyBody({ containers: many(10_001) })))).toEqual(['containers']);
    const all = await client.create(keyBody({ containers: many(10_000) }));
    expect(all.status).toBe(200);
    expect(await authorize(all.body.secret, { name: 'c9999x', namespace: 'default' })).toBe(204);
    expect(await authorize(all.body.secret, { name: 'c10000x', namespace: 'default' })).toBe('403 other_container');
    expect((await cloud.get(client.one(all.body.name), client.options)).body.containers).toEqual(many(10_000));
  });

  it('in an update is refused: unknown fields and wrong types', async () => {
    const client = await newClient();
    const { name } = (await client.create(keyBody())).body;
    const update = async (changes: unknown) => errorPaths(await cloud.patch(client.one(name), changes, client.options));
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
    expect(errorPaths(await client.create({ name: 'xx', containers: null }))).toEqual(['containers']);
  });
});
