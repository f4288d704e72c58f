/** `cloudyard api` with responses that are streams of events. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { runClient } from './main.ts';

/** Runs a command against a server that opens a stream, and returns the open response. */
async function runWithStream(...args: string[]) {
  const opened = Promise.withResolvers<ServerResponse>();
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
    opened.resolve(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const written = { out: '', err: '' };
  const code = runClient(args, {
    env: { CLOUDYARD_URL: url, CLOUDYARD_TOKEN: 'x' },
    out: (text) => void (written.out += text),
    err: { write: (text) => (written.err += text) },
    readInput: async () => '',
  });
  return { response: await opened.promise, written, code };
}

it('events are printed as they arrive, also if a chunk ends within a character', async () => {
  const { response, written, code } = await runWithStream('api', 'GET', '/cloudyard/v1/events');
  response.write('data: 1\n\n');
  await expect.poll(() => written.out).toBe('data: 1\n\n');
  const [start, end] = [Buffer.from('data: \u00e9\n\n').subarray(0, 7), Buffer.from('data: \u00e9\n\n').subarray(7)];
  response.write(start);
  await expect.poll(() => written.out).toBe('data: 1\n\ndata: ');
  response.end(end);
  expect(await code).toBe(0);
  expect(written).toEqual({ out: 'data: 1\n\ndata: \u00e9\n\n', err: '' });
});

it('a connection that breaks ends the command with the reason', async () => {
  const { response, written, code } = await runWithStream('api', 'GET', '/cloudyard/v1/events');
  response.write('data: 1\n\n');
  await expect.poll(() => written.out).toBe('data: 1\n\n');
  response.destroy();
  expect(await code).toBe(1);
  expect(written.err).toBe('cloudyard: the connection broke: aborted\n');
});

it('--paginate refuses a stream', async () => {
  const { written, code } = await runWithStream('api', 'GET', '/cloudyard/v1/events', '--paginate');
  expect(await code).toBe(1);
  expect(written).toEqual({
    out: '',
    err: 'cloudyard: the response is a stream of events, which has neither pages nor an end\n',
  });
});
