import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { errorPaths, type Answer, useCloudyard } from '../../../test/harness.ts';
import { aCertificate, aKey, secretV1 } from './test-certificates.ts';

const cloud = useCloudyard({ driver: null });

const root = aCertificate({ name: 'root' });
const leaf = aCertificate({ name: 'leaf', issuer: root, key: aKey('rsa') });
const payload = { certificate: leaf.pem, certificate_chain: root.pem, private_key: leaf.keyPem };

async function newClient() {
  const client = await cloud.newClient();
  const options = { token: client.token };
  const of1 = `/cloud/v1/secrets/${client.projectId}/1`;
  const post = (body: object, more: object = options) => cloud.post(of1.replace('/v1/', '/v2/'), body, more);
  const postV1 = (body: object, more: object = options) => cloud.post(of1, body, more);
  const idOf = async (created: Answer): Promise<string> =>
    (await cloud.ended(created, options)).body.created_resources.secrets[0];
  const get = async (id: string) => (await cloud.get(`${of1}/${id}`, options)).body;
  const usage = async () =>
    (await cloud.get(`/cloud/v2/regional_quotas/${client.clientId}/1`, options)).body.secret_count_usage;
  return { ...client, options, secrets: of1, post, postV1, idOf, get, usage };
}

describe('storing a certificate', () => {
  it('returns a finished task, and the secret is shown without its payload', async () => {
    const client = await newClient();
    const created = await client.post({ name: 'tls', payload, expiration: '2099-12-28T19:14:44Z' });
    const task = await cloud.ended(created, client.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_secret', region_id: 1 });
    const [id, ...more] = task.body.created_resources.secrets;
    expect(more).toEqual([]);
    const secret = await client.get(id);
    expect(secret).toEqual({
      id,
      name: 'tls',
      secret_type: 'certificate',
      status: 'ACTIVE',
      algorithm: 'rsa',
      bit_length: 2048,
      mode: null,
      content_types: { default: 'application/octet-stream' },
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/),
      expiration: '2099-12-28T19:14:44+00:00',
    });
    expect((await cloud.get(client.secrets, client.options)).body).toEqual({ count: 1, results: [secret] });
    expect(await client.usage()).toBe(1);
    const pem = await cloud.services.secrets.pemOf(cloud.db, [id, randomUUID()]);
    expect([...pem]).toEqual([[id, leaf.pem + root.pem + leaf.keyPem]]);
  });

  it('records the names in the certificate in the audit log', async () => {
    const client = await newClient();
    const id = await client.idOf(await client.post({ name: 'tls', payload }));
    const { body } = await cloud.get(`/cloudyard/v1/audit?table=secrets&row_id=${id}`);
    expect(body.results[0].changes[0].after).toMatchObject({ name: 'tls', subject_names: ['leaf'] });
  });

  it('accepts an expiration in every format that clients send, or none', async () => {
    const client = await newClient();
    const shown = async (expiration: unknown) =>
      (await client.get(await client.idOf(await client.post({ name: 'x', payload, expiration })))).expiration;
    expect(await shown(null)).toBeNull();
    expect(await shown(undefined)).toBeNull();
    expect(await shown('2099-12-28T19:14:44')).toBe('2099-12-28T19:14:44+00:00');
    expect(await shown('2099-12-28T19:14:44.180394')).toBe('2099-12-28T19:14:44+00:00');
    expect(await shown('2099-12-28T19:14:44+02:00')).toBe('2099-12-28T17:14:44+00:00');
    expect(await shown('2099-12-28 19:14:44+02')).toBe('2099-12-28T17:14:44+00:00');
  });

  it('refuses invalid names, fields and dates', async () => {
    const client = await newClient();
    const refused = await client.post({
      name: '',
      payload: { certificate: 1, certificate_chain: null, passphrase: 'x' },
      expiration: 'tomorrow',
      secret_type: 'certificate',
    });
    expect(refused.status).toBe(400);
    expect(errorPaths(refused).sort()).toEqual([
      'expiration',
      'name',
      'payload.certificate',
      'payload.certificate_chain',
      'payload.passphrase',
      'payload.private_key',
      'secret_type',
    ]);
    for (const name of ['x'.repeat(256), 'a\nb', 'a\u0000b', 'a\u009fb']) {
      expect(errorPaths(await client.post({ name, payload }))).toContain('name');
    }
    for (const name of ['x', 'ß'.repeat(255), ' any text: <b>; "quoted" ']) {
      expect(await client.get(await client.idOf(await client.post({ name, payload })))).toMatchObject({ name });
    }
    for (const expiration of ['2016-12-31T23:59:60Z', '9999-12-31T23:59:59-23:00', '2020-01-01T00:00:00Z', '']) {
      expect(errorPaths(await client.post({ name: 'x', payload, expiration }))).toEqual(['expiration']);
    }
  });

  it("reports all invalid parts in one response, and uses the server's clock", async () => {
    const client = await newClient();
    cloud.clock.advance(40 * 86_400);
    const other = { certificate: leaf.pem, certificate_chain: 'none', private_key: root.keyPem };
    const refused = await client.post({ name: 'x', payload: other, expiration: new Date().toISOString() });
    cloud.clock.set(null);
    expect(refused).toMatchObject({ status: 400, body: { exception_class: 'InvalidInput' } });
    expect(errorPaths(refused).sort()).toEqual([
      'expiration',
      'payload.certificate',
      'payload.certificate_chain',
      'payload.private_key',
    ]);
    expect(refused.body.message).toContain('payload.certificate: the certificate expired on ');
    expect(await client.usage()).toBe(0);
  });

  it('refuses more than 256 KiB and accepts up to 256 KiB', async () => {
    const client = await newClient();
    const padded = (bytes: number) => ({ ...payload, certificate_chain: root.pem + ' '.repeat(bytes) });
    expect(errorPaths(await client.post({ name: 'x', payload: padded(262_144) }))).toEqual([
      'payload.certificate_chain',
    ]);
    expect(errorPaths(await client.post({ name: 'x', payload: padded(261_000) }))).toEqual(['payload']);
    expect(await client.post({ name: 'x', payload: padded(255_000) })).toMatchObject({ status: 200 });
    expect(errorPaths(await client.postV1(secretV1('opaque', 'x'.repeat(262_145))))).toEqual(['payload']);
    expect(await client.postV1(secretV1('opaque', 'x'.repeat(262_144)))).toMatchObject({ status: 200 });
  });

  it('is refused above the quota and runs once per Idempotency-Key', async () => {
    const client = await newClient();
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, secret_count_limit: 1 });
    const once = { ...client.options, headers: { 'idempotency-key': 'once' } };
    const first = await client.post({ name: 'once', payload }, once);
    expect(await client.post({ name: 'once', payload }, once)).toMatchObject({ status: 200, body: first.body });
    const refused = await client.post({ name: 'another', payload });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'QuotaExceeded' } });
    expect((await cloud.get(client.secrets, client.options)).body.count).toBe(1);
  });
});

