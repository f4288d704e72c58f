/** Floods of requests without a valid credential must cost little and must not lock out callers with one. */
import { describe, expect, it } from 'vitest';
import type { App } from '../../src/http/app.ts';
import { type ApiOptions, createApi } from '../../src/main/api.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { useCloudyard } from '../harness.ts';

const cloud = useCloudyard();
const [attacker, other, proxy] = ['192.0.2.1', '192.0.2.2', '10.0.0.1'];
const tasks = '/cloud/v1/tasks';
const anonymousLimits = { perMinute: 20, perMinuteLoopback: 40 };

async function open(options: Partial<ApiOptions> = {}): Promise<App> {
  return createApi(cloud.services, { log: silentLogger, anonymousLimits, ...options });
}

interface Sent {
  from: string;
  apikey?: string;
  headers?: Record<string, string>;
}

async function ask(app: App, url: string, { from, apikey, headers }: Sent) {
  const authorization = apikey === undefined ? {} : { authorization: `apikey ${apikey}` };
  const response = await app.inject({ url, remoteAddress: from, headers: { ...authorization, ...headers } });
  return { status: response.statusCode, headers: response.headers, body: response.body };
}

/** Sends requests with random tokens. Returns the number of responses by status. */
async function flood(app: App, count: number, sent: Sent, url = tasks): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  for (let i = 0; i < count; i++) {
    const { status } = await ask(app, url, { apikey: `guess${i}$secret`, ...sent });
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}

/** Number of queries that contain a text while `work` runs. */
async function queriesOf(what: string, work: () => Promise<unknown>): Promise<number> {
  const { $client: client } = cloud.db;
  const query = client.query.bind(client);
  let queries = 0;
  client.query = ((...args: Parameters<typeof query>) => {
    const [statement] = args as unknown as [string | { text: string }];
    if ((typeof statement === 'string' ? statement : statement.text).includes(what)) queries += 1;
    return query(...args);
  }) as typeof query;
  await work().finally(() => (client.query = query));
  return queries;
}

