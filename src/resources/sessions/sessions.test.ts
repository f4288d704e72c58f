import { describe, expect, inject, it } from 'vitest';
import { openAnotherServer } from '../../../test/another-server.ts';
import { type Answer, openCloudyard, useCloudyard } from '../../../test/harness.ts';
import { createApi } from '../../main/api.ts';
import { silentLogger } from '../../platform/log.ts';

const path = '/cloudyard/v1/session';
const cloud = useCloudyard({ driver: null });
const clients = '/cloud/v1/projects';

interface SignedIn {
  cookie: string;
  csrf: string;
  answer: Answer;
}

async function signIn(token: string, headers: Record<string, string> = {}): Promise<SignedIn> {
  const answer = await cloud.post(path, { token }, { token: null, headers });
  const cookie = String(answer.headers['set-cookie']).split(';')[0]!;
  return { cookie, csrf: answer.body.csrf_token, answer };
}

const by = ({ cookie, csrf }: SignedIn, headers: Record<string, string> = {}) => ({
  token: null,
  headers: { cookie, 'x-csrf-token': csrf, ...headers },
});
const statusOf = async (session: SignedIn) => (await cloud.get(clients, by(session))).status;
const rows = async () =>
  (await cloud.db.$client.query<{ id: number; last_used_at: Date }>('select * from sessions order by id')).rows;

describe('signing in', () => {
  it('returns the session and a cookie that scripts and other sites cannot use', async () => {
    const { clientId, projectId } = await cloud.newClient();
    const token = await cloud.newToken(clientId, 'member', [projectId]);
    const { answer, csrf } = await signIn(token);
    expect(answer.status).toBe(201);
    expect(answer.headers['set-cookie']).toMatch(
      /^cloudyard_session=[0-9a-f]{12}\$[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/,
    );
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.body).toEqual({
      token_id: expect.any(Number),
      token_name: 'test',
      client_id: clientId,
      client_name: expect.stringContaining('client '),
      role: 'member',
      is_operator: false,
      project_ids: [projectId],
      expires_at: expect.stringMatching(/^20.*Z$/),
      idle_timeout_seconds: 8 * 3600,
      csrf_token: csrf,
      is_development: false,
    });
    expect(csrf).toMatch(/^[\w-]{43}$/);
  });

  it('accepts the prefix of the header and white space around the token', async () => {
    const { token } = await cloud.newClient();
    for (const text of [`apikey ${token}`, ` APIKey ${token}\n`, ` ${token} `]) {
      expect((await signIn(text)).answer.status).toBe(201);
    }
  });

  it('stores no secret: the row and the audit entry show neither the cookie nor the CSRF token', async () => {
    const { token } = await cloud.newClient();
    const { cookie, csrf } = await signIn(token);
    const secret = cookie.split('$')[1]!;
    const stored = JSON.stringify([
      (await cloud.db.$client.query('select row_to_json(s) from sessions s')).rows,
      (await cloud.db.$client.query(`select * from audit_entries where operation = 'createSession'`)).rows,
    ]);
    expect(stored).toContain('createSession');
    for (const text of [secret, csrf, token]) expect(stored).not.toContain(text);
  });

  it.each([{ token: 'x' }, { token: 'x$y' }, { token: 'apikey' }, { token: '$' }, { token: 'a$b$c' }])(
    'with %j returns 401',
    async (body) => {
      const answer = await cloud.post(path, body, { token: null });
      expect(answer).toMatchObject({ status: 401, body: { exception_class: 'Unauthenticated' } });
      expect(answer.headers['set-cookie']).toBeUndefined();
    },
  );

  it.each<[string, unknown]>([
    ['an empty body', {}],
    ['an empty token', { token: '' }],
    ['a number', { token: 1 }],
    ['a long token', { token: 'x'.repeat(1001) }],
    ['text that is not Unicode', { token: '\u0000$\ud800' }],
    ['another field', { token: 'x$y', more: 1 }],
    ['a list', []],
    ['no body', undefined],
  ])('with %s returns 400', async (_what, body) => {
    expect((await cloud.post(path, body, { token: null })).status).toBe(400);
  });

  it('fails with 429 once an address has failed too often, except with a token that this server knows', async () => {
    const { token } = await cloud.newClient();
    expect((await signIn(token)).answer.status).toBe(201);
    const limited = await createApi(cloud.services, {
      log: silentLogger,
      anonymousLimits: { perMinute: 3, perMinuteLoopback: 1000 },
    });
    const tries = async (text: string) =>
      (await limited.inject({ method: 'POST', url: path, payload: { token: text }, remoteAddress: '192.0.2.7' }))
        .statusCode;
    expect([await tries('x$1'), await tries('x$2'), await tries('x$3')]).toEqual([401, 401, 401]);
    expect([await tries('x$4'), await tries(token)]).toEqual([429, 201]);
    expect([await tries(token), await tries(token), await tries(token)]).toEqual([201, 201, 429]);
    await limited.close();
  });

  it('marks the cookie Secure when a trusted proxy received the request by HTTPS, and only then', async () => {
    const { token } = await cloud.newClient();
    const proxied = await createApi(cloud.services, { log: silentLogger, trustedProxies: ['192.0.2.1'] });
    const cookieFrom = async (remoteAddress: string) => {
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.1' };
      const answer = await proxied.inject({ method: 'POST', url: path, payload: { token }, headers, remoteAddress });
      return String(answer.headers['set-cookie']);
    };
    expect(await cookieFrom('192.0.2.1')).toMatch(/; Secure$/);
    expect(await cookieFrom('192.0.2.2')).not.toContain('Secure');
    await proxied.close();
  });
});

