/** The token server in distribution's protocol: authentication, granted scopes, and refusals. */
import { X509Certificate } from 'node:crypto';
import { jwtVerify } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { connect } from '../../../platform/db.ts';
import { silentLogger } from '../../../platform/log.ts';
import { holdPushes, releasePushes } from '../store.ts';
import { limits } from './failures.ts';
import { createTokenServer, TokenRefused } from './service.ts';

const cloud = useCloudyard();
const all = '/cloud/v1/registries/1/1';
const path = '/cloudyard/v1/registry_token';
const service = 'cloudyard:1';
let one: string;
let two: string;

const basic = (credentials: string) => ({ authorization: `Basic ${Buffer.from(credentials).toString('base64')}` });
const requestToken = (credentials: string | null, scopes: string[] = [], of = service) => {
  const query = new URLSearchParams({ service: of });
  for (const scope of scopes) query.append('scope', scope);
  return cloud.get(`${path}?${query}`, { token: null, headers: credentials === null ? {} : basic(credentials) });
};
const accessOf = async (token: string) => {
  const { certificate } = (await cloud.services.registries.hosting([1]))!;
  const { payload } = await jwtVerify(token, new X509Certificate(certificate).publicKey, {
    issuer: 'cloudyard',
    audience: service,
    currentDate: cloud.clock.now(),
  });
  return payload['access'] as { name: string; actions: string[] }[];
};
const granted = async (credentials: string, ...scopes: string[]) => {
  const { status, body } = await requestToken(credentials, scopes);
  expect(status).toBe(200);
  return Object.fromEntries((await accessOf(body.token)).map(({ name, actions }) => [name, actions.join(',')]));
};
const prefix = (registry: { url: string }) => registry.url.split('/')[1]!;

beforeAll(async () => {
  await cloud.services.registries.announce('http://127.0.0.1:1');
  const make = async (name: string) => (await cloud.post(all, { name })).body;
  const [first, second] = [await make('one'), await make('two')];
  [one, two] = [prefix(first), prefix(second)];
  const users = [
    { name: 'both', duration: 1, secret: 'same' },
    { name: 'ro', duration: 1, secret: 'pw', read_only: true },
    { name: 'day', duration: 1, secret: 'pw' },
    { name: 'never', duration: 0, secret: 'pw' },
  ];
  await cloud.post(`${all}/${first.id}/users/batch`, { users });
  await cloud.post(`${all}/${second.id}/users/batch`, {
    users: [
      { name: 'both', duration: 1, secret: 'same', read_only: true },
      { name: 'day', duration: 1, secret: 'another' },
    ],
  });
});

