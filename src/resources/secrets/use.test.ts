/** Users of secrets look them up, lock them, and decrypt them with any key in the key file. */
import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { transaction, type Tx } from '../../platform/db.ts';
import { createKeyring, EncryptionError, type EncryptionKey } from '../../platform/encryption.ts';
import { createSecrets, type SecretReference } from './service.ts';
import { aCertificate, aRevocationList, secretV1 } from './test-certificates.ts';

const cloud = useCloudyard({ driver: null, audit: false });
const unknownId = '11111111-1111-4111-8111-111111111111';

const root = aCertificate({ name: 'root' });
const leaf = aCertificate({ name: 'leaf', issuer: root });
const pair = {
  name: 'pair',
  payload: { certificate: leaf.pem, certificate_chain: root.pem, private_key: leaf.keyPem },
};

async function newClient() {
  const client = await cloud.newClient();
  const options = { token: client.token };
  const secrets = `/cloud/v1/secrets/${client.projectId}/1`;
  /** Stores the secret and returns its id. */
  const stored = async (body: { payload: unknown }): Promise<string> => {
    const path = typeof body.payload === 'string' ? secrets : secrets.replace('/v1/', '/v2/');
    const task = await cloud.ended(await cloud.post(path, body, options), options);
    return task.body.created_resources.secrets[0];
  };
  const usage = async () =>
    (await cloud.get(`/cloud/v2/regional_quotas/${client.clientId}/1`, options)).body.secret_count_usage;
  const scope = { clientId: client.clientId, projectId: client.projectId, regionId: 1, regionName: 'local' };
  return { ...client, options, secrets, stored, usage, scope };
}
type Client = Awaited<ReturnType<typeof newClient>>;

const newKey = (id: string): EncryptionKey => ({ id, key: randomBytes(32) });

/** The service as main creates it, with a table of this test as the user of secrets. */
function secretsWith(keys: EncryptionKey[] = [newKey('one')]) {
  const usesOfSecret = async (tx: Tx, id: string) => {
    const { rows } = await tx.$client.query('select user_id from secret_users where secret_id = $1', [id]);
    return rows.length === 0 ? [] : [{ kind: 'listener', count: rows.length, ids: rows.map((row) => row.user_id) }];
  };
  return createSecrets({ ...cloud.services, keyring: createKeyring(keys), usedBy: [usesOfSecret] });
}

function contextOf(client: Client): RequestContext {
  const actor = { tokenId: 1, clientId: client.clientId, role: 'member' as const, projectIds: null, operator: false };
  return { actor, requestId: randomUUID() };
}

describe('a secret in use', () => {
  beforeAll(async () => {
    await cloud.db.$client.query('create table secret_users (user_id text, secret_id uuid)');
  });
  const lock = (client: Client, ...wanted: SecretReference[]) =>
    transaction(cloud.db, (tx) => cloud.services.secrets.holdForUse(tx, client.scope, wanted));

  it('is found by kind, project and region until it expires', async () => {
    const client = await newClient();
    const expiration = '2098-01-01T00:00:00Z';
    const [both, ca, crl, text, short] = await Promise.all([
      client.stored(secretV1('opaque', leaf.pem + leaf.keyPem)),
      client.stored(secretV1('public', root.pem)),
      client.stored(secretV1('certificate', aRevocationList(root, null))),
      client.stored(secretV1('opaque', 'x')),
      client.stored(secretV1('certificate', aRevocationList(root, null), { expiration })),
    ]);
    await lock(client);
    await lock(
      client,
      { id: both.toUpperCase(), kind: 'certificate', path: 'secret_id' },
      { id: both, kind: 'certificate', path: 'sni_secret_id.0' },
      { id: ca, kind: 'ca', path: 'ca_secret_id' },
      { id: crl, kind: 'crl', path: 'crl_secret_id' },
    );
    const wrong: SecretReference[] = [
      { id: unknownId, kind: 'certificate', path: 'secret_id' },
      { id: ca, kind: 'certificate', path: 'sni_secret_id.0' },
      { id: both, kind: 'ca', path: 'ca_secret_id' },
      { id: text, kind: 'crl', path: 'crl_secret_id' },
    ];
    await expect(lock(client, ...wrong)).rejects.toMatchObject({
      code: 'InvalidInput',
      errors: [
        { path: 'secret_id', message: `secret ${unknownId} not found in this project and region` },
        { path: 'sni_secret_id.0', message: `secret ${ca} (public) does not contain a certificate with a private key` },
        { path: 'ca_secret_id', message: `secret ${both} (opaque) does not contain a CA certificate` },
        { path: 'crl_secret_id', message: `secret ${text} (opaque) does not contain a certificate revocation list` },
      ],
    });
    const other = await newClient();
    await expect(lock(other, { id: ca, kind: 'ca', path: 'x' })).rejects.toMatchObject({ errors: [{ path: 'x' }] });
    const elsewhere = transaction(cloud.db, (tx) =>
      cloud.services.secrets.holdForUse(tx, { ...client.scope, regionId: 2 }, [{ id: ca, kind: 'ca', path: 'x' }]),
    );
    await expect(elsewhere).rejects.toMatchObject({ errors: [{ path: 'x' }] });

    cloud.clock.set(new Date('2098-01-02'));
    const late = lock(
      client,
      { id: both, kind: 'certificate', path: 'secret_id' },
      { id: crl, kind: 'crl', path: 'endless' },
      { id: short, kind: 'crl', path: 'crl_secret_id' },
    );
    await expect(late).rejects.toMatchObject({
      errors: [
        { path: 'secret_id', message: expect.stringMatching(/^secret .* expired on 2\d{3}-/) },
        { path: 'crl_secret_id', message: `secret ${short} expired on ${expiration}` },
      ],
    });
    cloud.clock.set(null);
  });

  it('cannot be deleted; the message names its users', async () => {
    const client = await newClient();
    const secrets = secretsWith();
    const id = await client.stored(pair);
    await cloud.db.$client.query(`insert into secret_users values ('a listener', $1)`, [id]);
    await expect(secrets.delete(contextOf(client), client.scope, id)).rejects.toMatchObject({
      code: 'InUse',
      message: `secret ${id} is in use by 1 listener (a listener); delete what uses it first`,
      headers: { 'x-should-retry': 'false' },
    });
    await cloud.db.$client.query('delete from secret_users');
    await secrets.delete(contextOf(client), client.scope, id);
    expect(await client.usage()).toBe(0);
  });

  it('cannot be deleted while a user of it is being created', async () => {
    const client = await newClient();
    const secrets = secretsWith();
    for (let i = 0; i < 10; i++) {
      const id = await client.stored(pair);
      const using = transaction(cloud.db, async (tx) => {
        await secrets.holdForUse(tx, client.scope, [{ id, kind: 'certificate', path: 'secret_id' }]);
        await tx.$client.query('select pg_sleep(0.01)');
        await tx.$client.query(`insert into secret_users values ('a listener', $1)`, [id]);
      });
      const both = await Promise.allSettled([using, secrets.delete(contextOf(client), client.scope, id)]);
      const codes = both.map((one) => (one.status === 'rejected' ? one.reason.code : 'done'));
      expect(codes).toEqual(codes[0] === 'done' ? ['done', 'InUse'] : ['InvalidInput', 'done']);
    }
  });

  it('cannot be deleted while a foreign key references it', async () => {
    const client = await newClient();
    const id = await client.stored(pair);
    await cloud.db.$client.query('create table secret_pools (secret_id uuid references secrets (id))');
    await cloud.db.$client.query('insert into secret_pools values ($1)', [id]);
    const refused = await cloud.delete(`${client.secrets}/${id}`, client.options);
    await cloud.db.$client.query('drop table secret_pools');
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
  });
});