describe('a session', () => {
  it('has the rights of its token', async () => {
    const { clientId, projectId, token } = await cloud.newClient('admin');
    const admin = await signIn(token);
    const reader = await signIn(await cloud.newToken(clientId, 'reader'));
    const networks = `/cloud/v1/networks/${projectId}/1`;
    expect((await cloud.post(networks, { name: 'by an admin' }, by(admin))).status).toBe(200);
    const refused = await cloud.post(networks, { name: 'by a reader' }, by(reader));
    expect(refused).toMatchObject({ status: 403, body: { message: expect.stringContaining('member') } });
    const foreign = await signIn((await cloud.newClient()).token);
    expect((await cloud.get(networks, by(foreign))).status).toBe(404);
  });

  it('is named by its token in the audit log', async () => {
    const { projectId, token } = await cloud.newClient();
    const session = await signIn(token);
    const made = await cloud.post(`/cloud/v1/networks/${projectId}/1`, { name: 'audited' }, by(session));
    const { rows: entries } = await cloud.db.$client.query('select token_id from audit_entries where request_id = $1', [
      made.headers['x-request-id'],
    ]);
    expect(entries).toEqual([{ token_id: session.answer.body.token_id }]);
  });

  it('is described by GET, which needs the cookie', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const described = await cloud.get(path, by(session));
    expect(described).toMatchObject({ status: 200, body: session.answer.body });
    for (const token of [null, cloud.admin]) expect((await cloud.get(path, { token })).status).toBe(401);
    expect((await cloud.delete(path)).status).toBe(401);
  });

  it('ends with the sign-out, on other servers with their next read of the revision', async () => {
    const { token } = await cloud.newClient();
    const session = await signIn(token);
    const other = await openAnotherServer(cloud);
    expect([await statusOf(session), await other.status(by(session).headers)]).toEqual([200, 200]);
    const answer = await cloud.delete(path, by(session));
    expect([answer.status, answer.headers['set-cookie']]).toEqual([
      204,
      'cloudyard_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0',
    ]);
    await other.expectRefusal(by(session).headers);
    await expect.poll(() => statusOf(session), { interval: 10 }).toBe(401);
    expect((await cloud.get(clients, { token })).status).toBe(200);
    await other.stop();
  });

  it('ends with its token', async () => {
    const { token } = await cloud.newClient();
    const session = await signIn(token);
    expect(await statusOf(session)).toBe(200);
    await cloud.services.tokens.revoke(token.split('$')[0]!);
    await expect.poll(() => statusOf(session), { interval: 10 }).toBe(401);
  });

  it('is refused with a wrong, short or foreign secret, and as a token', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const other = await signIn((await cloud.newClient()).token);
    const [key, secret] = session.cookie.split('=')[1]!.split('$') as [string, string];
    const wrong = [
      `${key}$x`,
      `${key}$`,
      key,
      `$${secret}`,
      other.cookie.split('=')[1]!.replace(/^.*\$/, `${key}$`),
      '%00',
    ];
    for (const value of wrong) {
      const answer = await cloud.get(clients, { token: null, headers: { cookie: `cloudyard_session=${value}` } });
      expect([value, answer.status]).toEqual([value, 401]);
    }
    expect((await cloud.get(clients, { token: `${key}$${secret}` })).status).toBe(401);
    const among = { cookie: `a=b; ${session.cookie}; c=d` };
    expect((await cloud.get(clients, { token: null, headers: among })).status).toBe(200);
  });

  it('keeps the 100 sessions of a token that were used last', async () => {
    const { token } = await cloud.newClient();
    const first = await signIn(token);
    expect(await statusOf(first)).toBe(200);
    for (let i = 0; i < 100; i++) await signIn(token);
    await expect.poll(() => statusOf(first), { interval: 10 }).toBe(401);
  });
});