describe('storing a secret of another type', () => {
  it('keeps the attributes that the client sends and derives the others from the key', async () => {
    const client = await newClient();
    const shown = async (body: object) => client.get(await client.idOf(await client.postV1(body)));
    const said = { algorithm: 'aes', bit_length: 256, mode: 'cbc', expiration: '2099-01-01T00:00:00+00:00' };
    expect(await shown(secretV1('symmetric', 'x'.repeat(32), said))).toMatchObject({
      ...said,
      secret_type: 'symmetric',
      content_types: { default: 'text/plain' },
    });
    const none = { algorithm: null, bit_length: null, mode: null };
    expect(await shown(secretV1('opaque', 'hush', none))).toMatchObject({ ...none, secret_type: 'opaque' });
    expect(await shown(secretV1('private', leaf.keyPem))).toMatchObject({ algorithm: 'rsa', bit_length: 2048 });
    expect(await shown(secretV1('certificate', leaf.pem + leaf.keyPem))).toMatchObject({ algorithm: 'rsa' });
    expect(await client.usage()).toBe(4);
  });

  it('refuses invalid input and names the field', async () => {
    const client = await newClient();
    const refusedAt = async (changes: object) => errorPaths(await client.postV1(secretV1('opaque', 'x', changes)));
    expect(await refusedAt({ secret_type: 'CERTIFICATE' })).toEqual(['secret_type']);
    expect(await refusedAt({ payload_content_encoding: 'hex' })).toEqual(['payload_content_encoding']);
    expect(await refusedAt({ payload_content_type: 'text' })).toEqual(['payload_content_type']);
    expect(await refusedAt({ payload: 'not base64!' })).toEqual(['payload']);
    expect(await refusedAt({ payload: '' })).toEqual(['payload']);
    expect(await refusedAt({ bit_length: 0 })).toEqual(['bit_length']);
    expect(await refusedAt({ bit_length: 2_147_483_648 })).toEqual(['bit_length']);
    expect(await refusedAt({ algorithm: '', mode: 'x'.repeat(256) })).toEqual(['algorithm', 'mode']);
    expect(await refusedAt({ secret_type: 'certificate', expiration: '2020-01-01T00:00:00' })).toEqual([
      'payload',
      'expiration',
    ]);
  });
});

