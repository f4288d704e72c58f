/** Sign-in with a real OpenID Connect provider. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { type Cloudyard, openCloudyard } from '../../../test/harness.ts';
import { idTokenSeconds, openProvider, testClient, type TestProvider } from '../../../test/oidc-provider.ts';
import { contextsFile, readContexts } from '../../client/contexts.ts';
import { runProgram } from '../../client/program.ts';
import { readGroups } from './groups.ts';

const publicUrl = 'https://cloud.example.org';
const callback = '/cloudyard/v1/sign_in/oidc/callback';
const folder = mkdtempSync(join(tmpdir(), 'cloudyard-sign-in-'));
const groupsFile = join(folder, 'groups.yaml');

let cloudyard: Cloudyard;
let stop: () => Promise<void>;
let provider: TestProvider;
let tenant: { clientId: number; projectId: number };

const admins = '  - { group: admins, client: 1, role: admin }\n';

beforeAll(async () => {
  provider = await openProvider(publicUrl + callback);
  writeFileSync(groupsFile, `groups:\n${admins}`);
  const oidc = { issuer: provider.issuer, ...testClient, groupsFile, groupsClaim: 'groups', seconds: 3600 };
  const signIn = { publicUrl, oidc: { ...oidc, scopes: 'openid email groups' } };
  ({ cloudyard, stop } = await openCloudyard(inject('postgres'), { driver: null, signIn }));
  tenant = await cloudyard.newClient();
  const members = `  - { group: team, client: ${tenant.clientId}, role: member, projects: [${tenant.projectId}] }\n`;
  const lost = '  - { group: lost, client: 999999, role: reader }\n';
  writeFileSync(groupsFile, `groups:\n${members}${admins}${lost}`);
});
afterAll(async () => {
  await stop?.();
  await provider?.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  provider.beforeTokens = () => {};
});

const nameOf = (cookie: string) => cookie.split('=')[0]!;

async function send(url: string, cookie = '') {
  const {
    statusCode: status,
    headers,
    body,
  } = await cloudyard.app.inject({ url, headers: { cookie, accept: 'text/html' } });
  const cookies = [headers['set-cookie'] ?? []].flat() as string[];
  return { status, headers, body, cookies: new Map(cookies.map((text) => [nameOf(text), text])) };
}

/** Signs in as a browser does. `change`: what happens to the URL on the way back. */
async function signIn({ change = (url: string) => url, start = '/cloudyard/v1/sign_in/oidc' } = {}) {
  const started = await send(start);
  expect(started.status).toBe(302);
  const back = change(await provider.visit(String(started.headers.location)));
  const pending = started.cookies.get('cloudyard_sign_in')!.split(';')[0]!;
  return { pending, back, ...(await send(back.slice(publicUrl.length), pending)) };
}

async function sessionOf({ cookies }: Awaited<ReturnType<typeof signIn>>) {
  const { status, body } = await send('/cloudyard/v1/session', cookies.get('cloudyard_session')!.split(';')[0]!);
  return { status, session: JSON.parse(body) as Record<string, unknown> };
}

const person = (groups: string[], sub = 'ada') => ({ sub, email: `${sub}@example.org`, groups });

