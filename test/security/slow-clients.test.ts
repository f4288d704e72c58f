/**
 * Clients that send or read slowly, or that hold idle connections. Without a token they must not hold memory or
 * connections. Tests use short limits.
 */
import { once } from 'node:events';
import { Agent, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { App } from '../../src/http/app.ts';
import { type ApiOptions, createApi } from '../../src/main/api.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { useCloudyard } from '../harness.ts';
import { until } from '../until.ts';
import { rawClient, type RawClient, withinSeconds } from './raw-client.ts';

const cloud = useCloudyard({ driver: null });

/** Long enough for honest requests on a busy machine. */
const limits = { headersSeconds: 2, requestSeconds: 4, idleSeconds: 2, stalledSeconds: 2, checkSeconds: 0.2 };
/** Seconds until a connection past its limits is closed on a busy machine. */
const closeSeconds = 30;

let app: App;
const clients: RawClient[] = [];
const apps: App[] = [];
afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  for (const each of apps.splice(0)) await each.close();
});

async function serve(options: Partial<ApiOptions> = {}): Promise<number> {
  app = await createApi(cloud.services, { log: silentLogger, connectionLimits: limits, ...options });
  apps.push(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

async function connectTo(port: number, options: { from?: string; reads?: boolean } = {}): Promise<RawClient> {
  const client = await rawClient({ port, ...options });
  clients.push(client);
  return client;
}

const connections = (server: Server) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)));

/** The server processes what it has received from earlier clients before it answers the last of these requests. */
async function servesOthers(port: number): Promise<void> {
  for (let i = 0; i < 5; i++) expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
}

const collect = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

/** Live memory in MB. */
function memory(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1e6;
}

interface Target {
  method: string;
  path: string;
  headers: string;
}

/** Every operation that needs no token, routes outside the document, and an operation that needs a token. */
function targets(): Target[] {
  const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
  const json = 'Content-Type: application/json\r\n';
  const found = app.declaredOperations
    .filter(({ access }) => access.reach === 'public')
    .map(({ method, path, operationId }) => ({
      method,
      path: path.replace(/:\w+/g, '1'),
      headers: operationId === 'createRegistryToken' ? form : json,
    }));
  return [
    ...found,
    { method: 'PUT', path: '/cloudyard/v1/authorize/1/1/default/web/any/path', headers: '' },
    { method: 'GET', path: '/docs', headers: '' },
    { method: 'GET', path: '/docs/js/scalar.js', headers: '' },
    { method: 'POST', path: '/no/such/path', headers: json },
    { method: 'POST', path: '/cloud/v1/projects', headers: json },
    { method: 'POST', path: '/cloud/v1/projects', headers: `${json}Authorization: apikey ${cloud.admin}\r\n` },
  ];
}

