import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { createForward, type Forwarding } from './forward.ts';
import { refuse, Refusal } from './refusal.ts';

type Repair = NonNullable<Forwarding['repair']>;

const mib = 1024 ** 2;
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

const listening = async (server: Server, where: string | number): Promise<Server> => {
  server.listen(where);
  await once(server, 'listening');
  opened.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return server;
};

interface GateOptions extends Partial<Forwarding> {
  onRequest?(request: IncomingMessage): void;
  /** Gets the body that distribution has received before it answers. Default: it answers at once. */
  onBody?(body: Buffer): unknown;
  /** The body of the responses with `statuses`. */
  body?: string;
}

/** The port of a gate. Distribution answers with `statuses` in turn, then with 404. */
async function openGate(statuses: number[], { onRequest, onBody, body, ...more }: GateOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-forward-'));
  opened.push(() => rm(folder, { recursive: true }));
  const socket = join(folder, 'socket');
  await listening(
    createServer(async (request, response) => {
      if (onBody) onBody(await buffer(request));
      else request.resume();
      const status = statuses.shift();
      if (status === undefined) response.writeHead(404).end();
      else response.writeHead(status, body === undefined ? {} : { 'content-type': 'application/json' }).end(body);
    }),
    socket,
  );
  const forward = createForward(socket);
  const { signal } = new AbortController();
  const gate = createServer((request, response) => {
    onRequest?.(request);
    forward(request, response, { method: request.method!, url: '/v2/', signal, ...more }).catch((error: Refusal) =>
      refuse(request, response, error),
    );
  });
  return ((await listening(gate, 0)).address() as AddressInfo).port;
}

/** The status that a client gets for its request. */
async function statusOf(method: string, statuses: number[], repair: Repair): Promise<number> {
  const port = await openGate(statuses, { repair });
  const body = method === 'PUT' ? { body: 'manifest' } : {};
  return (await fetch(`http://127.0.0.1:${port}/v2/`, { method, ...body })).status;
}

/** What a client reads that continues its body after the response, on a connection that is closed after the request. */
async function readWhileSending(port: number): Promise<string> {
  const part = Buffer.alloc(64 * 1024);
  const parts = 64;
  const client = connect(port, '127.0.0.1').setEncoding('utf8');
  const closed = once(client, 'close');
  let text = '';
  client.on('data', (data: string) => (text += data));
  client.write(`PATCH / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${parts * part.length}\r\n\r\n`);
  client.write(part);
  await once(client, 'data');
  for (let sent = 1; sent < parts; sent += 1) {
    await new Promise((resolve) => client.write(part, resolve));
  }
  await closed;
  return text;
}

it('sends a request again after a server error, if a file was repaired or is being written', async () => {
  const results = ['repaired', 'pending'] as const;
  let calls = 0;
  expect(await statusOf('GET', [500, 500], async () => results[calls++]!)).toBe(404);
  expect(calls).toBe(2);
});

it('sends a request again once if nothing is to be repaired: another request may have done it', async () => {
  expect(await statusOf('GET', [500], async () => 'sound')).toBe(404);
  expect(await statusOf('GET', [500, 500], async () => 'sound')).toBe(500);
});

it('repairs after a refusal that reports an error of the storage, and no other refusal', async () => {
  const repairsAfter = async (...codes: string[]) => {
    let repairs = 0;
    const repair: Repair = async () => ((repairs += 1), 'repaired');
    const port = await openGate([400], { repair, body: JSON.stringify({ errors: codes.map((code) => ({ code })) }) });
    const { status } = await fetch(`http://127.0.0.1:${port}/v2/`, { method: 'PUT', body: 'manifest' });
    return [status, repairs];
  };
  expect(await repairsAfter('MANIFEST_BLOB_UNKNOWN', 'UNKNOWN')).toEqual([503, 1]);
  expect(await repairsAfter('DIGEST_INVALID', 'MANIFEST_BLOB_UNKNOWN')).toEqual([503, 1]);
  expect(await repairsAfter('MANIFEST_BLOB_UNKNOWN')).toEqual([400, 0]);
  expect(await repairsAfter('DIGEST_INVALID')).toEqual([400, 0]);
});

it('repairs after the refusal of a deletion with an invalid digest, which the link of the manifest contains', async () => {
  let repairs = 0;
  const repair: Repair = async () => ((repairs += 1), 'repaired');
  const port = await openGate([400], { repair, body: '{"errors":[{"code":"DIGEST_INVALID"}]}' });
  const { status } = await fetch(`http://127.0.0.1:${port}/v2/`, { method: 'DELETE' });
  expect([status, repairs]).toEqual([404, 1]);
});

it('asks the client to repeat a request with a body', async () => {
  expect(await statusOf('PUT', [500], async () => 'repaired')).toBe(503);
  expect(await statusOf('PUT', [500], async () => 'sound')).toBe(500);
});

