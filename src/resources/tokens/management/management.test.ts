import { describe, expect, it, vi } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';

const path = '/cloudyard/v1/tokens';
const cloud = useCloudyard({ driver: null });
const projects = '/cloud/v1/projects';

const statusOf = async (token: string) => (await cloud.get(projects, { token })).status;
/** The id of a token, as an admin of its client sees it. */
const idOf = async (text: string, admin = text): Promise<number> => {
  const { body } = await cloud.get(path, { token: admin });
  return body.results.find((each: { key_id: string }) => each.key_id === text.split('$')[0]).id;
};

describe('creating a token', () => {
  it('returns its secret once, and the token works', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const body = {
      name: 'ci \u{1f600} <b>',
      role: 'member',
      project_ids: [projectId],
      expires_at: '2030-01-01T00:00:00Z',
    };
    const made = await cloud.post(path, body, { token });
    expect(made.status).toBe(201);
    const { token: text, ...rest } = made.body;
    expect(rest).toEqual({
      ...body,
      id: expect.any(Number),
      key_id: text.split('$')[0],
      client_id: clientId,
      state: 'active',
      created_at: expect.stringMatching(/Z$/),
      revoked_at: null,
      last_used_at: null,
    });
    expect(await statusOf(text)).toBe(200);
    expect((await cloud.post(projects, { name: 'not by a member' }, { token: text })).status).toBe(403);
    const shown = await cloud.get(`${path}/${rest.id}`, { token });
    expect(shown.body).toEqual(rest);
    expect(JSON.stringify((await cloud.get(path, { token })).body)).not.toContain(text.split('$')[1]);
  });

  it('is audited without the secret, under the client of the token', async () => {
    const { clientId } = await cloud.newClient();
    const made = await cloud.post(path, { name: 'by the operator', role: 'admin', client_id: clientId });
    const { rows } = await cloud.db.$client.query('select * from audit_entries where request_id = $1', [
      made.headers['x-request-id'],
    ]);
    expect(rows).toMatchObject([{ operation: 'createToken', client_id: clientId, token_id: 1 }]);
    expect(JSON.stringify(rows)).toContain('by the operator');
    expect(JSON.stringify(rows)).not.toContain(made.body.token.split('$')[1]);
  });

  it('is done once under an Idempotency-Key, with the same answer', async () => {
    const { token } = await cloud.newClient();
    const create = () =>
      cloud.post(path, { name: 'once', role: 'reader' }, { token, headers: { 'idempotency-key': 'token-1' } });
    const [first, second] = [await create(), await create()];
    expect([first.status, second.body]).toEqual([201, first.body]);
    expect((await cloud.get(path, { token })).body.count).toBe(2);
  });

  it.each<[object, string[]]>([
    [{}, ['name', 'role']],
    [{ name: '', role: 'owner' }, ['name', 'role']],
    [{ name: 'a\nb', role: 'reader' }, ['name']],
    [{ name: 'x'.repeat(256), role: 'reader' }, ['name']],
    [{ name: 'x', role: 'reader', project_ids: [999_999, 1] }, ['project_ids.0', 'project_ids.1']],
    [{ name: 'x', role: 'reader', project_ids: [1, 1] }, ['project_ids.1']],
    [{ name: 'x', role: 'reader', expires_at: '2020-01-01T00:00:00Z' }, ['expires_at']],
    [{ name: 'x', role: 'reader', expires_at: 'tomorrow' }, ['expires_at']],
    [{ name: 'x', role: 'reader', secret: 'mine' }, ['secret']],
    [
      { name: 'x', role: 'reader', project_ids: [999_999], expires_at: '2020-01-01T00:00:00Z' },
      ['expires_at', 'project_ids.0'],
    ],
  ])('with %j returns 400 at %j', async (body, paths) => {
    const { token } = await cloud.newClient();
    const answer = await cloud.post(path, body, { token });
    expect([answer.status, answer.body.errors.map((error: { path: string }) => error.path)]).toEqual([400, paths]);
  });
});