describe('sign-in of a browser', () => {
  it('gives the rights of the first entry of a group', async () => {
    provider.person = person(['staff', 'admins', 'team']);
    expect((await cloudyard.get('/cloudyard/v1/sign_in', { token: null })).body).toEqual({
      oidc: true,
      issuer: provider.issuer,
    });
    const signedIn = await signIn({ start: '/cloudyard/v1/sign_in/oidc?return_to=/console/tasks%3Fq=a%2526b' });
    expect(signedIn).toMatchObject({ status: 302, headers: { location: '/console/tasks?q=a%26b' } });
    expect(signedIn.cookies.get('cloudyard_session')).toMatch(/; HttpOnly; SameSite=Strict/);
    expect((await sessionOf(signedIn)).session).toMatchObject({
      token_name: 'ada@example.org',
      client_id: tenant.clientId,
      role: 'member',
      project_ids: [tenant.projectId],
    });
  });

  it('ends the sessions of a person whose groups changed, and keeps those of the same rights', async () => {
    provider.person = person(['admins'], 'grace');
    const [first, second] = [await signIn(), await signIn()];
    expect((await sessionOf(first)).status).toBe(200);
    expect((await sessionOf(second)).session).toMatchObject({ client_id: 1, role: 'admin', is_operator: true });

    provider.person = person(['guests'], 'grace');
    const refused = await signIn();
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('none of the groups of grace@example.org has access');
    for (const signedIn of [first, second]) {
      await vi.waitUntil(async () => (await sessionOf(signedIn)).status === 401, { timeout: 10_000, interval: 50 });
    }
  });

  it('refuses an entry whose client does not exist', async () => {
    provider.person = person(['lost'], 'eve');
    expect((await signIn()).status).toBe(403);
  });

  it.each([
    ['another state', (url: string) => url.replace(/state=[^&]*/, 'state=x')],
    ['another code', (url: string) => url.replace(/code=[^&]*/, 'code=x')],
    ['another issuer', (url: string) => url.replace(/iss=[^&]*/, 'iss=https%3A%2F%2Fevil.example')],
    ['a refusal of the provider', (url: string) => url.replace(/code=[^&]*/, 'error=access_denied')],
  ])('refuses %s', async (_name, change) => {
    provider.person = person(['admins']);
    const refused = await signIn({ change });
    expect(refused.status).toBe(401);
    expect(refused.headers['content-type']).toContain('text/html');
    expect(refused.cookies.has('cloudyard_session')).toBe(false);
  });

  it('refuses a callback without the cookie, with one of another key, and a second use', async () => {
    provider.person = person(['admins']);
    const { back, pending, status } = await signIn();
    expect(status).toBe(302);
    const path = back.slice(publicUrl.length);
    expect((await send(path)).status).toBe(401);
    expect((await send(path, `${pending}x`)).status).toBe(401);
    expect((await send(path, pending)).status).toBe(401);
  });

  it('escapes what the provider says', async () => {
    const text = '<script>alert(1)</script>';
    const change = (url: string) =>
      `${url.replace(/code=[^&]*/, 'error=x')}&error_description=${encodeURIComponent(text)}`;
    const { body } = await signIn({ change });
    expect(body).not.toContain('<script>');
  });

  it.each([
    ['are ahead by less than 30 s', idTokenSeconds + 20, 302],
    ['are ahead by more', idTokenSeconds + 60, 401],
    ['are behind', -20, 302],
  ])('looks at the times of ID tokens: clocks that %s', async (_name, seconds, status) => {
    provider.person = person(['admins']);
    vi.useFakeTimers({ toFake: ['Date'] });
    const now = Date.now();
    provider.beforeTokens = () => vi.setSystemTime(now + seconds * 1000);
    expect((await signIn().finally(() => vi.useRealTimers())).status).toBe(status);
  });

  it.each([
    '//evil.example',
    'https://evil.example',
    '/console//../x?y',
    '/console/../cloud',
    '/console?x#y',
    '/cloud',
  ])('does not return to %s', async (target) => {
    expect((await send(`/cloudyard/v1/sign_in/oidc?return_to=${encodeURIComponent(target)}`)).status).toBe(400);
  });
});

describe('sign-in of a program', () => {
  const post = async (path: string, body: object) => cloudyard.app.inject({ method: 'POST', url: path, payload: body });

  it('gives a token when the person has confirmed', async () => {
    provider.person = person(['team'], 'linus');
    const started = await post('/cloudyard/v1/sign_in/device', {});
    expect(started.statusCode).toBe(201);
    const { device, verification_uri_complete: uri } = started.json();
    const finish = () => post('/cloudyard/v1/sign_in/device/token', { device });
    expect((await finish()).json()).toEqual({ status: 'pending', token: null, expires_at: null });
    await provider.confirm(uri);
    const finished = (await finish()).json();
    expect(finished).toMatchObject({ status: 'complete', token: expect.stringMatching(/^[0-9a-f]+\$/) });
    const projects = await cloudyard.get('/cloud/v1/projects', { token: finished.token });
    expect(projects.body.results.map(({ id }: { id: number }) => id)).toEqual([tenant.projectId]);
    const { rows } = await cloudyard.db.$client.query(
      "select client_id, changes::text from audit_entries where operation = 'finishDeviceSignIn'",
    );
    expect(rows).toEqual([{ client_id: tenant.clientId, changes: expect.stringContaining('linus@example.org') }]);
    expect((await finish()).statusCode).toBe(401);
    expect((await post('/cloudyard/v1/sign_in/device/token', { device: 'x' })).statusCode).toBe(401);
  });
});