describe('a request whose body is kept', () => {
  const error = (enclosed: object) =>
    JSON.stringify({ errors: [{ code: 'UNKNOWN', detail: { DriverName: 'filesystem', Enclosed: enclosed } }] });
  const lost = error({
    Op: 'open',
    Path: 'docker/registry/v2/repositories/app-1/a/_manifests/tags/v1/current/link',
    Err: 2,
  });
  /** The status for a body of 3 KiB, and the bodies that distribution received. */
  const put = async (statuses: number[], options: Partial<GateOptions>) => {
    const bodies: Buffer[] = [];
    const onBody = (body: Buffer) => bodies.push(body);
    const port = await openGate(statuses, { keeps: 4096, repair: async () => 'sound', onBody, ...options });
    const sent = randomBytes(3 * 1024);
    const { status } = await fetch(`http://127.0.0.1:${port}/v2/`, { method: 'PUT', body: sent });
    return { status, sent, bodies };
  };

  it('is sent again after a deletion has removed the folder that distribution writes to', async () => {
    const { status, sent, bodies } = await put([500, 500], { body: lost });
    expect([status, bodies]).toEqual([404, [sent, sent, sent]]);
  });

  it('is sent again after a repair', async () => {
    expect(await put([500], { repair: async () => 'repaired' })).toMatchObject({ status: 404, bodies: { length: 2 } });
  });

  it('is not sent again after another error', async () => {
    const body = error({ Op: 'open', Path: 'docker/registry/v2/repositories', Err: 13 });
    expect(await put([500], { body })).toMatchObject({ status: 500, bodies: { length: 1 } });
  });

  it('is not sent again if it was too long to be kept', async () => {
    expect(await put([500], { body: lost, keeps: 1024 })).toMatchObject({ status: 500, bodies: { length: 1 } });
  });
});

it.each([
  ['PUT', {}],
  ['PUT', { body: 'layer' }],
  ['DELETE', {}],
])('reports that a request was sent: %s %o', async (method, body) => {
  let reports = 0;
  const port = await openGate([201], { onSent: () => (reports += 1), onBody: () => undefined });
  await fetch(`http://127.0.0.1:${port}/v2/`, { method, ...body });
  expect(reports).toBe(1);
});

it('responds with the reason for which a request was ended', async () => {
  const signal = AbortSignal.abort(new Refusal(404, 'BLOB_UPLOAD_UNKNOWN', 'the upload was removed'));
  const response = await fetch(`http://127.0.0.1:${await openGate([], { signal })}/v2/`, {
    method: 'PATCH',
    body: 'x',
  });
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('the upload was removed')]);
});

it('frees each part of a body once it is sent', async () => {
  const parts: Buffer[] = [];
  const bodies: Buffer[] = [];
  const port = await openGate([202], {
    onRequest: (request) => request.on('data', (part: Buffer) => parts.push(part)),
    onBody: (body) => bodies.push(body),
  });
  const sent = randomBytes(mib);
  const { status } = await fetch(`http://127.0.0.1:${port}/v2/`, { method: 'PATCH', body: sent });
  expect([status, parts.length > 0]).toEqual([202, true]);
  expect(bodies[0]!.equals(sent)).toBe(true);
  expect(parts.reduce((bytes, part) => bytes + part.length, 0)).toBe(0);
});

it('survives a response to HEAD that has a body, as distribution sends without a valid host', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-forward-'));
  opened.push(() => rm(folder, { recursive: true }));
  const server = createTcpServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request'));
  }).listen(join(folder, 'socket'));
  opened.push(() => new Promise((resolve) => server.close(resolve)));
  await once(server, 'listening');
  const ended = once(server, 'connection').then(([socket]) => once(socket, 'close'));
  const request = { rawHeaders: [] as string[] } as IncomingMessage;
  expect((await createForward(join(folder, 'socket')).head(request, '/v2/')).statusCode).toBe(400);
  await ended;
});

it('gives a response 416 a body: distribution declares the length of the blob, and sends nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-forward-'));
  opened.push(() => rm(folder, { recursive: true }));
  const socketPath = join(folder, 'socket');
  const head = 'HTTP/1.1 416 Requested Range Not Satisfiable\r\nContent-Length: 10\r\nContent-Range: bytes */10\r\n';
  const server = createTcpServer((socket) => socket.once('data', () => socket.end(`${head}\r\n`))).listen(socketPath);
  opened.push(() => new Promise((resolve) => server.close(resolve)));
  await once(server, 'listening');
  const forward = createForward(socketPath);
  const gate = createServer((request, response) => {
    forward(request, response, { method: 'GET', url: '/v2/' }).catch(() => response.destroy());
  });
  const { port } = (await listening(gate, 0)).address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { range: 'bytes=20-' } });
  expect([response.status, response.headers.get('content-range')]).toEqual([416, 'bytes */10']);
  expect(await response.json()).toMatchObject({ errors: [{ code: 'RANGE_INVALID' }] });
});

it('keeps a connection open until the client has sent its body, so that it can read the response', async () => {
  const admit = async () => {
    throw new Refusal(403, 'DENIED', 'the registry is full');
  };
  expect(await readWhileSending(await openGate([], { admit }))).toMatch(/^HTTP\/1.1 403 [^]*the registry is full/);
  expect(await readWhileSending(await openGate([416], {}))).toMatch(/^HTTP\/1.1 416 /);
});
