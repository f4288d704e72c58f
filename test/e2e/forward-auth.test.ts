/** API keys in front of a container: real proxies with the configurations of docs/forward-auth.md, and updates of keys while PostgreSQL restarts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { startHaproxy, startNginx } from '../forward-auth.ts';
import { httpClient } from '../http-client.ts';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';

const timeout = { timeout: 300_000 };
const settings = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };
const keys = '/cloud/v1/caas/keys/1/1';
const web = { name: 'web', namespace: 'default' };
/** A new connection to PostgreSQL with one statement, on an idle machine. */
const usualConnectionMs = 20;

let yard: Yard;
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  yard?.cleanUp();
});

/** A server in place of the container, which records its requests. */
async function startContainer(): Promise<{ port: number; received: Record<string, unknown>[] }> {
  const received: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    received.push({ url: request.url, method: request.method, key: request.headers['x-api-key'] });
    response.end('the container');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => (server.closeAllConnections(), server.close()));
  return { port: (server.address() as AddressInfo).port, received };
}

/** Sends a request through the proxy. Returns the response, or the status and reason of a refusal. */
async function through(port: number, key: string | null, path = '/', method = 'GET'): Promise<string> {
  const headers = { ...(key !== null && { 'x-api-key': key }) };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
  const text = await response.text();
  return response.status === 200 ? text : `${response.status} ${response.headers.get('x-cloudyard-reason')}`;
}

async function expectGuarded(port: number, container: Awaited<ReturnType<typeof startContainer>>): Promise<void> {
  const { secret } = (await yard.post(keys, { name: 'a-key', containers: [web] })).body;
  const elsewhere = { name: 'db', namespace: 'default' };
  const { secret: other } = (await yard.post(keys, { name: 'other-key', containers: [elsewhere] })).body;
  await until(() => through(port, secret).catch(() => null), 20, 'the proxy');
  container.received.length = 0;
  expect(await through(port, secret, '/any/path?x=1')).toBe('the container');
  expect(await through(port, secret, '/', 'POST')).toBe('the container');
  expect(await through(port, secret, '/?name=db&namespace=default&project_id=2', 'DELETE')).toBe('the container');
  expect(container.received).toEqual([
    { url: '/any/path?x=1', method: 'GET', key: undefined },
    { url: '/', method: 'POST', key: undefined },
    { url: '/?name=db&namespace=default&project_id=2', method: 'DELETE', key: undefined },
  ]);
  expect(await through(port, null)).toBe('401 missing_key');
  expect(await through(port, 'x')).toBe('401 unknown_key');
  expect(await through(port, other)).toBe('403 other_container');
  for (const [change, answer] of [
    [{ is_disabled: true }, '403 disabled_key'],
    [{ is_disabled: false, containers: null }, '403 no_containers'],
    [{ containers: [web], expire: new Date(Date.now() + 1500).toISOString() }, 'the container'],
  ] as const) {
    expect((await yard.patch(`${keys}/a-key`, change)).status).toBe(200);
    expect(await through(port, secret)).toBe(answer);
  }
  await until(async () => (await through(port, secret)) === '401 expired_key', 5, 'the key has expired');
  expect((await yard.patch(`${keys}/a-key`, { expire: null })).status).toBe(200);
  expect(await through(port, secret)).toBe('the container');
  expect((await yard.delete(`${keys}/a-key`)).status).toBe(204);
  expect(await through(port, secret)).toBe('401 unknown_key');
}

describe.skipIf(!requires('nginx'))(skipReason('nginx') ?? 'nginx', () => {
  it('admits requests with a valid key, and none while Cloudyard is stopped', timeout, async () => {
    yard = await openYard(settings);
    const cloudyard = await yard.start(['serve']);
    const container = await startContainer();
    const { port, stop } = await startNginx(yard, container.port);
    stops.push(stop);
    await expectGuarded(port, container);
    await cloudyard.stop();
    expect(await through(port, 'x')).toMatch(/^500/);
  });
});

describe.skipIf(!requires('haproxy'))(skipReason('haproxy') ?? 'HAProxy', () => {
  it('admits requests with a valid key, and none while Cloudyard is stopped', timeout, async () => {
    yard = await openYard(settings);
    const cloudyard = await yard.start(['serve']);
    const container = await startContainer();
    const { port, stop } = await startHaproxy(yard, container.port);
    stops.push(stop);
    await expectGuarded(port, container);
    await cloudyard.stop();
    expect(await through(port, 'x')).toMatch(/^403/);
  });
});

describe('while PostgreSQL restarts', () => {
  it(
    'servers keep responding, and apply each change at once or, on another server, within a second',
    timeout,
    async () => {
      yard = await openYard(settings);
      const otherPort = await freePort();
      await yard.start(['serve']);
      await yard.start(['serve'], { CLOUDYARD_PORT: String(otherPort) });
      const other = httpClient(`http://127.0.0.1:${otherPort}`, bootstrapToken);
      const { secret } = (await yard.post(keys, { name: 'a-key', containers: [web] })).body;
      const headers = { 'x-api-key': secret };
      const ask = async (at: typeof other) =>
        (await at.get('/cloudyard/v1/authorize/1/1/default/web', { token: null, headers })).status;
      await until(async () => (await ask(other)) === 200, 5, 'the other server has the key');

      const answers = new Set<number>();
      let over = false;
      const asking = [yard, other].map(async (at) => {
        while (!over) {
          answers.add(await ask(at));
          await sleep(5);
        }
      });
      const delays: { ms: number; slowness: number }[] = [];
      for (let round = 0; round < 6; round++) {
        // Kill before the change in odd rounds, and during it in even rounds.
        const postgres = yard.pids().postgres;
        if (round % 2 === 1 && postgres) process.kill(postgres, round % 4 === 1 ? 'SIGKILL' : 'SIGINT');
        const isDisabled = round % 2 === 0;
        const changing = yard.insist('PATCH', `${keys}/a-key`, { is_disabled: isDisabled });
        if (round % 2 === 0 && postgres && round > 0) process.kill(postgres, 'SIGKILL');
        expect((await changing).status).toBe(200);
        const expected = isDisabled ? 403 : 200;
        expect(await ask(yard)).toBe(expected);
        // PostgreSQL may have committed the change before it was killed, and still be starting.
        const connected = () =>
          yard.sql('select').then(
            () => true,
            () => false,
          );
        await until(connected, 30, 'PostgreSQL accepts connections');
        const reachable = performance.now();
        const connections: number[] = [];
        const isApplied = async () => {
          const start = performance.now();
          await connected();
          connections.push(performance.now() - start);
          return (await ask(other)) === expected;
        };
        await until(isApplied, 30, 'the change to apply on the other server');
        const average = connections.reduce((sum, ms) => sum + ms) / connections.length;
        delays.push({ ms: performance.now() - reachable, slowness: Math.max(1, average / usualConnectionMs) });
        await until(async () => (await yard.get('/readyz')).status === 200, 30, 'the database is back');
      }
      over = true;
      await Promise.all(asking);
      expect([...answers].sort()).toEqual([200, 403]);
      // The other server also opens a connection to PostgreSQL.
      for (const { ms, slowness } of delays) expect(ms).toBeLessThan(1000 * slowness);
    },
  );
});
