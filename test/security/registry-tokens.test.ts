/** Tokens for other requests, forged tokens and guessed secrets, on real distribution behind its gate. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { registryTestHost } from '../../src/drivers/distribution/test-host.ts';
import type { RegistryDriver } from '../../src/drivers/registry.ts';
import { limits } from '../../src/resources/registries/token-server/failures.ts';
import { maxPushes } from '../../src/resources/registries/store.ts';
import { useCloudyard } from '../harness.ts';
import { digestOf } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const cloud = useCloudyard();
const all = '/cloud/v1/registries/1/1';
const tokenPath = '/cloudyard/v1/registry_token';

const login = (credentials: string, scopes: string[], remoteAddress = '127.0.0.1') => {
  const query = new URLSearchParams({ service: 'cloudyard:1' });
  for (const scope of scopes) query.append('scope', scope);
  return cloud.app.inject({
    method: 'GET',
    url: `${tokenPath}?${query}`,
    remoteAddress,
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  });
};
const tokenOf = async (credentials: string, ...scopes: string[]): Promise<string> => {
  const answer = await login(credentials, scopes);
  expect(answer.statusCode).toBe(200);
  return answer.json().token;
};
const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const accessOf = (token: string) => decode(token.split('.')[1]!).access as { name: string; actions: string[] }[];

const times = <T>(length: number, work: (i: number) => T) => Array.from({ length }, (_, i) => work(i));

let count = 0;
const make = async (users: object[]) => {
  const { body } = await cloud.post(all, { name: `tokens-${(count += 1)}` });
  await cloud.post(`${all}/${body.id}/users/batch`, { users });
  return { path: `${all}/${body.id}`, id: body.id as number, prefix: body.url.split('/')[1] as string };
};

beforeAll(() => cloud.services.registries.announce('http://127.0.0.1:1'));

describe('the token server', () => {
  it('grants no access for invalid repository names or names of another registry', async () => {
    const one = (await make([{ name: 'rw', duration: 1, secret: 'pw' }])).prefix;
    const two = (await make([{ name: 'rw', duration: 1, secret: 'pw2' }])).prefix;
    const names = [
      `${one}/../${two}/a`,
      `${one}/..`,
      `${one}/.`,
      `${one}/a/./b`,
      `${one}//a`,
      `${one}/a/`,
      `/${one}/a`,
      `${one}/A`,
      `${one}/%2e%2e/${two}/a`,
      `${one}/a%2fb`,
      `${one}/a:b`,
      `${one}/_uploads`,
      `${one}/-a`,
      `${one}/a..b`,
      `${one}/${'a'.repeat(255)}`,
      `${one}/a\n`,
      `${one}/ä`,
      one,
      `${two}/a`,
      `${one}x/a`,
      `*/a`,
      `${one}/*`,
    ];
    const token = await tokenOf('rw:pw', ...names.map((name) => `repository:${name}:pull,push,delete`).slice(0, 20));
    expect(accessOf(token)).toEqual([]);
    for (const name of names) {
      expect([name, accessOf(await tokenOf('rw:pw', `repository:${name}:pull,push,delete`))]).toEqual([name, []]);
    }
    const others = [
      `registry:catalog:*`,
      `repository:${one}/a:admin`,
      `repository(plugin):${one}/a:`,
      `a:${one}/a:pull`,
    ];
    for (const scope of others) {
      const actions = accessOf(await tokenOf('rw:pw', scope)).flatMap((each) => each.actions);
      expect([scope, actions]).toEqual([scope, []]);
    }
  });

  it('grants each of several scopes only the actions that its user may do', async () => {
    const one = (await make([{ name: 'some', duration: 1, secret: 'pw' }])).prefix;
    const two = (await make([{ name: 'some', duration: 1, secret: 'pw', read_only: true }])).prefix;
    const scopes = [`repository:${one}/a:pull`, `repository:${one}/a:push`, `repository:${two}/a:pull,push,*`];
    const access = accessOf(await tokenOf('some:pw', ...scopes, `repository:${one}/b:pull`));
    const allowed = access.map(({ name, actions }) => `${name} ${actions}`);
    expect(allowed).toEqual([`${one}/a pull`, `${one}/a push`, `${two}/a pull`, `${one}/b pull`]);
  });

  it('limits the repositories with recorded pushes of a registry', async () => {
    const { id, prefix } = await make([{ name: 'names', duration: 1, secret: 'pw' }]);
    await tokenOf('names:pw', `repository:${prefix}/first:push`);
    await cloud.db.$client.query(
      `insert into registry_pushes (registry_id, repository, granted_at)
       select $1, 'r' || n, now() from generate_series(2, $2) n`,
      [id, maxPushes],
    );
    const refused = await login('names:pw', [`repository:${prefix}/one-more:push`]);
    expect(refused.statusCode).toBe(401);
    expect(refused.json().message).toContain('10000 repositories');
    expect(accessOf(await tokenOf('names:pw', `repository:${prefix}/first:push`))).toHaveLength(1);
    expect(accessOf(await tokenOf('names:pw', `repository:${prefix}/one-more:pull`))).toHaveLength(1);
  });

  it('refuses the old secret, a deleted user and a deleted registry immediately', async () => {
    const { path, prefix } = await make([
      { name: 'rotated', duration: 1, secret: 'pw' },
      { name: 'deleted', duration: 1, secret: 'pw' },
      { name: 'stays', duration: 1, secret: 'pw-of-stays' },
    ]);
    const users = (await cloud.get(`${path}/users`)).body.results as { id: number; name: string }[];
    const idOf = (name: string) => users.find((each) => each.name === name)!.id;
    const scope = `repository:${prefix}/a:pull`;
    for (const name of ['rotated', 'deleted']) await tokenOf(`${name}:pw`, scope);
    const { body } = await cloud.post(`${path}/users/${idOf('rotated')}/refresh_secret`);
    await cloud.delete(`${path}/users/${idOf('deleted')}`);
    for (const name of ['rotated', 'deleted']) expect((await login(`${name}:pw`, [scope])).statusCode).toBe(401);
    await tokenOf(`rotated:${body.secret}`, scope);
    expect((await cloud.delete(path)).status).toBe(204);
    expect((await login('stays:pw-of-stays', [scope])).statusCode).toBe(401);
  });

  it('limits guesses of secrets and does not lock out other users', async () => {
    await make([{ name: 'guessed', duration: 1, secret: 'pw-of-guessed' }]);
    await make([{ name: 'other', duration: 1, secret: 'pw-of-other' }]);
    const attacker = '192.0.2.1';
    const guess = async (name: string, secret: string, from = attacker) => {
      const { statusCode, headers } = await login(`${name}:${secret}`, [], from);
      return { statusCode, retryAfter: Number(headers['retry-after']) };
    };
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    try {
      for (let i = 0; i < limits.pair; i += 1) expect((await guess('guessed', `${i}`)).statusCode).toBe(401);
      expect(await guess('guessed', 'x')).toEqual({ statusCode: 429, retryAfter: 60 });
      // Also the right secret: the response must not reveal that it is right.
      expect((await guess('guessed', 'pw-of-guessed')).statusCode).toBe(429);
      expect((await guess('guessed', 'pw-of-guessed', '192.0.2.2')).statusCode).toBe(200);
      for (let i = 0; i < limits.address; i += 1) await guess(`n${i}`, 'x');
      expect((await guess('n0', 'x')).statusCode).toBe(429);
      expect((await guess('other', 'pw-of-other')).statusCode).toBe(200);
      cloud.clock.advance(61);
      expect((await guess('guessed', 'pw-of-guessed')).statusCode).toBe(200);
    } finally {
      cloud.clock.set(null);
    }
  });

  it('limits concurrent guesses that wait for other logins of their address', async () => {
    const { prefix } = await make([{ name: 'crowd', duration: 1, secret: 'pw-of-crowd' }]);
    const from = '192.0.2.3';
    cloud.clock.set(new Date('2026-11-20T10:30:00Z'));
    try {
      const scopes = times(20, (i) => `repository:${prefix}/r${i}:push`);
      const guesses = times(100, (i) => login(`crowd:${i}`, [], from));
      const answers = await Promise.all([login('crowd:pw-of-crowd', scopes, from), ...guesses]);
      const count = (status: number) => answers.filter(({ statusCode }) => statusCode === status).length;
      expect([200, 401, 429].map(count)).toEqual([1, limits.pair, 100 - limits.pair]);
    } finally {
      cloud.clock.set(null);
    }
  });

  it('limits guesses from many addresses but not users with the right secret', async () => {
    await make([{ name: 'known', duration: 1, secret: 'pw-of-known' }]);
    cloud.clock.set(new Date('2026-11-20T11:00:00Z'));
    const from = (i: number) => `198.51.${i >> 8}.${i & 255}`;
    try {
      for (let i = 0; i < limits.name; i += 1) await login('known:wrong', [], from(i));
      expect((await login('known:wrong', [], from(0))).statusCode).toBe(429);
      expect((await login('known:pw-of-known', [], '192.0.2.9')).statusCode).toBe(200);
    } finally {
      cloud.clock.set(null);
    }
  });

  it('leaves most connections of the database to other requests: the logins of an address are served in turn', async () => {
    const { prefix } = await make([{ name: 'flood', duration: 1, secret: 'pw' }]);
    const { $client: pool } = cloud.db;
    const scopes = ['a', 'b', 'c'].map((name) => `repository:${prefix}/${name}:push`);
    /** The most connections that were in use or waited for. */
    const flood = async (addresses: number) => {
      let [most, isOver] = [0, false];
      const watch = () => {
        most = Math.max(most, pool.totalCount - pool.idleCount + pool.waitingCount);
        if (!isOver) setImmediate(watch);
      };
      watch();
      const from = (i: number) => `203.0.113.${i % addresses}`;
      const answers = await Promise.all(times(60, (i) => login('flood:pw', scopes, from(i))));
      isOver = true;
      expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
      return most;
    };
    // The server itself uses some.
    expect(await flood(1)).toBeLessThan(8);
    expect(await flood(20)).toBeLessThan(8);
  });

  // `apikey` is the name of a user like any other, unless the secret is an API token.
  it.each(['same', 'apikey'])(
    'limits guesses by a user of the same name in another registry, whose login succeeds: %s',
    async (user) => {
      const { prefix } = await make([{ name: user, duration: 1, secret: 'pw-of-victim' }]);
      const own = await make([{ name: user, duration: 1, secret: 'guess' }]);
      const granted = async (secret: string, address: string) => {
        const scopes = [prefix, own.prefix].map((each) => `repository:${each}/a:pull`);
        return accessOf((await login(`${user}:${secret}`, scopes, address)).json().token).map(({ name }) => name);
      };
      cloud.clock.set(new Date('2026-11-20T13:00:00Z'));
      try {
        for (let i = 0; i < limits.pair; i += 1) {
          expect(await granted('guess', '192.0.2.1')).toEqual([`${own.prefix}/a`]);
        }
        // The same answer as for a wrong guess.
        expect(await granted('pw-of-victim', '192.0.2.1')).toEqual([]);
        expect(await granted('guess', '192.0.2.1')).toEqual([`${own.prefix}/a`]);
        expect(await granted('pw-of-victim', '192.0.2.2')).toEqual([`${prefix}/a`]);
        cloud.clock.advance(61);
        expect(await granted('pw-of-victim', '192.0.2.1')).toEqual([`${prefix}/a`]);
      } finally {
        cloud.clock.set(null);
      }
    },
  );

  it('counts a registry that a login does not include once for each request', async () => {
    const { id, prefix } = await make([{ name: 'ci', duration: 1, secret: 'pw-of-victim' }]);
    await make([{ name: 'ci', duration: 1, secret: 'pw-of-other' }]);
    cloud.clock.set(new Date('2026-11-20T14:00:00Z'));
    try {
      await tokenOf('ci:pw-of-other', ...times(20, (i) => `repository:x-${id}/r${i}:pull`));
      expect(accessOf(await tokenOf('ci:pw-of-victim', `repository:${prefix}/a:pull`))).toHaveLength(1);
    } finally {
      cloud.clock.set(null);
    }
  });

  it('never counts registries that a login by an API token does not include', async () => {
    const { prefix } = await make([]);
    const { token } = await cloud.newClient();
    const scope = `repository:${prefix}/a:pull`;
    cloud.clock.set(new Date('2026-11-20T15:00:00Z'));
    try {
      for (let i = 0; i <= limits.pair; i += 1) expect(accessOf(await tokenOf(`apikey:${token}`, scope))).toEqual([]);
      expect(accessOf(await tokenOf(`apikey:${cloud.admin}`, scope))).toHaveLength(1);
    } finally {
      cloud.clock.set(null);
    }
  });
});

