/** Requests whose work hangs are answered, and keep their slots until it ends. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { everyone } from '../authz/access.ts';
import { createApi } from '../main/api.ts';
import { silentLogger } from '../platform/log.ts';
import { defaultSettings } from '../platform/settings.ts';

const cloud = useCloudyard({ driver: null });
const shares = '/cloud/v1/file_shares/1/1';
const networks = '/cloud/v1/networks/1/1';
const late = {
  status: 503,
  retryAfter: '1',
  body: {
    exception_class: 'Unavailable',
    message: 'the request was not completed within 1 s; try again in a second',
  },
};
/** Enough to send a commit on a busy machine. */
const commitMs = 3000;
const lateChange = (effect: string) => ({
  ...late,
  body: { message: `the request was not completed within 3 s${effect}; try again in a second` },
});
const unchanged = lateChange('; nothing was changed');
const uncertain = lateChange(', and may have taken effect or may still do so');
const soon = { timeout: 30_000, interval: 20 };
let network: string;

beforeAll(async () => {
  network = (await cloud.get(networks)).body.results[0].id;
});
const newShare = () => ({ name: 'a share', protocol: 'NFS', size: 1, network: { network_id: network } });

/** A server whose requests may take 1 s by default. */
async function openServer(ms = 1000) {
  const app = await createApi(cloud.services, { log: silentLogger, timeLimit: { ms, checkMs: 20 } });
  onTestFinished(() => app.close());
  const send = async (method: 'GET' | 'POST' | 'PATCH', url: string, payload?: object, key?: string) => {
    const headers = { authorization: `apikey ${cloud.admin}`, ...(key !== undefined && { 'idempotency-key': key }) };
    const answer = await app.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, retryAfter: answer.headers['retry-after'], body: answer.json() };
  };
  const requests = async () => {
    const { body } = await app.inject('/metrics');
    const count = (state: string) =>
      Number(new RegExp(`cloudyard_requests\\{state="${state}"\\} (\\d+)`).exec(body)![1]);
    return { running: count('running'), waiting: count('waiting') };
  };
  return { app, send, requests };
}

/** Keeps a lock, as a session of an operator does, until the returned function is called. */
async function lock(statement: string): Promise<() => Promise<unknown>> {
  const client = new pg.Client(cloud.connection);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`begin; ${statement}`);
  return () => client.query('rollback');
}

const lockShares = () => lock('lock table file_shares in access exclusive mode');