describe('the token server', () => {
  it("grants a user the repositories of its registries within the user's permissions in each", async () => {
    expect(await granted('both:same', `repository:${one}/a:pull,push`, `repository:${two}/a:pull,push`)).toEqual({
      [`${one}/a`]: 'pull,push',
      [`${two}/a`]: 'pull',
    });
    expect(await granted('ro:pw', `repository:${one}/a:*`)).toEqual({ [`${one}/a`]: 'pull' });
    expect(await granted('day:pw', `repository:${one}/team/app:*`)).toEqual({
      [`${one}/team/app`]: 'pull,push,delete',
    });
    expect(await granted('day:pw', `repository:${two}/a:pull`)).toEqual({});
    expect(await granted('day:another', `repository:${two}/a:pull`)).toEqual({ [`${two}/a`]: 'pull' });
  });

  it('grants no other scopes', async () => {
    const scopes = [
      'registry:catalog:*',
      `repository:${one}:pull`,
      `repository:${one}/:pull`,
      `repository:x${one}/a:pull`,
      `repository:${one}/../${two}/a:`,
      'repository',
      '',
    ];
    expect(await granted('day:pw', ...scopes)).toEqual({});
    // The prefix has the id of this registry, but another name.
    expect(await granted('day:pw', `repository:other-${one.split('-').at(-1)}/a:pull`)).toEqual({});
  });

  it('supports the OAuth 2 token request', async () => {
    const form = { grant_type: 'password', service, scope: `repository:${one}/a:pull`, client_id: 'x' };
    const send = (fields: Record<string, string>) =>
      cloud.app.inject({
        method: 'POST',
        url: path,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams(fields).toString(),
      });
    const answer = await send({ ...form, username: 'day', password: 'pw' });
    expect(answer.statusCode).toBe(200);
    expect(await accessOf(answer.json().access_token)).toMatchObject([{ name: `${one}/a`, actions: ['pull'] }]);
    expect((await send({ ...form, username: 'day', password: 'x' })).statusCode).toBe(401);
    expect((await send({ ...form, grant_type: 'refresh_token', refresh_token: 'x' })).statusCode).toBe(401);
  });

  it('accepts an API token as the secret of the user `apikey`', async () => {
    const { clientId, projectId, token } = await cloud.newClient();
    const made = (await cloud.post(`/cloud/v1/registries/${projectId}/1`, { name: 'own' }, { token })).body;
    const scopes = [`repository:${prefix(made)}/a:pull,push`, `repository:${one}/a:pull`];
    expect(await granted(`apikey:${token}`, ...scopes)).toEqual({ [`${prefix(made)}/a`]: 'pull,push' });
    const reader = await cloud.newToken(clientId, 'reader');
    expect(await granted(`apikey:${reader}`, ...scopes)).toEqual({ [`${prefix(made)}/a`]: 'pull' });
    const limited = await cloud.newToken(clientId, 'admin', []);
    expect(await granted(`apikey:${limited}`, ...scopes)).toEqual({});
    expect((await requestToken('apikey:a$b', scopes)).status).toBe(401);
  });

  it('issues no token that outlives its user', async () => {
    cloud.clock.set(new Date());
    const { body } = await requestToken('day:pw', [`repository:${one}/a:pull`]);
    expect(body.expires_in).toBe(300);
    expect((await requestToken('day:pw', [`repository:${one}/a:pull,push`])).body.expires_in).toBe(120);
    try {
      cloud.clock.advance(86_400 - 100);
      const late = await requestToken('day:pw', [`repository:${one}/a:pull`]);
      expect(late.body.expires_in).toBeLessThanOrEqual(100);
      cloud.clock.advance(101);
      expect(await requestToken('day:pw')).toMatchObject({
        status: 401,
        body: { message: expect.stringContaining('expired') },
      });
    } finally {
      cloud.clock.set(null);
    }
  });

  it('issues no token that outlives the API token of the login', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const created = await cloud.post('/cloudyard/v1/tokens', { name: 'short', role: 'member', expires_at });
    const answer = await requestToken(`apikey:${created.body.token}`, [`repository:${one}/a:pull`]);
    expect(answer.body.expires_in).toBeLessThanOrEqual(60);
  });

  it.each([
    ['an anonymous request', null],
    ['a wrong secret', 'day:wrong'],
    ['a user of no registry', 'stranger:pw'],
    ['an expired user', 'never:pw'],
    ['no name', ':pw'],
    ['no secret', 'day'],
    ['a user name with a null byte', 'd\u0000y:pw'],
    ['an API token with a null byte', 'apikey:x\u0000$y'],
  ])('refuses %s with a message that clients show', async (_case, credentials) => {
    const { status, body, headers } = await requestToken(credentials, [`repository:${one}/a:pull`]);
    expect(status).toBe(401);
    expect(headers['www-authenticate']).toMatch(/^Basic /);
    expect(body).toMatchObject({ errors: [{ code: 'UNAUTHORIZED', message: expect.any(String) }] });
  });

  it('refuses an unknown service and malformed requests', async () => {
    for (const of of ['', 'x', 'cloudyard:', 'cloudyard:1,', 'cloudyard:99999999999', 'cloudyard:0x1']) {
      expect([of, (await requestToken('day:pw', [], of)).status]).toEqual([of, 401]);
    }
    // The host of another region has other users.
    expect((await requestToken('day:pw', [], 'cloudyard:2')).status).toBe(401);
    expect((await cloud.get(`${path}?scope=${'x'.repeat(5000)}`, { token: null })).status).toBe(400);
    expect((await cloud.get(path, { token: null, headers: { authorization: 'Basic %%%' } })).status).toBe(401);
  });

  it('holds push tokens while garbage collection removes links, and garbage collection waits for issued push tokens', async () => {
    const id = Number(one.split('-').at(-1));
    expect(await holdPushes(cloud.db, id, 'held', 60, 30)).toBe(true);
    let isIssued = false;
    const pending = granted('day:pw', `repository:${one}/held:pull,push`).finally(() => (isIssued = true));
    for (let i = 0; i < 5; i++) {
      expect(await granted('day:pw', `repository:${one}/held:pull`)).toEqual({ [`${one}/held`]: 'pull' });
    }
    expect(isIssued).toBe(false);
    await releasePushes(cloud.db, id, 'held');
    expect(await pending).toEqual({ [`${one}/held`]: 'pull,push' });
    expect(await holdPushes(cloud.db, id, 'held', 60, 30)).toBe(false);
    expect(await holdPushes(cloud.db, id, 'held', 0, 0.05)).toBe(true);
    // A hold whose process died expires.
    expect(await granted('day:pw', `repository:${one}/held:push`)).toEqual({ [`${one}/held`]: 'push' });
  });

  it('refuses pushes to a full registry and states its usage and limit', async () => {
    const { body: made } = await cloud.post(all, { name: 'full', storage_limit: 1 });
    await cloud.post(`${all}/${made.id}/users`, { name: 'full', duration: 1, secret: 'pw' });
    await cloud.db.$client.query('update registries set storage_used = $2 where id = $1', [made.id, 1024 ** 3]);
    const scope = (actions: string) => `repository:${prefix(made)}/a:${actions}`;
    const refused = await requestToken('full:pw', [scope('pull,push')]);
    expect(refused).toMatchObject({ status: 401, body: { errors: [{ code: 'DENIED' }] } });
    expect(refused.body.message).toContain('it holds 1.00 GiB, and its storage_limit is 1 GiB');
    expect(refused.body.message).toContain('freed by garbage collection');
    expect(await granted('full:pw', scope('pull'))).toEqual({ [`${prefix(made)}/a`]: 'pull' });
    expect(await granted('full:pw', scope('*'))).toEqual({ [`${prefix(made)}/a`]: 'pull,delete' });
  });

  it('accepts API tokens in use after many logins with wrong ones', async () => {
    const { token: used, clientId } = await cloud.newClient();
    const unused = await cloud.newToken(clientId, 'reader');
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    try {
      expect((await requestToken(`apikey:${used}`)).status).toBe(200);
      for (let i = 0; i < limits.pair; i += 1) expect((await requestToken(`apikey:x$${i}`)).status).toBe(401);
      expect((await requestToken('apikey:x$y')).status).toBe(429);
      expect((await requestToken(`apikey:${unused}`)).status).toBe(429);
      expect((await requestToken(`apikey:${used}`)).status).toBe(200);
    } finally {
      cloud.clock.set(null);
    }
  });

  it.each([
    [2, 1],
    [8, 2],
    [16, 4],
  ])('uses of a pool of %i connections at most %i at a time', async (poolSize, most) => {
    const db = connect({ ...cloud.connection, poolSize, log: silentLogger });
    try {
      const keys = { certificate: '', secretMac: () => Buffer.alloc(32), password: () => '', sign: async () => '' };
      const { clock, services } = cloud;
      const deps = { db, clock, hostClock: clock, tokens: services.tokens, authority: async () => keys };
      const { issue } = createTokenServer(deps);
      const login = { isGone: () => false, name: 'day', secret: 'wrong', service, scopes: [] };
      const refused = await Promise.all(
        Array.from({ length: 60 }, (_, i) => issue({ ...login, address: `192.0.2.${i}` }).catch((error) => error)),
      );
      for (const error of refused) expect(error).toBeInstanceOf(TokenRefused);
      expect(db.$client.totalCount).toBe(most);
    } finally {
      await db.$client.end();
    }
  });
});