describe('the rights of the caller', () => {
  it('limit the client: only the operator manages tokens of others', async () => {
    const [mine, other] = [await cloud.newClient(), await cloud.newClient()];
    const foreign = { name: 'x', role: 'reader', client_id: other.clientId };
    const unknown = (client: number) => ({
      status: 400,
      body: { errors: [{ path: 'client_id', message: `client ${client} not found` }] },
    });
    expect(await cloud.post(path, foreign, { token: mine.token })).toMatchObject(unknown(other.clientId));
    expect((await cloud.get(`${path}?client_id=${other.clientId}`, { token: mine.token })).status).toBe(404);
    const id = await idOf(other.token);
    for (const method of ['GET', 'DELETE']) {
      const answer = await cloud.request(method, `${path}/${id}`, undefined, { token: mine.token });
      expect([method, answer.status]).toEqual([method, 404]);
    }
    expect(await statusOf(other.token)).toBe(200);
    const byOperator = await cloud.get(`${path}?client_id=${other.clientId}`);
    expect(byOperator.body.results.map((each: { id: number }) => each.id)).toEqual([id]);
    expect(await cloud.post(path, { ...foreign, client_id: 999_999 })).toMatchObject(unknown(999_999));
  });

  it('limit the role: readers and members have no access', async () => {
    const { clientId } = await cloud.newClient();
    for (const role of ['reader', 'member'] as const) {
      const token = await cloud.newToken(clientId, role);
      expect((await cloud.get(path, { token })).status).toBe(403);
      expect((await cloud.post(path, { name: 'x', role: 'reader' }, { token })).status).toBe(403);
    }
  });

  it('limit the projects of an admin that is limited to some', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const second = (await cloud.post(projects, { name: 'second' }, { token })).body.id as number;
    const limited = await cloud.newToken(clientId, 'admin', [projectId]);
    const tries = async (project_ids: number[] | null | undefined) =>
      (await cloud.post(path, { name: 'x', role: 'reader', project_ids }, { token: limited })).status;
    expect([
      await tries(null),
      await tries(undefined),
      await tries([second]),
      await tries([projectId, second]),
    ]).toEqual([403, 403, 403, 403]);
    expect([await tries([projectId]), await tries([])]).toEqual([201, 201]);
    const seen = (await cloud.get(path, { token: limited })).body;
    expect([seen.count, seen.results.every((each: { project_ids: number[] }) => each.project_ids)]).toEqual([3, true]);
    const id = await idOf(token);
    expect((await cloud.delete(`${path}/${id}`, { token: limited })).status).toBe(404);
    const ofOperator = await cloud.newToken(1, 'admin', [1]);
    expect((await cloud.get(`${path}?client_id=${clientId}`, { token: ofOperator })).status).toBe(404);
    expect((await cloud.get(`${path}/${id}`, { token: ofOperator })).status).toBe(404);
  });

  it('limit the expiry of a token to that of the token that creates it', async () => {
    const { clientId } = await cloud.newClient();
    const token = await cloud.newToken(clientId, 'admin', null, new Date('2030-01-01T00:00:00Z'));
    const tries = async (expires_at: string | null) =>
      (await cloud.post(path, { name: 'x', role: 'admin', expires_at }, { token })).status;
    expect([await tries(null), await tries('2030-01-01T00:00:01Z'), await tries('2030-01-01T00:00:00Z')]).toEqual([
      400, 400, 201,
    ]);
  });
});

describe('the list of tokens', () => {
  it('has the newest first, in pages, by state', async () => {
    const { clientId, token } = await cloud.newClient();
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const expiring = await cloud.newToken(clientId, 'reader', null, new Date('2026-11-20T11:00:00Z'));
    const revoked = await cloud.newToken(clientId, 'reader');
    expect((await cloud.delete(`${path}/${await idOf(revoked, token)}`, { token })).status).toBe(204);
    cloud.clock.advance(3600);
    const keys = async (query: string) =>
      (await cloud.get(`${path}${query}`, { token })).body.results.map((each: { key_id: string }) => each.key_id);
    const key = (text: string) => text.split('$')[0];
    expect(await keys('')).toEqual([key(revoked), key(expiring), key(token)]);
    expect(await keys('?limit=1&offset=1')).toEqual([key(expiring)]);
    expect([await keys('?state=active'), await keys('?state=expired'), await keys('?state=revoked')]).toEqual([
      [key(token)],
      [key(expiring)],
      [key(revoked)],
    ]);
    expect((await cloud.get(`${path}?state=unknown`, { token })).status).toBe(400);
    cloud.clock.set(null);
  });

  it('reads the tokens of the client only', async () => {
    const [{ token }, { clientId }] = [await cloud.newClient(), await cloud.newClient()];
    await cloud.db.$client.query(
      `insert into tokens (key_id, secret_hash, client_id, name, role, created_at, revoked_at)
       select 'many-' || n, '', $1, 'many', 'reader', now(), now() from generate_series(1, 20000) n`,
      [clientId],
    );
    await cloud.db.$client.query('analyze tokens');
    const query = vi.spyOn(cloud.db.$client, 'query');
    expect((await cloud.get(path, { token })).body.count).toBe(1);
    const sent = query.mock.calls.map(([statement]) => statement as unknown as { text: string; values: unknown[] });
    query.mockRestore();
    const lists = sent.filter(({ text }) => text?.includes('from "tokens"'));
    expect(lists).not.toEqual([]);
    for (const { text, values } of lists) {
      const { rows } = await cloud.db.$client.query(`explain (analyze, costs off, timing off) ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('tokens_client_id');
      expect(plan).not.toContain('Rows Removed by Filter');
    }
    await cloud.db.$client.query('delete from tokens where client_id = $1', [clientId]);
  });

  it('shows the last use, which no request writes', async () => {
    const { token } = await cloud.newClient();
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const lastUse = async () => (await cloud.get(path, { token })).body.results[0].last_used_at;
    expect(await lastUse()).toBeNull();
    await cloud.services.tokens.flush();
    expect(await lastUse()).toBe('2026-11-20T10:00:00Z');
    cloud.clock.set(null);
  });
});

describe('revoking a token', () => {
  it('ends it and its sessions within a second, and may be repeated', async () => {
    const { clientId, token } = await cloud.newClient();
    const other = await cloud.newToken(clientId, 'reader');
    const signedIn = await cloud.post('/cloudyard/v1/session', { token: other }, { token: null });
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0]!;
    const bySession = async () => (await cloud.get(projects, { token: null, headers: { cookie } })).status;
    expect([await statusOf(other), await bySession()]).toEqual([200, 200]);
    const id = await idOf(other, token);
    expect((await cloud.delete(`${path}/${id}`, { token })).status).toBe(204);
    await expect.poll(() => statusOf(other), { timeout: 1000, interval: 10 }).toBe(401);
    await expect.poll(bySession, { timeout: 1000, interval: 10 }).toBe(401);
    const first = (await cloud.get(`${path}/${id}`, { token })).body;
    expect(first).toMatchObject({ state: 'revoked', revoked_at: expect.any(String) });
    expect((await cloud.delete(`${path}/${id}`, { token })).status).toBe(204);
    expect((await cloud.get(`${path}/${id}`, { token })).body).toEqual(first);
    expect((await cloud.delete(`${path}/999999`, { token })).status).toBe(404);
  });
});