const head = ({ method, path, headers }: Target, more = '') =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers}${more}`;

describe('a client that sends slowly', () => {
  let port: number;
  beforeAll(async () => {
    port = await serve();
    apps.length = 0;
    return () => app.close();
  });

  const attacks: [string, (target: Target) => { first: string; more: string }][] = [
    ['headers', (target) => ({ first: head(target, 'X-A: '), more: 'a' })],
    ['a body with Content-Length', (target) => ({ first: head(target, 'Content-Length: 10000\r\n\r\n{'), more: ' ' })],
    ['a chunk', (target) => ({ first: head(target, 'Transfer-Encoding: chunked\r\n\r\n2000\r\n{'), more: ' ' })],
    [
      'chunk after chunk',
      (target) => ({ first: head(target, 'Transfer-Encoding: chunked\r\n\r\n'), more: '1\r\n \r\n' }),
    ],
  ];

  it.each(attacks)('%s is disconnected on every public route and gets at most one response', async (_what, attack) => {
    await Promise.all(
      targets().map(async (target) => {
        const { first, more } = attack(target);
        const client = await connectTo(port);
        client.send(first);
        const timer = setInterval(() => client.send(more), 100);
        const what = `${target.method} ${target.path} is cut off`;
        await withinSeconds(client.closed, closeSeconds, what).finally(() => clearInterval(timer));
        const statuses = client.statuses();
        // A client that keeps sending after the end loses an unread response.
        expect({ what, many: statuses.length > 1 }).toEqual({ what, many: false });
        if (first.includes('X-A')) expect({ what, statuses }).toEqual({ what, statuses: [408] });
      }),
    );
    expect(await connections(app.server)).toBe(0);
  });

  it('nothing at all is disconnected without a response', async () => {
    const client = await connectTo(port);
    await withinSeconds(client.closed, closeSeconds, 'it is cut off');
    expect(client.received()).toBe('');
  });

  it('gets a 408 with an error body', async () => {
    const client = await connectTo(port);
    client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n');
    const [, body = ''] = (await withinSeconds(client.closed, closeSeconds, 'it is cut off')).split('\r\n\r\n');
    expect(JSON.parse(body)).toMatchObject({
      exception_class: 'InvalidInput',
      errors: [{ path: '', message: 'the request did not arrive in time' }],
    });
  });

  it('the rest of a body is disconnected after its error response', async () => {
    const client = await connectTo(port);
    client.send(`POST /cloud/v1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n`);
    await until(() => client.statuses().length > 0, closeSeconds, 'the answer');
    const timer = setInterval(() => client.send('x'), 100);
    await withinSeconds(client.closed, closeSeconds, 'it is cut off').finally(() => clearInterval(timer));
    expect(client.statuses()).toEqual([401]);
  });
});

describe('bodies of public routes', () => {
  it('are not buffered: 300 slow bodies hold less than 16 MB, and none after their disconnection', async () => {
    const port = await serve();
    const slow = async (headers: string, part: string) => {
      const client = await connectTo(port);
      client.send(`POST /cloudyard/v1/registry_token HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
      client.send(part);
      return client;
    };
    const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
    const before = memory();
    const opened: RawClient[] = [];
    for (let i = 0; i < 100; i++) {
      opened.push(await slow(`${form}Content-Length: 1000000\r\n`, 'x'.repeat(900_000)));
      opened.push(await slow(`${form}Transfer-Encoding: chunked\r\n`, `dbba0\r\n${'x'.repeat(900_000)}`));
      // Buffered chunks would be one object each.
      opened.push(await slow(`${form}Transfer-Encoding: chunked\r\n`, '1\r\nx\r\n'.repeat(16_000)));
    }
    const isDone = (client: RawClient) => client.statuses().length > 0 || client.socket.writableLength === 0;
    await until(() => opened.every(isDone), closeSeconds, 'an answer to each, or all of its bytes sent');
    await servesOthers((app.server.address() as AddressInfo).port);
    expect(memory() - before).toBeLessThan(16);
    await withinSeconds(Promise.all(opened.map(({ closed }) => closed)), closeSeconds, 'all are cut off');
    expect(new Set(opened.map((client) => client.statuses().join()))).toEqual(new Set(['413', '408']));
    for (const { socket } of clients.splice(0)) socket.destroy();
    opened.length = 0;
    await until(async () => (await connections(app.server)) === 0, closeSeconds, 'no connection is left');
    await until(() => memory() - before < 4, closeSeconds, 'the memory is free');
  });

  it('of a path without a route get 404 before they are read', async () => {
    const client = await connectTo(await serve());
    client.send(
      'POST /no/such/path HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{',
    );
    await until(() => client.statuses()[0] === 404, closeSeconds, 'the answer');
  });
});