describe('guesses of tokens', () => {
  it('return 429 with Retry-After after the limit of the address, without a query', async () => {
    const app = await open();
    expect(await flood(app, 30, { from: attacker })).toEqual({ 401: 20, 429: 10 });
    const { status, headers, body } = await ask(app, tasks, { from: attacker, apikey: 'guess$secret' });
    expect({ status, body: JSON.parse(body) }).toMatchObject({
      status: 429,
      body: { exception_class: 'TooManyRequests' },
    });
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(await queriesOf('tokens', () => flood(app, 1, { from: other }))).toBe(1);
    expect(await queriesOf('tokens', () => flood(app, 50, { from: attacker }))).toBe(0);
    await app.close();
  });

  it('do not lock out other addresses, or tokens that the same address used before', async () => {
    const app = await open();
    const { token: mine } = await cloud.newClient();
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(200);
    await flood(app, 30, { from: attacker });
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(200);
    expect((await ask(app, tasks, { from: other, apikey: cloud.admin })).status).toBe(200);
    expect((await ask(app, tasks, { from: other, apikey: 'guess$secret' })).status).toBe(401);
    await app.close();
  });

  it('of the secret of a known token are limited and do not lock out the token', async () => {
    const app = await open();
    const { token: mine } = await cloud.newClient();
    const [id] = mine.split('$');
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(200);
    expect(await flood(app, 30, { from: attacker, apikey: `${id}$guess` })).toEqual({ 401: 20, 429: 10 });
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(200);
    await app.close();
  });

  it('do not make a revoked token work', async () => {
    const app = await open();
    const { token: mine } = await cloud.newClient();
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(200);
    await flood(app, 30, { from: attacker });
    await cloud.services.tokens.revoke(mine.split('$')[0]!);
    await expect.poll(async () => (await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(401);
    expect((await ask(app, tasks, { from: attacker, apikey: mine })).status).toBe(429);
    await app.close();
  });

  it('from loopback have a larger limit, and those of one IPv6 network share a limit', async () => {
    const app = await open();
    expect(await flood(app, 50, { from: '127.0.0.1' })).toEqual({ 401: 40, 429: 10 });
    expect(await flood(app, 50, { from: '::1' })).toEqual({ 401: 40, 429: 10 });
    expect(await flood(app, 15, { from: '2001:db8:1:2::1' })).toEqual({ 401: 15 });
    expect(await flood(app, 15, { from: '2001:db8:1:2:ffff::7' })).toEqual({ 401: 5, 429: 10 });
    expect(await flood(app, 1, { from: '2001:db8:1:3::1' })).toEqual({ 401: 1 });
    expect(await flood(app, 15, { from: '::ffff:192.0.2.9' })).toEqual({ 401: 15 });
    expect(await flood(app, 15, { from: '192.0.2.9' })).toEqual({ 401: 5, 429: 10 });
    await app.close();
  });
});

describe('X-Forwarded-For', () => {
  it('of an untrusted client does not change its address', async () => {
    const app = await open();
    for (let i = 0; i < 25; i++) {
      const headers = {
        'x-forwarded-for': `203.0.113.${i}`,
        forwarded: `for=203.0.113.${i}`,
        'x-real-ip': `203.0.113.${i}`,
      };
      const { status } = await ask(app, tasks, { from: attacker, apikey: 'guess$secret', headers });
      expect(status).toBe(i < 20 ? 401 : 429);
    }
    await app.close();
  });

  it('of a trusted proxy sets the address, and prepended addresses are ignored', async () => {
    const app = await open({ trustedProxies: ['10.0.0.0/24'] });
    const through = (client: string) => ({ from: proxy, headers: { 'x-forwarded-for': client } });
    for (let i = 0; i < 25; i++) {
      const { status } = await ask(app, tasks, {
        apikey: 'guess$secret',
        ...through(`203.0.113.${i}, ${attacker}, 10.0.0.7`),
      });
      expect(status).toBe(i < 20 ? 401 : 429);
    }
    expect(await flood(app, 1, through(other))).toEqual({ 401: 1 });
    await app.close();
  });
});

describe('public operations', () => {
  it.each(['/metrics', '/healthz/drivers', '/openapi.json', '/docs/'])('%s is limited by address', async (url) => {
    const app = await open();
    expect(await flood(app, 30, { from: attacker }, url)).toEqual({ 200: 20, 429: 10 });
    expect((await ask(app, url, { from: other })).status).toBe(200);
    // Callers with a token are not affected.
    expect((await ask(app, tasks, { from: attacker, apikey: cloud.admin })).status).toBe(200);
    await app.close();
  });

  it.each(['/healthz', '/readyz'])('%s is not limited', async (url) => {
    const app = await open();
    expect(await flood(app, 60, { from: attacker }, url)).toEqual({ 200: 60 });
    await app.close();
  });

  it('share database queries: a thousand concurrent readiness checks need fewer than 100', async () => {
    const app = await open();
    await app.ready();
    const queries = await queriesOf('select 1', () =>
      Promise.all(Array.from({ length: 1000 }, () => app.inject({ url: '/readyz' }))),
    );
    expect(queries).toBeLessThan(100);
    await app.close();
  });

  it('authorize is not limited, and a flood of unknown keys does not lock out a known key', async () => {
    const app = await open();
    const { body: key } = await cloud.post('/cloud/v1/caas/keys/1/1', {
      name: 'flooded',
      containers: [{ name: 'web', namespace: 'default' }],
    });
    const url = '/cloudyard/v1/authorize/1/1/default/web';
    expect(await flood(app, 60, { from: attacker, headers: { 'x-api-key': 'guess.secret' } }, url)).toEqual({
      401: 60,
    });
    expect((await ask(app, url, { from: attacker, headers: { 'x-api-key': key.secret } })).status).toBe(200);
    await app.close();
  });
});
