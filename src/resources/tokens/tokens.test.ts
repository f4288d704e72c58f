import { describe, expect, inject, it } from 'vitest';
import { openAnotherServer } from '../../../test/another-server.ts';
import { openGate } from '../../../test/crash-harness.ts';
import { openCloudyard, useCloudyard } from '../../../test/harness.ts';
import { tablesContaining } from '../../../test/table-dump.ts';
import type { ConnectionOptions } from '../../platform/db.ts';

const cloud = useCloudyard({ driver: null });
const by = (token: string) => ({ authorization: `apikey ${token}` });
const statusOf = async (token: string | null, path = '/cloud/v1/projects') => (await cloud.get(path, { token })).status;
const keyOf = (token: string) => token.split('$')[0]!;

describe('a token', () => {
  it('that the server knows is authenticated without a promise', async () => {
    const { token } = await cloud.newClient('member');
    // A server whose poll of the revision is late reads the token again.
    const authenticated = () => cloud.services.tokens.authenticate(token);
    await expect.poll(authenticated).toMatchObject({ role: 'member' });
    await expect.poll(() => authenticated() instanceof Promise).toBe(false);
  });

  it('grants the permissions of its role and no others', async () => {
    const { clientId, projectId, token: admin } = await cloud.newClient('admin');
    const member = await cloud.newToken(clientId, 'member');
    const reader = await cloud.newToken(clientId, 'reader');
    const networks = `/cloud/v1/networks/${projectId}/1`;
    const tries = async (token: string) => [
      (await cloud.get(networks, { token })).status,
      (await cloud.post(networks, { name: 'a network' }, { token })).status,
      (await cloud.post('/cloud/v1/projects', { name: `of ${keyOf(token)}` }, { token })).status,
    ];
    expect(await tries(reader)).toEqual([200, 403, 403]);
    expect(await tries(member)).toEqual([200, 200, 403]);
    expect(await tries(admin)).toEqual([200, 200, 201]);
    const refused = await cloud.post(networks, { name: 'a network' }, { token: reader });
    expect(refused.body).toMatchObject({ exception_class: 'Forbidden', message: expect.stringContaining('member') });
  });

  it("has no operator rights as another client's admin or as the operator's member", async () => {
    const { clientId, token } = await cloud.newClient('admin');
    const member = await cloud.newToken(1, 'member');
    const path = `/cloudyard/v1/clients/${clientId}/quotas`;
    for (const other of [token, member]) {
      expect((await cloud.patch(path, { keypair_count_limit: 1 }, { token: other })).status).toBe(403);
    }
    expect((await cloud.patch(path, { keypair_count_limit: 1 })).status).toBe(200);
  });

  it('limited to projects gets 403 for other projects, and lists omit them', async () => {
    const { clientId, projectId, token } = await cloud.newClient('admin');
    const other = (await cloud.post('/cloud/v1/projects', { name: 'other' }, { token })).body.id as number;
    const limited = await cloud.newToken(clientId, 'admin', [other]);
    expect(await statusOf(limited, `/cloud/v1/projects/${other}`)).toBe(200);
    expect(await statusOf(limited, `/cloud/v1/networks/${other}/1`)).toBe(200);
    for (const path of ['projects', 'networks', 'file_shares']) {
      const inside = path === 'projects' ? `${projectId}` : `${projectId}/1`;
      const refused = await cloud.get(`/cloud/v1/${path}/${inside}`, { token: limited });
      expect(refused).toMatchObject({ status: 403, body: { exception_class: 'Forbidden' } });
    }
    const list = await cloud.get('/cloud/v1/projects', { token: limited });
    expect(list.body.results.map((project: { id: number }) => project.id)).toEqual([other]);
    expect((await cloud.post('/cloud/v1/projects', { name: 'third' }, { token: limited })).status).toBe(403);
    const withoutProjects = await cloud.newToken(clientId, 'admin', []);
    expect((await cloud.get('/cloud/v1/projects', { token: withoutProjects })).body).toEqual({ count: 0, results: [] });
    expect(await statusOf(withoutProjects, `/cloud/v1/networks/${projectId}/1`)).toBe(403);
    // A project of another client returns 404 even if the token is limited to it.
    const foreignToken = await cloud.newToken((await cloud.newClient()).clientId, 'admin', [projectId]);
    expect(await statusOf(foreignToken, `/cloud/v1/networks/${projectId}/1`)).toBe(404);
  });

  it('expires exactly at its expiry time', async () => {
    const { clientId } = await cloud.newClient();
    const now = new Date('2026-11-20T10:00:00Z');
    cloud.clock.set(now);
    const token = await cloud.newToken(clientId, 'reader', null, new Date(now.getTime() + 60_000));
    expect(await statusOf(token)).toBe(200);
    cloud.clock.advance(59.999);
    expect(await statusOf(token)).toBe(200);
    cloud.clock.advance(0.001);
    expect(await statusOf(token)).toBe(401);
    cloud.clock.set(null);
  });

  it("is refused if its secret is wrong, short, long, absent or another token's", async () => {
    const { clientId, token } = await cloud.newClient();
    const [key, secret] = token.split('$') as [string, string];
    const [otherKey] = (await cloud.newToken(clientId, 'admin')).split('$') as [string];
    const wrong = [
      `${key}$`,
      `${key}$${secret}x`,
      `${key}$${secret.slice(1)}`,
      `${key}$${secret}$`,
      `${otherKey}$${secret}`,
    ];
    for (const text of [...wrong, key, secret, `$${secret}`, `${secret}$${key}`, `${key}$$${secret}`, '$', "'$'"]) {
      const answer = await cloud.get('/cloud/v1/projects', { token: text });
      expect([text, answer.status, answer.body.exception_class]).toEqual([text, 401, 'Unauthenticated']);
    }
    expect(await statusOf(token)).toBe(200);
  });

  it('is accepted with the apikey scheme in any letter case and with no other scheme', async () => {
    const { token } = await cloud.newClient();
    const statusWith = async (authorization: string) =>
      (await cloud.get('/cloud/v1/projects', { token: null, headers: { authorization } })).status;
    for (const scheme of ['apikey', 'APIKey', 'APIKEY', 'ApiKey']) {
      expect([scheme, await statusWith(`${scheme} ${token}`)]).toEqual([scheme, 200]);
    }
    for (const text of ['', token, 'apikey', 'apikey ', `Bearer ${token}`, `Basic ${token}`, `apikey${token}`]) {
      expect([text, await statusWith(text)]).toEqual([text, 401]);
    }
    const none = await cloud.get('/cloud/v1/projects', { token: null });
    expect([none.status, none.headers['www-authenticate']]).toEqual([401, 'apikey']);
  });

  it('is stored as a hash only: its secret appears nowhere in the database', async () => {
    const { token } = await cloud.newClient();
    const secret = token.split('$')[1]!;
    expect(await statusOf(token)).toBe(200);
    await cloud.post('/cloud/v1/projects', { name: 'made by it' }, { token, headers: { 'idempotency-key': 'one' } });
    expect(await tablesContaining(cloud.db, keyOf(token))).toEqual(['public.audit_entries', 'public.tokens']);
    const spellings = [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret).toString('base64')];
    expect(await tablesContaining(cloud.db, ...spellings)).toEqual([]);
  });
});