describe('a client that does not read', () => {
  const list = '/cloud/v1/caas/keys/1/1';
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: apikey ${cloud.admin}\r\n\r\n`;
  beforeAll(async () => {
    const containers = Array.from({ length: 10_000 }, (_, i) => ({
      name: `${'n'.repeat(50)}${i}`,
      namespace: 'default',
    }));
    for (const name of ['one', 'two', 'three']) {
      expect((await cloud.post(list, { name, containers })).status).toBe(200);
    }
  });

  it.each(['/openapi.json', '/docs/js/scalar.js', list])('the responses of %s is disconnected', async (path) => {
    const port = await serve();
    const client = await connectTo(port, { reads: false });
    client.send(ask(path).repeat(8));
    await until(async () => (await connections(app.server)) === 1, closeSeconds, 'the connection');
    await until(async () => (await connections(app.server)) === 0, closeSeconds, 'it is cut off');
  });

  it('makes the server hold only one copy of the public documents', async () => {
    const port = await serve({ connectionLimits: { ...limits, stalledSeconds: 60 } });
    await Promise.all(['/openapi.json', '/docs/js/scalar.js'].map((url) => app.inject({ url })));
    const before = memory();
    let begun = 0;
    app.server.on('request', () => (begun += 1));
    for (let i = 0; i < 30; i++) {
      for (const path of ['/openapi.json', '/docs/js/scalar.js']) {
        const client = await connectTo(port, { reads: false });
        client.send(ask(path).repeat(8));
      }
    }
    await until(() => begun >= 60, closeSeconds, 'the first request of each connection');
    await servesOthers(port);
    const spellings = ['%73calar', 's%63alar', 'sc%61lar', 'sca%6car', 'scal%61r', 'scala%72'];
    for (const spelling of spellings) await app.inject({ method: 'HEAD', url: `/docs/js/${spelling}.js` });
    expect(memory() - before).toBeLessThan(16);
  });

  it('at once but makes progress gets a complete large list', async () => {
    const client = await connectTo(await serve(), { reads: false });
    client.send(ask(list).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    let length = 0;
    client.socket.on('data', (chunk) => {
      length += chunk.length;
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 20);
    });
    const { length: whole } = (await app.inject({ url: list, headers: { authorization: `apikey ${cloud.admin}` } }))
      .body;
    await client.closed;
    expect(length).toBeGreaterThan(whole);
  });
});

describe('within the limits', () => {
  it('a long poll lasts longer than any of them', async () => {
    const port = await serve();
    const made = await cloud.post('/cloud/v1/volumes/1/1', { name: 'slow', size: 1, source: 'new-volume' });
    const headers = { authorization: `apikey ${cloud.admin}` };
    const response = await fetch(`http://127.0.0.1:${port}/cloud/v1/tasks/${made.body.tasks[0]}?wait=8`, { headers });
    expect(await response.json()).toMatchObject({ state: 'NEW' });
  });

  it('a slow upload of an API key with 10,000 containers succeeds', async () => {
    const port = await serve({ connectionLimits: { ...limits, requestSeconds: 120 } });
    const containers = Array.from({ length: 10_000 }, (_, i) => ({
      name: `${'n'.repeat(50)}${i}`,
      namespace: 'default',
    }));
    const body = Buffer.from(JSON.stringify({ name: 'slow-upload', containers }).padEnd(4 * 1024 * 1024));
    const request = httpRequest({
      port,
      path: '/cloud/v1/caas/keys/1/1',
      method: 'POST',
      headers: {
        authorization: `apikey ${cloud.admin}`,
        'content-type': 'application/json',
        'content-length': body.length,
      },
    });
    const answered = once(request, 'response');
    const part = Math.ceil(body.length / 50);
    // Longer than the limits of idle and stalled connections.
    const pauseMs = ((limits.idleSeconds + 1) * 1000) / 50;
    for (let at = 0; at < body.length; at += part) {
      request.write(body.subarray(at, at + part));
      await sleep(pauseMs);
    }
    request.end();
    const [response] = await answered;
    expect(response.statusCode).toBe(200);
    response.resume();
  });
});