describe('a request with the cookie of a session', () => {
  const project = { name: 'created by a page' };

  it('needs the CSRF token if it may change something', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const other = await signIn((await cloud.newClient()).token);
    for (const csrf of ['', 'x', other.csrf, `${session.csrf}x`]) {
      const answer = await cloud.post(clients, project, by({ ...session, csrf }));
      expect(answer).toMatchObject({ status: 403, body: { message: expect.stringContaining('X-CSRF-Token') } });
    }
    const without = { token: null, headers: { cookie: session.cookie } };
    expect((await cloud.post(clients, project, without)).status).toBe(403);
    expect((await cloud.delete(path, without)).status).toBe(403);
    expect((await cloud.get(clients, without)).status).toBe(200);
    expect((await cloud.post(clients, project, by(session))).status).toBe(201);
  });

  it.each<[string, Record<string, string>, number]>([
    ['the own site', { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:5173' }, 200],
    ['a URL that a person opened', { 'sec-fetch-site': 'none' }, 200],
    ['another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a subdomain of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['the own origin', { host: 'cloud.example:8080', origin: 'http://cloud.example:8080' }, 200],
    ['the own origin in other case', { host: 'Cloud.Example', origin: 'http://cloud.example' }, 200],
    ['another origin', { host: 'cloud.example', origin: 'http://evil.example' }, 403],
    ['another port', { host: 'cloud.example', origin: 'http://cloud.example:81' }, 403],
    ['a sandboxed page', { host: 'cloud.example', origin: 'null' }, 403],
  ])('from %s with %j returns %i', async (_page, headers, expected) => {
    const { token } = await cloud.newClient();
    const session = await signIn(token);
    expect((await cloud.get(clients, by(session, headers))).status).toBe(expected);
    const signedIn = await cloud.post(path, { token }, { token: null, headers });
    expect(signedIn.status).toBe(expected === 200 ? 201 : 403);
    if (expected === 403) expect(signedIn.body.message).toBe('a page of another site sent this request');
  });

  it('may come from the public URL when a proxy changes the header Host', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const app = await createApi(cloud.services, { log: silentLogger, publicUrl: 'https://cloud.example.org/base' });
    const statusFrom = async (origin: string) =>
      (await app.inject({ url: clients, headers: { cookie: session.cookie, origin } })).statusCode;
    expect([await statusFrom('https://cloud.example.org'), await statusFrom('http://cloud.example.org')]).toEqual([
      200, 403,
    ]);
    await app.close();
  });

  it('needs no CSRF token if it has a token too, which decides', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const { token } = await cloud.newClient('reader');
    const headers = { cookie: session.cookie, 'sec-fetch-site': 'cross-site' };
    expect((await cloud.get(clients, { token, headers })).status).toBe(200);
    expect((await cloud.post(clients, project, { token, headers })).body.message).toContain('reader');
    const basic = { token: null, headers: { cookie: session.cookie, authorization: 'Basic eDp5' } };
    expect((await cloud.get(clients, basic)).status).toBe(200);
  });
});

