import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createForward, type Forwarding } from './forward.ts';
import { refuse, type Refusal } from './refusal.ts';

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

/** The status that a client gets for its request. Distribution answers with `statuses` in turn, then with 404. */
async function statusOf(method: string, statuses: number[], repair: Forwarding['repair']): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-forward-'));
  opened.push(() => rm(folder, { recursive: true }));
  const socket = join(folder, 'socket');
  await listening(
    createServer((request, response) => {
      request.resume();
      response.writeHead(statuses.shift() ?? 404).end();
    }),
    socket,
  );
  const forward = createForward(socket);
  const { signal } = new AbortController();
  const gate = createServer((request, response) => {
    forward(request, response, { method, url: '/v2/', signal, repair: repair! }).catch((error: Refusal) =>
      refuse(request, response, error),
    );
  });
  const { port } = (await listening(gate, 0)).address() as AddressInfo;
  const body = method === 'PUT' ? { body: 'manifest' } : {};
  return (await fetch(`http://127.0.0.1:${port}/v2/`, { method, ...body })).status;
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

it('asks the client to repeat a request with a body', async () => {
  expect(await statusOf('PUT', [500], async () => 'repaired')).toBe(503);
  expect(await statusOf('PUT', [500], async () => 'sound')).toBe(500);
});
