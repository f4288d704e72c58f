/** Reference, health, metrics, limits and logs of a real server, also while PostgreSQL is down. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { bootstrapToken, openYard, signalPostgres, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

const timeout = { timeout: 300_000 };
const simulated = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };
const unavailable = {
  exception_class: 'Unavailable',
  message: expect.stringContaining('database'),
  request_id: expect.any(String),
};

let yard: Yard;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  yard?.cleanUp();
});

const create = async (name: string) => yard.post(shares, newShare(name, await defaultNetwork(yard)));

describe('a running server', () => {
  it('serves its index, reference, OpenAPI document, health and metrics without a token', timeout, async () => {
    yard = await openYard(simulated);
    const server = await yard.start(['start']);
    const { version } = readJson('package.json');
    const open = { token: null };
    const reference = await yard.get('/docs/', open);
    expect([reference.status, reference.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ]);
    const committed = readJson('openapi.json');
    expect((await yard.get('/openapi.json', open)).body).toMatchObject({ openapi: '3.1.0', info: committed.info });
    expect((await yard.get('/healthz', open)).body).toEqual({ status: 'ok', version });
    expect((await yard.get('/', open)).body).toMatchObject({ name: 'Cloudyard', version });
    expect(server.log()).toContainEqual(expect.objectContaining({ msg: 'starting', version }));
    expect((await yard.get('/readyz', open)).body).toEqual({ status: 'ready' });
    const keyFile = join(yard.dataDir, 'secret.keys');
    writeFileSync(keyFile, 'broken\n');
    expect(await yard.get('/readyz', open)).toMatchObject({
      status: 503,
      body: { message: expect.stringContaining(`${keyFile}:1`) },
    });
    rmSync(keyFile);
    const { drivers, time_zones } = (await yard.get('/healthz/drivers', open)).body;
    expect(time_zones).toEqual([
      { detail: expect.stringMatching(/^IANA \d{4}[a-z]+, from /), worker: expect.any(String), region_ids: [1] },
    ]);
    expect(drivers).toMatchObject([
      { driver: 'simulated', real: false, healthy: true, region_ids: [1], remedy: expect.any(String) },
      { driver: 'simulated', real: false, healthy: true, region_ids: [1], remedy: expect.any(String) },
      { driver: 'simulated', real: false, healthy: true, region_ids: [1], remedy: expect.any(String) },
      { driver: 'simulated', real: false, healthy: true, region_ids: [1], remedy: expect.any(String) },
      { kind: 'e-mail', driver: 'simulated', real: false, region_ids: [] },
      { kind: 'webhooks', driver: 'webhook', real: true, healthy: true, region_ids: [] },
    ]);

    await yard.ended(await create('measured'));
    const metrics = await yard.get('/metrics', open);
    expect(metrics.headers.get('content-type')).toContain('text/plain');
    const lines = [
      /^cloudyard_http_request_seconds_count\{operation="createFileShare",status="200"\} 1$/m,
      /^cloudyard_task_seconds_count\{type="create_sfs",state="FINISHED"\} 1$/m,
      /^cloudyard_queue_jobs\{state="ready"\} \d+$/m,
      /^cloudyard_database_connections\{pool="api",state="idle"\} \d+$/m,
      /^cloudyard_database_connections\{pool="worker",state="busy"\} \d+$/m,
      /^# TYPE cloudyard_driver_errors_total counter$/m,
    ];
    expect(lines.filter((line) => !line.test(metrics.body))).toEqual([]);
  });

  it('writes the request id to the response, the log and the task, and logs no secret', timeout, async () => {
    yard = await openYard({ ...simulated, CLOUDYARD_LOG_LEVEL: 'trace' });
    const server = await yard.start(['start']);
    const made = (await yard.run(['token', 'create', '--role', 'admin'])).stdout.trim();
    const answer = await yard.post(shares, newShare('logged', await defaultNetwork(yard)), { token: made });
    const task = await yard.ended(answer);
    const id = answer.headers.get('x-request-id');
    expect(task.request_id).toBe(id);
    const wrong = await yard.post(shares, { name: 1 }, { token: made });
    expect(wrong.body.request_id).toBe(wrong.headers.get('x-request-id'));
    await yard.get(shares, { token: 'someone$unknown-secret' });
    await yard.get(shares, { headers: { authorization: `Bearer ${made}` } });
    await server.stop();
    for (const request of [id, wrong.body.request_id]) {
      expect(server.log().filter(({ reqId, msg }) => reqId === request && msg === 'request')).toHaveLength(1);
    }
    const lines = server.log().map((line) => JSON.stringify(line));
    expect(lines.length).toBeGreaterThan(10);
    const logs = [...lines, ...readLogs('postgres.log')].join('\n');
    for (const secret of [bootstrapToken, made, 'someone$unknown-secret'].map((token) => token.split('$')[1]!)) {
      expect(logs).not.toContain(secret);
    }
  });

  it('answers 429 with Retry-After to a client above its limit, and to no other client', timeout, async () => {
    yard = await openYard({ ...simulated, CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '1' });
    await yard.start(['start']);
    await yard.run(['client', 'create', 'other']);
    const other = (await yard.run(['token', 'create', '--client', '2'])).stdout.trim();
    const second = (await yard.run(['token', 'create'])).stdout.trim();
    const answers = await Promise.all(
      [undefined, second, undefined, second, undefined, second].map((token) =>
        yard.get('/cloud/v1/projects', token ? { token } : {}),
      ),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(3);
    expect(Number(refused[0]!.headers.get('retry-after'))).toBe(1);
    expect(refused[0]!.body).toEqual({
      exception_class: 'TooManyRequests',
      message: 'the client sends more than 1 requests a second, its limit',
      request_id: refused[0]!.headers.get('x-request-id'),
    });
    expect((await yard.get('/cloud/v1/projects', { token: other })).status).toBe(200);
    expect((await yard.get('/healthz')).status).toBe(200);
    expect((await yard.run(['client', 'weight', '2', '5'])).stdout).toContain('client 2 has weight 5');
    expect((await yard.run(['client', 'list'])).stdout).toContain('2\tother\tweight 5');
    expect(await yard.run(['client', 'weight', '2', '0'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('WEIGHT must be a whole number from 1 to 100'),
    });
    expect(await yard.run(['client', 'weight', '9', '2'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('client 9 not found'),
    });
  });
});

describe('a server without its database', () => {
  it('answers 503 with Retry-After, never 500, and recovers when the database is back', timeout, async () => {
    yard = await openYard(simulated);
    const given = { dataDir: yard.dataDir, log: silentLogger };
    let postgres = await startEmbeddedPostgres(given);
    closing.push(() => postgres.stop());
    const server = await yard.start(['start'], { DATABASE_URL: postgres.url });
    await yard.ended(await create('before'));
    const networkId = await defaultNetwork(yard);

    await postgres.stop();
    await until(async () => (await yard.get('/readyz')).status === 503, 10, 'not ready');
    const attempts = {
      ready: () => yard.get('/readyz'),
      drivers: () => yard.get('/healthz/drivers'),
      list: () => yard.get(shares),
      create: () => yard.post(shares, newShare('meanwhile', networkId)),
      keyed: () => yard.post(shares, newShare('meanwhile', networkId), { headers: { 'idempotency-key': 'k' } }),
      stranger: () => yard.get(shares, { token: 'someone$unknown' }),
    };
    const requestAll = async () => {
      for (const [name, attempt] of Object.entries(attempts)) {
        const { status, body, headers } = await attempt();
        expect([name, status, body, headers.get('retry-after')]).toEqual([name, 503, unavailable, '1']);
      }
      expect((await yard.get('/healthz')).status).toBe(200);
    };
    // Longer than any timeout of a connection.
    const stoppedAt = performance.now();
    await until(async () => (await requestAll(), performance.now() - stoppedAt > 12_000), 60, 'a long outage');
    const metrics = await yard.get('/metrics');
    expect([metrics.status, metrics.body]).toEqual([
      200,
      expect.stringContaining('operation="createFileShare",status="503"'),
    ]);

    postgres = await startEmbeddedPostgres(given);
    await until(async () => (await yard.get('/readyz')).status === 200, 10, 'ready again');
    expect((await yard.ended(await create('after'))).state).toBe('FINISHED');
    expect((await yard.get(shares)).body.count).toBe(2);
    expect(server.log().filter(({ status }) => status === 500)).toEqual([]);
    expect((await server.stop()).code).toBe(0);
  });

  it('is not ready while the database is frozen, and loses nothing', timeout, async () => {
    yard = await openYard(simulated);
    const postgres = await startEmbeddedPostgres({ dataDir: yard.dataDir, log: silentLogger });
    closing.push(() => postgres.stop());
    const server = await yard.start(['start'], { DATABASE_URL: postgres.url });
    const networkId = await defaultNetwork(yard);
    signalPostgres(postgres.pid()!, 'SIGSTOP');
    closing.unshift(async () => signalPostgres(postgres.pid()!, 'SIGCONT'));
    // It is refused if it needs another connection, which fails after 5 s, and then sent again.
    const created = yard.insist('POST', shares, newShare('meanwhile', networkId));
    for (let attempt = 1; attempt <= 2; attempt++) {
      const { status, body } = await yard.get('/readyz');
      expect([status, body]).toEqual([503, { ...unavailable, message: 'the database does not respond' }]);
    }
    expect((await yard.get('/healthz')).status).toBe(200);

    signalPostgres(postgres.pid()!, 'SIGCONT');
    expect((await yard.ended(await created)).state).toBe('FINISHED');
    expect((await yard.get('/readyz')).status).toBe(200);
    expect(server.log().filter(({ status }) => status === 500)).toEqual([]);
    expect((await server.stop()).code).toBe(0);
  });

  it('starts when a database that was frozen during the start continues', timeout, async () => {
    yard = await openYard(simulated);
    const postgres = await startEmbeddedPostgres({ dataDir: join(yard.folder, 'elsewhere'), log: silentLogger });
    closing.push(() => postgres.stop());
    signalPostgres(postgres.pid()!, 'SIGSTOP');
    closing.unshift(async () => signalPostgres(postgres.pid()!, 'SIGCONT'));
    const server = yard.spawn(['start'], { DATABASE_URL: postgres.url });
    await until(() => server.log().some(({ msg }) => String(msg).endsWith('starting again')), 30, 'a second attempt');
    signalPostgres(postgres.pid()!, 'SIGCONT');
    await until(() => server.stdout().includes('Cloudyard is ready.'), 30, 'the server');
    expect((await yard.ended(await create('after'))).state).toBe('FINISHED');
    expect((await server.stop()).code).toBe(0);
  });

  it('is not ready while the database is read-only, and serves reads', timeout, async () => {
    yard = await openYard(simulated);
    const server = await yard.start(['start']);
    const setMode = async (mode: string) => {
      await yard.sql(`alter system set default_transaction_read_only = ${mode}`);
      await yard.sql('select pg_reload_conf()');
    };
    const networkId = await defaultNetwork(yard);
    await setMode('on');
    const message = 'the database is read-only';
    await until(async () => (await yard.get('/readyz')).body.message === message, 10, 'not ready');
    expect(await yard.post(shares, newShare('meanwhile', networkId))).toMatchObject({
      status: 503,
      body: { message: `${message}; try again in a second` },
    });
    expect((await yard.get(shares)).status).toBe(200);
    await setMode('off');
    await until(async () => (await yard.get('/readyz')).status === 200, 10, 'ready again');
    expect((await yard.ended(await create('after'))).state).toBe('FINISHED');
    expect((await server.stop()).code).toBe(0);
  });
});

function readJson(file: string) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'));
}

function readLogs(...names: string[]): string[] {
  return names
    .map((name) => join(yard.dataDir, name))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'));
}
