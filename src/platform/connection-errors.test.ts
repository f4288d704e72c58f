/** Servers of which a client refuses the TLS, or that refuse it. */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connect } from './db.ts';
import { isBusy, isUnavailable } from './db-errors.ts';
import { silentLogger } from './log.ts';
import { requires } from '../../test/requires.ts';
import { testCertificate } from './tls/test-certificates.ts';

/** Calls `answer` when a client has asked for TLS. Returns the URL of the server. */
async function listen(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `postgres://cloudyard@127.0.0.1:${(server.address() as AddressInfo).port}/cloudyard?sslmode=verify-full`;
}

it.each<[string, RegExp, (socket: Socket) => void]>([
  ['does not offer TLS', /does not support SSL/, (socket) => socket.write('N')],
  ['cannot start a process', /establishing an SSL connection/, (socket) => socket.write('E')],
  [
    'does not speak TLS',
    /wrong version number/,
    (socket) => {
      socket.once('data', () => socket.write('not TLS at all'));
      socket.write('S');
    },
  ],
])('a connection to a server that %s fails, and may succeed later', async (_what, message, answer) => {
  await expectTemporaryFailure(answer, message);
});

describe.skipIf(!requires('openssl'))('a connection to a server', () => {
  it('whose certificate is not trusted fails, and may succeed later', async () => {
    const { certificate, key } = testCertificate();
    await expectTemporaryFailure((socket) => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, cert: certificate, key }).on('error', () => {});
    }, /self-signed certificate/);
  });
});

async function expectTemporaryFailure(answer: (socket: Socket) => void, message: RegExp): Promise<void> {
  const db = connect({ connectionString: await listen(answer), log: silentLogger });
  onTestFinished(() => db.$client.end());
  const error = await db.$client.query('select').catch((thrown: Error) => thrown);
  expect(String(error)).toMatch(message);
  const wrapped = new Error('Failed query', { cause: error });
  expect([isUnavailable(wrapped), isBusy(wrapped)]).toEqual([true, false]);
}
