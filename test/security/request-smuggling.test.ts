/**
 * Requests that two servers may parse differently, through the proxies of docs/forward-auth.md and directly to the API. The
 * container behind a proxy parses leniently, as an old server would, so that it shows every ambiguity that a proxy forwards.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Proxy, startHaproxy, startNginx } from '../forward-auth.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { exchange, rawClient } from './raw-client.ts';
import { type Attack, framings, get, misleading, spoofed, targets } from './smuggled-requests.ts';

const timeout = { timeout: 300_000 };
const keys = '/cloud/v1/caas/keys/1/1';
const authorize = '/cloudyard/v1/authorize/1/1/default/web';

let yard: Yard;
/** API keys of the container behind the proxies, and of another container. */
let key: string;
let otherKey: string;

beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
  await yard.start(['serve']);
  const create = async (name: string) =>
    (await yard.post(keys, { name: `${name}-key`, containers: [{ name, namespace: 'default' }] })).body
      .secret as string;
  [key, otherKey] = [await create('web'), await create('db')];
}, 300_000);
afterAll(() => yard?.cleanUp());

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
}

async function startContainer(): Promise<{ port: number; seen: Seen[]; stop(): Promise<void> }> {
  const seen: Seen[] = [];
  const server = createServer({ insecureHTTPParser: true, requireHostHeader: false }, (request, response) => {
    seen.push({ method: request.method!, url: request.url!, headers: request.headers });
    request.resume().once('end', () => response.end('the container'));
  });
  server.on('upgrade', (request, socket) => {
    seen.push({ method: request.method!, url: request.url!, headers: request.headers });
    socket.destroy();
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends an attack, then an honest request on the same connection. Returns all statuses after the connection is closed. */
async function attack(port: number, { head, body = '' }: Attack, apiKey: string | null): Promise<number[]> {
  const shown = apiKey === null || !head.includes('HTTP/1') ? '' : `X-API-Key: ${apiKey}\r\n`;
  const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const client = await exchange(port, Buffer.from(`${head}${shown}\r\n${body}${last}`, 'latin1'), 3);
  return client.statuses();
}

type Start = (yard: Yard, container: number) => Promise<Proxy>;
const proxies: ['nginx' | 'haproxy', Start][] = [
  ['nginx', startNginx],
  ['haproxy', startHaproxy],
];

for (const [name, startProxy] of proxies) {
  describe.skipIf(!requires(name))(skipReason(name) ?? `through ${name}`, () => {
    let proxy: Proxy;
    let container: Awaited<ReturnType<typeof startContainer>>;
    beforeAll(async () => {
      container = await startContainer();
      proxy = await startProxy(yard, container.port);
      await until(
        () =>
          through('/')
            .then((status) => status === 401)
            .catch(() => false),
        30,
        'the proxy',
      );
    });
    afterAll(async () => {
      await proxy?.stop();
      await container?.stop();
    });
    afterEach(() => {
      container.seen.length = 0;
    });

    const through = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(`http://127.0.0.1:${proxy.port}${path}`, { headers })).status;

    /** Expects that connections between the proxy and Cloudyard are in sync: each response belongs to its request. */
    const expectInSync = async () => {
      for (let i = 0; i < 4; i++) {
        expect(await through('/honest', { 'x-api-key': key })).toBe(200);
        expect(await through('/honest')).toBe(401);
        expect(await through('/honest', { 'x-api-key': otherKey })).toBe(403);
      }
    };

    it('no request without a key reaches the container, with any framing or address', timeout, async () => {
      for (const each of [...framings, ...targets]) {
        await attack(proxy.port, each, null);
        await attack(proxy.port, each, otherKey);
        expect({ what: each.what, seen: container.seen }).toEqual({ what: each.what, seen: [] });
      }
      await expectInSync();
    });

    it('a request in a body is not parsed as a request, even if the outer request has a key', timeout, async () => {
      for (const each of framings) {
        await attack(proxy.port, each, key);
        const reached = container.seen.filter(({ url, headers }) => url !== '/attack' || headers['x-smuggled']);
        expect({ what: each.what, reached }).toEqual({ what: each.what, reached: [] });
      }
      await expectInSync();
    });

    it('a Content-Length without a body does not desynchronize the connection to Cloudyard', timeout, async () => {
      // If the proxy forwards the length, Cloudyard reads the beginning of the next request as the body. The rest could be
      // a request that the attacker wrote into the key, and its 200 would open a container without a key.
      const injected = 'GET /healthz HTTP/1.0';
      const wrong: { length: number; statuses: number[] }[] = [];
      for (let length = 1; length <= 200; length++) {
        const head = `POST /attack HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Length: ${length}\r\n`;
        const second = `GET /without-key HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${injected}\r\n\r\n`;
        const client = await exchange(proxy.port, `${head}\r\n${'x'.repeat(length)}${second}`, 5);
        if (client.statuses().join() !== '200,401') wrong.push({ length, statuses: client.statuses() });
      }
      expect(container.seen.filter(({ url }) => url === '/without-key')).toEqual([]);
      expect(wrong).toEqual([]);
      await expectInSync();
    });

    it('the proxy sends only the key of a request to Cloudyard', timeout, async () => {
      const received: Seen[] = [];
      const recorder = createServer(({ method = '', url = '', headers }, response) => {
        received.push({ method, url, headers });
        response.writeHead(204).end();
      });
      recorder.listen(0, '127.0.0.1');
      await once(recorder, 'listening');
      const { port } = recorder.address() as AddressInfo;
      const recorded = await startProxy({ ...yard, port }, container.port);
      const ask = () =>
        fetch(`http://127.0.0.1:${recorded.port}/attack?x=1`, {
          method: 'POST',
          headers: { 'x-api-key': key, cookie: 'a=b', 'x-forwarded-for': '127.0.0.1', 'x-container-name': 'db' },
          body: 'a body',
        });
      await until(
        () =>
          ask()
            .then(({ ok }) => ok)
            .catch(() => false),
        30,
        'the proxy',
      );
      await recorded.stop();
      recorder.closeAllConnections();
      recorder.close();
      const { method, url, headers } = received.at(-1)!;
      expect({ method, url, key: headers['x-api-key'] }).toEqual({ method: 'GET', url: authorize, key });
      const others = Object.keys(headers).filter(
        (name) => !['x-api-key', 'host', 'accept', 'user-agent'].includes(name),
      );
      expect(others).toEqual([]);
    });

    it('only X-API-Key passes a key, and no other header changes the authorization', timeout, async () => {
      for (const line of spoofed) {
        const head = `GET /attack HTTP/1.1\r\nHost: x\r\n${line.replace('KEY', key)}\r\n`;
        await attack(proxy.port, get(line, head), null);
        expect({ line, seen: container.seen }).toEqual({ line, seen: [] });
      }
      for (const shown of ['', `X-API-Key: ${otherKey}\r\n`]) {
        await attack(proxy.port, get('', `GET /attack HTTP/1.1\r\nHost: x\r\n${misleading}${shown}`), null);
        expect(container.seen).toEqual([]);
      }
    });

    it('at most one of two keys is used, and the container receives neither', timeout, async () => {
      const two = (first: string, second: string) =>
        exchange(
          proxy.port,
          `GET /two HTTP/1.1\r\nHost: x\r\nX-API-Key: ${first}\r\nX-API-Key: ${second}\r\nConnection: close\r\n\r\n`,
        );
      await two('guess', 'guess');
      await two(otherKey, 'guess');
      expect(container.seen).toEqual([]);
      for (const [first, second] of [
        [key, 'guess'],
        ['guess', key],
        [key, otherKey],
      ] as const)
        await two(first, second);
      for (const { headers } of container.seen) expect(JSON.stringify(headers)).not.toContain(key);
    });

    it('the container receives the unchanged path and no authorization header', timeout, async () => {
      const client = await rawClient({ port: proxy.port });
      client.send(`GET /a//b/%2e%2e/c?x=%2F HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: close\r\n\r\n`);
      await client.closed;
      expect(client.statuses()).toEqual([200]);
      expect(container.seen).toMatchObject([{ method: 'GET', url: '/a//b/%2e%2e/c?x=%2F' }]);
      expect(container.seen[0]!.headers).not.toHaveProperty('x-api-key');
    });
  });
}

describe('directly to the API', () => {
  it('an ambiguous request returns 400 and ends the connection', timeout, async () => {
    const clear = new Set([
      'CL.0 with a body that is a request',
      'a body that waits for 100 Continue',
      'a GET with a body',
      'a coding after a tab',
      'a coding in capitals',
      'an underscore for the hyphen',
      'a trailer that is a length',
      'chunks of HTTP/1.0',
    ]);
    for (const each of framings) {
      const target = { ...each, head: each.head.replace('/attack', authorize) };
      const statuses = await attack(yard.port, target, null);
      if (clear.has(each.what)) continue;
      expect({ what: each.what, statuses }).toEqual({ what: each.what, statuses: [400] });
    }
  });

  /** Targets of which the path is that of a public page: the health check and the index. */
  const reachesPublicPage = new Set([
    'an absolute URI',
    ...['//', '*', '/?a=/../', '/#'].map((path) => `the path ${path}`),
  ]);

  it('a body is not parsed as a request, and only a key opens a container', timeout, async () => {
    for (const each of [...framings, ...targets]) {
      const target = {
        ...each,
        head: each.head.replace('/attack', authorize),
        body: each.body?.replace('/smuggled', '/healthz'),
      };
      for (const path of [each, target]) {
        for (const shown of [null, otherKey]) {
          const statuses = await attack(yard.port, path as Attack, shown);
          const what = { what: each.what, statuses };
          expect({
            ...what,
            opened: statuses.some((status) => status >= 200 && status < 300) && !reachesPublicPage.has(each.what),
          }).toEqual({ ...what, opened: false });
        }
      }
    }
  });

  it('a second key, another spelling or a proxy header opens nothing', timeout, async () => {
    const ask = async (lines: string) => {
      const client = await exchange(
        yard.port,
        `GET ${authorize} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}\r\n`,
      );
      return client.statuses()[0];
    };
    expect(await ask(`X-API-Key: ${key}\r\n`)).toBe(200);
    for (const line of spoofed) expect([400, 401]).toContain(await ask(`${line.replace('KEY', key)}\r\n`));
    expect(await ask(`X-API-Key: ${key}\r\nX-API-Key: ${otherKey}\r\n`)).toBe(401);
    expect(await ask(misleading)).toBe(401);
    expect(await ask(`${misleading}X-API-Key: ${otherKey}\r\n`)).toBe(403);
  });

  it.each(['GET', 'POST'])(
    'a %s with a body ends the connection, so that a proxy cannot desynchronize',
    async (method) => {
      const client = await rawClient({ port: yard.port });
      client.send(`${method} ${authorize} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Length: 30\r\n\r\n`);
      await until(() => client.socket.closed, 20, 'the connection ends');
      expect(client.statuses()).toEqual([200]);
      expect(client.received()).toMatch(/connection: close/i);
    },
  );

  it('paths are not normalized: no spelling leads to another container or operation', timeout, async () => {
    const ask = async (path: string, shown: string) => {
      const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${shown}\r\n\r\n`;
      return (await exchange(yard.port, head)).statuses()[0];
    };
    const base = '/cloudyard/v1/authorize/1/1/default';
    for (const path of [
      `${base}/web/../db`,
      `${base}/web/%2e%2e/db`,
      `${base}/web/..;/db`,
      `${base}/web//db`,
      `${base}/web/..%2fdb`,
    ]) {
      expect({ path, db: await ask(path, otherKey), web: await ask(path, key) }).toEqual({ path, db: 403, web: 200 });
    }
    for (const path of [
      `${base}/../default/web`,
      `${base}//web`,
      `${base}/%2e/web`,
      `/cloudyard/v1/authorize/../authorize/1/1/default/web`,
      `//cloudyard/v1/authorize/1/1/default/web`,
      `${base}/web%2fx`,
      `${base}/web%00`,
      `${base}/web;x`,
      `${base}%2fweb`,
    ]) {
      expect({ path, opened: (await ask(path, key))! < 300 }).toEqual({ path, opened: false });
    }
  });
});