describe('cloudyard login', () => {
  it('keeps the token of the person in a context', async () => {
    provider.person = person(['team'], 'barbara');
    const url = await cloudyard.app.listen({ port: 0, host: '127.0.0.1' });
    let messages = '';
    const confirming = Promise.withResolvers<void>();
    const write = (text: string) => {
      messages += text;
      const link = /^Open (\S+) and confirm/.exec(text)?.[1];
      if (link) provider.confirm(link).then(confirming.resolve, confirming.reject);
    };
    const env = { XDG_CONFIG_HOME: folder };
    const io = { env, out: () => {}, err: { write }, readInput: async () => '' };
    await runProgram(['login', 'work', '--url', url], io, async () => 0);
    await confirming.promise;
    const { current, contexts } = readContexts(contextsFile(env));
    expect(current).toBe('work');
    expect(contexts['work']).toMatchObject({ url, token: expect.stringContaining('$') });
    expect(messages).not.toContain(contexts['work']!.token);
    const { status } = await cloudyard.get('/cloud/v1/projects', { token: contexts['work']!.token! });
    expect(status).toBe(200);
    await expect(runProgram(['login', 'other'], io, async () => 0)).rejects.toThrow('no server');
  });
});

describe('the groups file', () => {
  const errorsOf = (text: string): string => {
    const file = join(folder, 'faulty.yaml');
    writeFileSync(file, text);
    try {
      readGroups(file);
      return '';
    } catch (error) {
      return (error as Error).message.replaceAll(`${file}:`, '');
    }
  };

  it.each([
    [`groups:\n${admins}${admins}`, '3:14: groups.1.group: is listed twice, also as groups.0'],
    [
      'groups:\n  - { group: a, client: 1, role: owner }\n',
      '2:34: groups.0.role: must be one of "reader", "member", "admin"',
    ],
    ['groups:\n  - { group: a, client: x, role: admin }\n', '2:25: groups.0.client: must be an integer'],
    ['groups:\n  - { group: a, client: 1, role: admin, x: 1 }\n', '2:44: groups.0.x: is not a known field'],
    ['groups: []\n', '1:9: groups: must have at least 1 item'],
    ['groups: [\n', '2:1: '],
  ])('%j is refused with line and column', (text, error) => expect(errorsOf(text)).toContain(error));

  it('keeps its last valid content', async () => {
    const { writeFileSync: write, readFileSync: read } = await import('node:fs');
    const before = read(groupsFile, 'utf8');
    write(groupsFile, 'garbage');
    provider.person = person(['admins']);
    expect((await signIn()).status).toBe(302);
    write(groupsFile, before);
  });
});

describe('a provider that cannot be trusted or reached', () => {
  it('is refused with other keys, and reported when it is away; tokens work all the same', async () => {
    const other = await openProvider(publicUrl + callback);
    other.publishesOtherKeys = true;
    other.person = person(['admins']);
    const oidc = { issuer: other.issuer, ...testClient, groupsFile, groupsClaim: 'groups', seconds: 3600 };
    const opened = await openCloudyard(inject('postgres'), {
      ...{ driver: null, signIn: { publicUrl, oidc: { ...oidc, scopes: 'openid email groups' } } },
    });
    const { app } = opened.cloudyard;
    const started = await app.inject('/cloudyard/v1/sign_in/oidc');
    const back = await other.visit(String(started.headers.location));
    const cookie = String(started.headers['set-cookie']).split(';')[0]!;
    const refused = await app.inject({ url: back.slice(publicUrl.length), headers: { cookie } });
    expect(refused.statusCode).toBe(401);
    expect(refused.body).toContain('signature');

    const again = await app.inject('/cloudyard/v1/sign_in/oidc');
    await other.stop();
    const answer = await app.inject({
      url: `${callback}?code=x&state=${new URL(String(again.headers.location)).searchParams.get('state')}&iss=${encodeURIComponent(other.issuer)}`,
      headers: { cookie: String(again.headers['set-cookie']).split(';')[0]! },
    });
    expect(answer.statusCode).toBe(503);
    expect(answer.body).toContain('sign in with a token');
    expect((await opened.cloudyard.get('/cloud/v1/projects')).status).toBe(200);
    await opened.stop();
  });
});