describe('revoking a token', () => {
  it('takes effect with the next read of the revision, also on other servers', async () => {
    const other = await openAnotherServer(cloud);
    const { clientId, token } = await cloud.newClient();
    const bystander = await cloud.newToken(clientId, 'reader');
    expect([await other.status(by(token)), await statusOf(token)]).toEqual([200, 200]);
    expect(await cloud.services.tokens.revoke(keyOf(token))).toBe(true);
    await other.expectRefusal(by(token));
    await expect.poll(() => statusOf(token)).toBe(401);
    expect([await other.status(by(bystander)), await statusOf(bystander)]).toEqual([200, 200]);
    await other.stop();
  });

  it('returns whether the token exists, is idempotent, and accepts a number', async () => {
    const { clientId } = await cloud.newClient();
    const { id, text } = await cloud.services.tokens.create({
      clientId,
      name: 'by number',
      role: 'reader',
      projectIds: null,
      expiresAt: null,
    });
    expect(await cloud.services.tokens.revoke(String(id))).toBe(true);
    expect(await cloud.services.tokens.revoke(keyOf(text))).toBe(true);
    expect(await cloud.services.tokens.revoke('no such token')).toBe(false);
    expect(await statusOf(text)).toBe(401);
  });

  it('never revokes another token, whose key is a number like the id', async () => {
    const { clientId, token } = await cloud.newClient();
    const { id, text } = await cloud.services.tokens.create({
      ...{ clientId, name: 'with an id', role: 'reader', projectIds: null, expiresAt: null },
    });
    const fixed = `${id}$secret-of-the-operator`;
    await cloud.services.tokens.setFixed(fixed, 1);
    await expect(cloud.services.tokens.revoke(String(id))).rejects.toThrow(
      `${id} is the id of one token and the key of another; name the first by its key ${keyOf(text)}, the other by its id `,
    );
    expect((await cloud.delete(`/cloudyard/v1/tokens/${id}`, { token })).status).toBe(204);
    await expect.poll(() => statusOf(text)).toBe(401);
    expect(await statusOf(fixed)).toBe(200);
    expect(await cloud.services.tokens.revoke(fixed)).toBe(true);
    await expect.poll(() => statusOf(fixed)).toBe(401);
  });

  it('is not bypassed by an unreachable database: requests fail with 503', async () => {
    const gate = await openGate(inject('postgres'));
    const { cloudyard, stop } = await openCloudyard(inject('postgres'), { driver: null });
    const behindGate = { ...gate.connection, database: databaseOf(cloudyard.connection) };
    const other = await openAnotherServer(cloudyard, behindGate);
    const { token } = await cloudyard.newClient();
    expect(await other.status(by(token))).toBe(200);
    await gate.cut();
    // The other server cannot receive this change: it may trust its cache for a moment, then must refuse.
    await cloudyard.services.tokens.revoke(keyOf(token));
    await expect.poll(() => other.status(by(token)), { timeout: 30_000, interval: 20 }).toBe(503);
    for (let i = 0; i < 20; i++) expect(await other.status(by(token))).toBe(503);
    await gate.restore();
    await expect.poll(() => other.status(by(token)), { timeout: 30_000, interval: 20 }).toBe(401);
    await other.stop();
    await stop();
  });
});