describe.skipIf(!requires('docker-registry'))(skipReason('docker-registry') ?? 'the host of a registry', () => {
  let host: Awaited<ReturnType<typeof registryTestHost>>;
  let driver: RegistryDriver;
  let prefix: string;
  let name: string;
  let digest: string;

  /** Statuses of a pull and a push with a token. */
  const use = async (token: string, of = name, at = host) => {
    const call = (method: string, path: string) =>
      fetch(`http://127.0.0.1:${at.port}/v2/${of}/${path}`, { method, headers: { authorization: `Bearer ${token}` } });
    return [(await call('GET', `blobs/${digest}`)).status, (await call('POST', 'blobs/uploads/')).status];
  };

  beforeAll(async () => {
    host = await registryTestHost();
    driver = host.driver();
    await driver.start();
    await driver.configure((await cloud.services.registries.hosting([1]))!);
    ({ prefix } = await make([
      { name: 'writer', duration: 1, secret: 'pw' },
      { name: 'reader', duration: 1, secret: 'pw', read_only: true },
    ]));
    name = `${prefix}/a`;
    digest = await host.storage.layer(name, 'layer');
    expect(digest).toBe(digestOf('layer'));
  });
  afterAll(async () => {
    await driver?.stop();
    await host?.cleanUp();
  });

  it('grants only the access in a token', async () => {
    expect(await use(await tokenOf('writer:pw', `repository:${name}:pull,push`))).toEqual([200, 202]);
    expect(await use(await tokenOf('writer:pw', `repository:${name}:pull`))).toEqual([200, 401]);
    expect(await use(await tokenOf('writer:pw', `repository:${name}:push`))).toEqual([401, 401]);
    expect(await use(await tokenOf('reader:pw', `repository:${name}:pull,push,*`))).toEqual([200, 401]);
    expect(await use(await tokenOf('writer:pw', `repository:${name}:pull,push`), `${prefix}/b`)).toEqual([401, 401]);
    expect(await use(await tokenOf('writer:pw'))).toEqual([401, 401]);
  });

  it('refuses tokens that are altered, unsigned or signed by another key', async () => {
    const [header, payload, signature] = (await tokenOf('writer:pw', `repository:${name}:pull,push`)).split('.') as [
      string,
      string,
      string,
    ];
    const { certificate } = (await cloud.services.registries.hosting([1]))!;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signedBy = (head: object, body = payload) => {
      const text = `${encode(head)}.${body}`;
      return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    };
    const mac = (key: string) => {
      const text = `${encode({ ...decode(header), alg: 'HS256' })}.${payload}`;
      return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
    };
    const reader = (await tokenOf('reader:pw', `repository:${name}:pull`)).split('.');
    const own = decode(header);
    const forged = {
      none: `${encode({ ...own, alg: 'none' })}.${payload}.`,
      None: `${encode({ ...own, alg: 'None' })}.${payload}.${signature}`,
      'a MAC with the certificate': mac(certificate),
      'an empty MAC': mac(''),
      'no signature': `${header}.${payload}.`,
      'another key': signedBy(own),
      'another key in its header': signedBy({ ...own, jwk: publicKey.export({ format: 'jwk' }) }),
      'another key without an id': signedBy({ alg: 'ES256', typ: 'JWT' }),
      'another id': signedBy({ ...own, kid: 'AAAA:BBBB' }),
      'another payload': `${header}.${encode({ ...decode(payload), exp: 9_999_999_999 })}.${signature}`,
      'more rights': `${reader[0]}.${payload}.${reader[2]}`,
      nothing: '',
      garbage: 'a.b.c',
    };
    for (const [kind, token] of Object.entries(forged)) {
      expect([kind, ...(await use(token))]).toEqual([kind, 401, 401]);
    }
  });

  it('refuses tokens that are expired, not yet valid or for another host', async () => {
    const scope = `repository:${name}:pull,push`;
    try {
      cloud.clock.set(new Date(Date.now() - 600_000));
      expect(await use(await tokenOf('writer:pw', scope))).toEqual([401, 401]);
      cloud.clock.set(new Date(Date.now() + 600_000));
      expect(await use(await tokenOf('writer:pw', scope))).toEqual([401, 401]);
    } finally {
      cloud.clock.set(null);
    }
    const other = await registryTestHost();
    const second = other.driver();
    try {
      await second.start();
      await second.configure((await cloud.services.registries.hosting([2]))!);
      expect(await use(await tokenOf('writer:pw', scope), name, other)).toEqual([401, 401]);
    } finally {
      await second.stop();
      await other.cleanUp();
    }
  });

  it('accepts a token of a deleted user until it expires: after five minutes, or two for pushes', async () => {
    const { path, prefix: short } = await make([{ name: 'brief', duration: 1, secret: 'pw' }]);
    const push = await tokenOf('brief:pw', `repository:${short}/a:pull,push`);
    const pull = await tokenOf('brief:pw', `repository:${short}/a:pull`);
    const [user] = (await cloud.get(`${path}/users`)).body.results;
    await cloud.delete(`${path}/users/${user.id}`);
    expect(await use(push, `${short}/a`)).toEqual([404, 202]);
    const lifetime = (token: string) => {
      const { exp, iat } = decode(token.split('.')[1]!);
      return exp - iat;
    };
    expect([lifetime(push), lifetime(pull)]).toEqual([120, 300]);
  });

  it('writes nothing for a deleted registry, with any token', async () => {
    const { prefix: removed } = await make([{ name: 'late', duration: 1, secret: 'pw' }]);
    const token = await tokenOf('late:pw', `repository:${removed}/a:pull,push`);
    expect(await use(token, `${removed}/a`)).toEqual([404, 202]);
    await driver.remove(removed, new AbortController().signal);
    expect(await use(token, `${removed}/a`)).toEqual([404, 404]);
    expect(await driver.list()).not.toContain(removed);
  });
});