describe('listing secrets', () => {
  it('returns pages, oldest first', async () => {
    const client = await newClient();
    cloud.clock.set(new Date());
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      cloud.clock.advance(1);
      ids.push(await client.idOf(await client.postV1(secretV1('opaque', 'x'))));
    }
    cloud.clock.set(null);
    const list = async (query: string) => {
      const { body } = await cloud.get(`${client.secrets}?${query}`, client.options);
      return [body.count, body.results.map((secret: { id: string }) => secret.id)];
    };
    expect(await list('')).toEqual([3, ids]);
    expect(await list('limit=2&offset=1')).toEqual([3, ids.slice(1)]);
    expect(errorPaths(await cloud.get(`${client.secrets}?limit=0&offset=-1`, client.options))).toEqual([
      'limit',
      'offset',
    ]);
  });
});

describe('deleting a secret', () => {
  it('returns a finished task and removes the secret', async () => {
    const client = await newClient();
    const id = await client.idOf(await client.post({ name: 'x', payload }));
    const task = await cloud.ended(await cloud.delete(`${client.secrets}/${id}`, client.options), client.options);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_secret' });
    expect(await cloud.get(`${client.secrets}/${id}`, client.options)).toMatchObject({ status: 404 });
    expect(await cloud.delete(`${client.secrets}/${id}`, client.options)).toMatchObject({ status: 404 });
    expect(await client.usage()).toBe(0);
  });

  it('is required before the deletion of its project', async () => {
    const client = await newClient();
    const made = await cloud.post('/cloud/v1/projects', { name: 'other' }, client.options);
    const { id: projectId } = made.body;
    const secrets = `/cloud/v1/secrets/${projectId}/1`;
    const created = await cloud.post(secrets, secretV1('opaque', 'x'), client.options);
    const id = await client.idOf(created);
    const refused = await cloud.delete(`/cloud/v1/projects/${projectId}`, client.options);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toContain(`1 secret (${id})`);
    await cloud.delete(`${secrets}/${id}`, client.options);
    expect(await cloud.delete(`/cloud/v1/projects/${projectId}`, client.options)).toMatchObject({ status: 200 });
    expect(await cloud.post(secrets, secretV1('opaque', 'x'), client.options)).toMatchObject({ status: 404 });
  });
});

describe('a secret of another client', () => {
  it("returns 404 under the owner's path and under the caller's path", async () => {
    const owner = await newClient();
    const id = await owner.idOf(await owner.post({ name: 'x', payload }));
    const other = await newClient();
    for (const path of [`${owner.secrets}/${id}`, `${other.secrets}/${id}`]) {
      expect(await cloud.get(path, other.options)).toMatchObject({ status: 404 });
      expect(await cloud.delete(path, other.options)).toMatchObject({ status: 404 });
    }
    expect(await cloud.get(owner.secrets, other.options)).toMatchObject({ status: 404 });
    expect(await cloud.post(owner.secrets, secretV1('opaque', 'x'), other.options)).toMatchObject({ status: 404 });
  });

  it('cannot be written with a reader token', async () => {
    const client = await newClient();
    const id = await client.idOf(await client.post({ name: 'x', payload }));
    const reader = { token: await cloud.newToken(client.clientId, 'reader') };
    expect(await cloud.get(`${client.secrets}/${id}`, reader)).toMatchObject({ status: 200 });
    expect(await client.post({ name: 'x', payload }, reader)).toMatchObject({ status: 403 });
    expect(await client.postV1(secretV1('opaque', 'x'), reader)).toMatchObject({ status: 403 });
    expect(await cloud.delete(`${client.secrets}/${id}`, reader)).toMatchObject({ status: 403 });
  });
});