describe('a request whose statement waits for a lock', () => {
  it('gets 503, and keeps its slot until the statement ends', async () => {
    const { send, requests } = await openServer();
    const unlock = await lockShares();
    expect(await send('GET', shares)).toMatchObject(late);
    expect(await requests()).toEqual({ running: 1, waiting: 0 });
    await unlock();
    await expect.poll(requests, soon).toEqual({ running: 0, waiting: 0 });
    expect((await send('GET', shares)).status).toBe(200);
  });

  it('does not let the next requests of its client wait longer for a slot, and their handlers never run', async () => {
    const { send, requests } = await openServer();
    const unlock = await lockShares();
    const answers = await Promise.all(Array.from({ length: 8 }, () => send('GET', shares)));
    const messages = answers.map(({ status, retryAfter, body }) => `${status} ${retryAfter} ${body.message}`);
    const waited = '503 1 the request waited 1 s for earlier requests of its client; try again in a second';
    expect(messages.toSorted()).toEqual([
      ...Array.from({ length: 5 }, () => waited),
      ...Array.from({ length: 3 }, () => `503 1 ${late.body.message}`),
    ]);
    expect(await requests()).toEqual({ running: 3, waiting: 0 });
    await unlock();
    await expect.poll(requests, soon).toEqual({ running: 0, waiting: 0 });
    expect((await send('GET', shares)).status).toBe(200);
  });

  it('changes nothing, unless its commit was sent', async () => {
    const { send, requests } = await openServer(commitMs);
    const unlock = await lock(`select from networks where id = '${network}' for update`);
    expect(await send('PATCH', `${networks}/${network}`, { name: 'too late' })).toMatchObject(unchanged);
    await unlock();
    await expect.poll(requests, soon).toEqual({ running: 0, waiting: 0 });
    expect((await cloud.get(`${networks}/${network}`)).body.name).not.toBe('too late');
  });

  it('changes nothing while it waits for the commit of an earlier request', async () => {
    const { send, requests } = await openServer(commitMs);
    const { count } = (await cloud.get(shares)).body;
    const unlock = await lock('lock table file_shares in share row exclusive mode');
    const first = send('POST', shares, newShare());
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await cloud.db.$client.query(waiting)).rowCount, soon).toBe(1);
    const second = send('POST', shares, newShare());
    expect(await Promise.all([first, second])).toMatchObject([uncertain, unchanged]);
    await unlock();
    await expect.poll(requests, soon).toEqual({ running: 0, waiting: 0 });
    expect((await cloud.get(shares)).body.count).toBe(count + 1);
  });

  it('may still take effect if its commit was sent, and its repetition with the same Idempotency-Key does nothing more', async () => {
    const { send, requests } = await openServer(commitMs);
    const { count } = (await cloud.get(shares)).body;
    const unlock = await lock('lock table file_shares in share row exclusive mode');
    const answer = await send('POST', shares, newShare(), 'late');
    expect(answer).toMatchObject(uncertain);
    await unlock();
    await expect.poll(requests, soon).toEqual({ running: 0, waiting: 0 });
    const repeated = await send('POST', shares, newShare(), 'late');
    expect(repeated).toMatchObject({ status: 200, body: { tasks: [expect.any(String)] } });
    expect((await cloud.get(shares)).body.count).toBe(count + 1);
  });

  it('gets 503 also before its handler runs: while its token, or its Idempotency-Key, is read', async () => {
    const { send } = await openServer();
    const unlock = await lock('lock table tokens, idempotency_keys in access exclusive mode');
    cloud.services.caches.stop();
    await expect.poll(async () => (await send('GET', shares)).status, soon).toBe(503);
    await unlock();
  });
});

it('a request gets 503 while the process that counts the requests of its client does not respond', async () => {
  const { clientLimits } = defaultSettings;
  const app = await createApi(cloud.services, {
    ...{ log: silentLogger, timeLimit: { ms: 1000, checkMs: 20 } },
    ...{ clientLimits: { ...clientLimits, requestsPerSecond: 1 }, rates: { take: () => new Promise(() => {}) } },
  });
  onTestFinished(() => app.close());
  const answer = await app.inject({ url: shares, headers: { authorization: `apikey ${cloud.admin}` } });
  expect({ status: answer.statusCode, retryAfter: answer.headers['retry-after'], body: answer.json() }).toMatchObject(
    late,
  );
});

it('the wait for a task does not count', async () => {
  const { send } = await openServer();
  const { body } = await send('POST', shares, newShare());
  const started = performance.now();
  const answer = await send('GET', `/cloud/v1/tasks/${body.tasks[0]}?wait=2`);
  expect(answer).toMatchObject({ status: 200, body: { state: 'NEW' } });
  expect(performance.now() - started).toBeGreaterThan(1900);
});

it('a response that has begun may take longer', async () => {
  const { app } = await openServer();
  async function* text() {
    yield 'begun, ';
    await sleep(1400);
    yield 'and ended';
  }
  app.get('/slow', { config: { access: everyone } }, async (_request, reply) => reply.send(Readable.from(text())));
  expect((await app.inject('/slow')).body).toBe('begun, and ended');
});

it('a request that gets no connection to the database in time says so', async () => {
  const { $client } = cloud.db;
  const taken = await Promise.all(Array.from({ length: $client.options.max }, () => $client.connect()));
  onTestFinished(() => taken.forEach((client) => client.release()));
  expect(await cloud.get(shares)).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    body: { message: 'all connections of this server to the database are in use; try again in a second' },
  });
});
