/** A server that stops while clients send requests: every request that it read is answered, and no client sees a reset. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';

vi.setConfig({ testTimeout: 120_000 });

let yard: Yard | undefined;
afterEach(() => {
  yard?.cleanUp();
  yard = undefined;
});

const clients = 16;
/** Responses that each client receives before the server stops. */
const answersBefore = 50;

/** What happened on the connections of one client. */
interface Outcome {
  answers: number;
  statuses: Set<string>;
  /** Whether the last response announced the end of its connection. */
  announced: boolean;
  /** Errors, and connections that ended without the response to a request. */
  losses: string[];
}

/** Sends requests one after another, until the server accepts no connection. */
async function sendUntilRefused(port: number, request: string, outcome: Outcome): Promise<void> {
  while (await useConnection(port, request, outcome));
}

/** Returns false when the server accepts no connection. */
async function useConnection(port: number, request: string, outcome: Outcome): Promise<boolean> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  const failed = once(socket, 'connect').then(
    () => null,
    (error: NodeJS.ErrnoException) => error.code,
  );
  const code = await failed;
  if (code === 'ECONNREFUSED') return false;
  let received = '';
  let isPending = true;
  socket.on('error', (error: NodeJS.ErrnoException) => outcome.losses.push(String(error.code)));
  socket.on('data', (chunk) => {
    received += chunk;
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received);
    const end = received.indexOf('\r\n\r\n');
    if (end < 0 || received.length < end + 4 + Number(length?.[1] ?? 0)) return;
    outcome.answers += 1;
    outcome.statuses.add(received.slice(9, 12));
    outcome.announced = /\r\nconnection: close\r\n/i.test(received);
    received = '';
    isPending = false;
    if (outcome.announced) return;
    isPending = true;
    socket.write(request);
  });
  socket.write(request);
  await once(socket, 'close');
  if (isPending) outcome.losses.push('no response');
  return true;
}

function requestOf(port: number, method: string, path: string, body?: unknown): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const fields = [
    `${method} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: apikey ${bootstrapToken}`,
    ...(text ? ['content-type: application/json', `content-length: ${Buffer.byteLength(text)}`] : []),
  ];
  return `${fields.join('\r\n')}\r\n\r\n${text}`;
}

describe('a server that stops under load loses no request', () => {
  it.each([
    ['serve', '1'],
    ['start', '1'],
    ['start', '2'],
  ])('%s with %s process(es)', async (command, processes) => {
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_PROCESSES: processes,
    });
    const server = await yard.start([command]);
    const { port } = yard;
    const create = requestOf(port, 'POST', '/cloud/v1/projects', { name: 'under load' });
    const read = requestOf(port, 'GET', '/cloud/v1/projects');
    const idle = connect(port, '127.0.0.1');
    const idleEnded = once(idle.resume(), 'close');
    const outcomes = Array.from(
      { length: clients },
      (): Outcome => ({ answers: 0, statuses: new Set(), announced: false, losses: [] }),
    );
    const running = outcomes.map((outcome, i) => sendUntilRefused(port, i % 4 === 0 ? create : read, outcome));
    await until(() => outcomes.every(({ answers }) => answers >= answersBefore), 60, 'load from every client');
    server.signal('SIGTERM');
    await Promise.all(running);
    expect(outcomes.flatMap(({ losses }) => losses)).toEqual([]);
    expect(outcomes.filter(({ announced }) => announced)).toHaveLength(clients);
    expect(new Set(outcomes.flatMap(({ statuses }) => [...statuses]))).not.toContain('503');
    await idleEnded;
    await until(() => server.stdout() !== '', 1, 'output');
    expect((await server.ended).code).toBe(0);
  });
});