describe('the encryption key of secrets', () => {
  beforeEach(async () => {
    await cloud.db.$client.query('delete from secrets');
  });

  it('can be rotated: secrets are re-encrypted and unchanged', async () => {
    const client = await newClient();
    const [old, current] = [newKey('old'), newKey('current')];
    for (let i = 0; i < 120; i++) await secretsWith([old]).create(contextOf(client), client.scope, pair);
    const { rows } = await cloud.db.$client.query<{ id: string }>('select id from secrets');
    const ids = rows.map((row) => row.id);
    const rotating = secretsWith([current, old]);
    expect((await rotating.pemOf(cloud.db, ids)).size).toBe(120);
    expect(await rotating.reencrypt()).toBe(120);
    expect(await rotating.reencrypt()).toBe(0);
    const pem = await secretsWith([current]).pemOf(cloud.db, ids);
    expect(new Set(pem.values())).toEqual(new Set([leaf.pem + root.pem + leaf.keyPem]));
    await expect(secretsWith([old]).pemOf(cloud.db, ids)).rejects.toThrow(EncryptionError);
  });

  it('is rotated for all readable rows, and the error names the corrupt row', async () => {
    const client = await newClient();
    const [old, current] = [newKey('old'), newKey('current')];
    for (let i = 0; i < 3; i++) await secretsWith([old]).create(contextOf(client), client.scope, pair);
    const { rows } = await cloud.db.$client.query<{ id: string }>('select id from secrets order by id');
    const [corrupt, ...readable] = rows.map((row) => row.id) as [string, ...string[]];
    const last = 'set_byte(payload, length(payload) - 1, 255 - get_byte(payload, length(payload) - 1))';
    await cloud.db.$client.query(`update secrets set payload = ${last} where id = $1`, [corrupt]);
    await expect(secretsWith([current, old]).reencrypt()).rejects.toThrow(`secret:${corrupt} does not decrypt`);
    expect((await secretsWith([current]).pemOf(cloud.db, readable)).size).toBe(2);
  });

  it('does not decrypt a payload that was copied to another row', async () => {
    const client = await newClient();
    const secrets = secretsWith();
    for (let i = 0; i < 2; i++) await secrets.create(contextOf(client), client.scope, pair);
    await cloud.db.$client.query('update secrets set payload = (select payload from secrets order by id limit 1)');
    const { rows } = await cloud.db.$client.query<{ id: string }>('select id from secrets order by id');
    const [first, second] = rows.map((row) => row.id) as [string, string];
    expect((await secrets.pemOf(cloud.db, [first])).size).toBe(1);
    await expect(secrets.pemOf(cloud.db, [second])).rejects.toThrow(`secret:${second} does not decrypt`);
  });
});