describe('connections', () => {
  it('of one address are limited, and another address is still served', async () => {
    const port = await serve({ connectionLimits: { connections: 3000, connectionsPerAddress: 2000 } });
    const opened: RawClient[] = [];
    for (let i = 0; i < 22; i++)
      opened.push(...(await Promise.all(Array.from({ length: 100 }, () => connectTo(port)))));
    await until(async () => (await connections(app.server)) === 2000, closeSeconds, '2000 are open');
    await until(() => opened.filter(({ socket }) => socket.closed).length === 200, closeSeconds, '200 are refused');
    const refused = opened.map((client) => client.received()).filter(Boolean);
    expect(refused.length).toBeGreaterThan(0);
    for (const answer of refused) {
      expect(answer).toMatch(
        /^HTTP\/1.1 503 Service Unavailable\r\n[^]*retry-after: 1\r\n[^]*"exception_class":"Unavailable"/,
      );
    }
    const other = await connectTo(port, { from: '127.0.0.2' });
    other.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => other.statuses()[0] === 200, closeSeconds, 'the answer for the other address');
    for (const { socket } of opened) socket.destroy();
    await until(async () => (await connections(app.server)) === 1, closeSeconds, 'they are closed');
    const again = await connectTo(port);
    again.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => again.statuses()[0] === 200, closeSeconds, 'the answer for the first address');
  });

  it('of a trusted proxy are not limited by its address', async () => {
    const port = await serve({ trustedProxies: ['127.0.0.1/32'], connectionLimits: { connectionsPerAddress: 3 } });
    await Promise.all(Array.from({ length: 10 }, () => connectTo(port)));
    await until(async () => (await connections(app.server)) === 10, closeSeconds, 'all are open');
  });

  it('do not exceed the limit of the server', async () => {
    const port = await serve({ connectionLimits: { ...limits, connections: 20, connectionsPerAddress: 10 } });
    for (const from of ['127.0.0.1', '127.0.0.2', '127.0.0.3']) {
      await Promise.all(Array.from({ length: 12 }, () => connectTo(port, { from })));
    }
    expect(await connections(app.server)).toBeLessThanOrEqual(20);
    // Idle connections are closed after the limit, and new ones are accepted.
    await until(async () => (await connections(app.server)) === 0, closeSeconds, 'idle connections are closed');
    const status = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).status;
    // The server may still have to accept connections that the clients opened.
    await until(async () => (await status()) === 200, closeSeconds, 'a new connection is accepted');
  });

  it('that are idle after a request are closed', async () => {
    const client = await connectTo(await serve());
    client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await withinSeconds(client.closed, closeSeconds, 'it is closed');
    expect(client.statuses()).toEqual([200]);
  });

  it('that are in use are not closed', async () => {
    const port = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number>();
    const began = performance.now();
    while (performance.now() - began < (limits.idleSeconds + 1) * 1000) {
      const request = httpRequest({ port, path: '/healthz', agent }).end();
      const [response] = await once(request, 'response');
      ports.add(request.socket!.localPort!);
      await text(response);
      await sleep(100);
    }
    agent.destroy();
    expect(ports.size).toBe(1);
  });
});

describe('pipelined requests', () => {
  it('get responses in order', async () => {
    const client = await connectTo(await serve());
    const paths = ['/readyz', '/no/such/path', '/healthz', '/cloudyard/v1/authorize/1/1/default/web', '/openapi.json'];
    client.send(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    await until(() => client.statuses().length === paths.length, closeSeconds, 'all answers');
    expect(client.statuses()).toEqual([200, 404, 200, 401, 200]);
  });

  it('in large numbers end the connection', async () => {
    const port = await serve();
    let begun = 0;
    const ping = cloud.db.$client.query.bind(cloud.db.$client);
    cloud.db.$client.query = ((...args: Parameters<typeof ping>) => ((begun += 1), ping(...args))) as typeof ping;
    const client = await connectTo(port);
    client.send('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5000));
    await withinSeconds(client.closed, closeSeconds, 'the connection ends').finally(() => {
      cloud.db.$client.query = ping;
    });
    expect(begun).toBeLessThan(50);
  });

  it('do not get the error of a later request', async () => {
    const client = await connectTo(await serve());
    const made = await cloud.post('/cloud/v1/volumes/1/1', { name: 'ahead', size: 1, source: 'new-volume' });
    client.send(
      `GET /cloud/v1/tasks/${made.body.tasks[0]}?wait=1 HTTP/1.1\r\nHost: x\r\nAuthorization: apikey ${cloud.admin}\r\n\r\n` +
        'not HTTP\r\n\r\n',
    );
    await withinSeconds(client.closed, closeSeconds, 'the connection ends');
    expect(client.statuses()).toEqual([]);
  });
});