function databaseOf({ connectionString, database }: ConnectionOptions): string {
  return connectionString === undefined ? database! : new URL(connectionString).pathname.slice(1);
}

describe("the operator's fixed token", () => {
  it('is valid from the next start, replaces the token with the same id, and is never duplicated', async () => {
    const before = (await cloud.services.tokens.list()).length;
    for (const text of ['ci$first', 'ci$second', 'ci$second']) await cloud.services.tokens.setFixed(text, 1);
    await expect.poll(() => statusOf('ci$second')).toBe(200);
    await expect.poll(() => statusOf('ci$first')).toBe(401);
    expect((await cloud.services.tokens.list()).length).toBe(before + 1);
    await cloud.services.tokens.revoke('ci');
    await expect.poll(() => statusOf('ci$second')).toBe(401);
  });

  it('replaces the previous one with another id, and no token of a tenant with its name', async () => {
    const { clientId } = await cloud.newClient();
    const name = 'CLOUDYARD_BOOTSTRAP_TOKEN';
    const { text } = await cloud.services.tokens.create({
      ...{ clientId, name, role: 'reader', projectIds: null, expiresAt: null },
    });
    for (const fixed of ['one$secret', 'two$secret']) await cloud.services.tokens.setFixed(fixed, 1);
    await expect.poll(() => statusOf('one$secret')).toBe(401);
    expect([await statusOf('two$secret'), await statusOf(text)]).toEqual([200, 200]);
  });
});