describe('the end of a session', () => {
  it('comes after the idle timeout, which every request renews, and after seven days', async () => {
    const { clientId } = await cloud.newClient();
    const token = await cloud.newToken(clientId, 'reader');
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const used = await signIn(token);
    const idle = await signIn(token);
    expect(used.answer.body.expires_at).toBe('2026-11-27T10:00:00Z');
    for (let hours = 0; hours < 7 * 24 - 7; hours += 7) {
      cloud.clock.advance(7 * 3600);
      expect([hours, await statusOf(used)]).toEqual([hours, 200]);
    }
    expect(await statusOf(idle)).toBe(401);
    cloud.clock.set(new Date('2026-11-27T09:59:59.999Z'));
    expect(await statusOf(used)).toBe(200);
    cloud.clock.advance(0.001);
    expect(await statusOf(used)).toBe(401);
    cloud.clock.set(null);
  });

  it('is that of its token if that is earlier', async () => {
    const { clientId } = await cloud.newClient();
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const session = await signIn(await cloud.newToken(clientId, 'reader', null, new Date('2026-11-20T11:00:00Z')));
    expect(session.answer.body.expires_at).toBe('2026-11-20T11:00:00Z');
    cloud.clock.advance(3600);
    expect(await statusOf(session)).toBe(401);
    cloud.clock.set(null);
  });

  it('does not come from the clock of development mode', async () => {
    const { cloudyard, stop } = await openCloudyard(inject('postgres'), { driver: null, development: true });
    const made = await cloudyard.post(path, { token: cloudyard.admin }, { token: null });
    expect(made.body.is_development).toBe(true);
    const cookie = String(made.headers['set-cookie']).split(';')[0]!;
    const moved = await cloudyard.post('/cloudyard/v1/dev/clock', { advance_seconds: 30 * 86_400 });
    expect(moved.status).toBe(200);
    expect((await cloudyard.get(path, { token: null, headers: { cookie } })).status).toBe(200);
    await stop();
  });

  it('is not caused by a server that has not seen its last uses', async () => {
    const { token } = await cloud.newClient();
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const session = await signIn(token);
    const other = await openAnotherServer(cloud);
    expect(await other.status(by(session).headers)).toBe(200);
    cloud.clock.advance(7 * 3600);
    expect(await statusOf(session)).toBe(200);
    await cloud.services.sessions.flush();
    cloud.clock.advance(7 * 3600);
    expect(await other.status(by(session).headers)).toBe(200);
    cloud.clock.set(null);
    await other.stop();
  });

  it('is followed by the removal of the row', async () => {
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const { token } = await cloud.newClient();
    const idle = await signIn(token);
    cloud.clock.advance(8 * 3600 - 1);
    const used = await signIn(token);
    cloud.clock.advance(2);
    await cloud.services.sessions.removeEnded();
    expect([await statusOf(idle), await statusOf(used)]).toEqual([401, 200]);
    cloud.clock.advance(7 * 86_400);
    await cloud.services.sessions.removeEnded();
    cloud.clock.set(null);
    expect((await rows()).every(({ last_used_at: at }) => at > new Date('2026-11-21T00:00:00Z'))).toBe(true);
  });

  it('costs requests no write: uses are written together', async () => {
    const session = await signIn((await cloud.newClient()).token);
    const lastUse = async () => (await rows()).at(-1)!.last_used_at.getTime();
    const before = await lastUse();
    cloud.clock.advance(60);
    for (let i = 0; i < 5; i++) expect(await statusOf(session)).toBe(200);
    expect(await lastUse()).toBe(before);
    await cloud.services.sessions.flush();
    expect(await lastUse()).toBeGreaterThan(before);
    cloud.clock.set(null);
  });
});
