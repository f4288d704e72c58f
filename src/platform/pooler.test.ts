import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { openDatabase } from '../main/database.ts';
import { readSettings } from '../main/settings.ts';
import { isBusy } from './db-errors.ts';
import { silentLogger } from './log.ts';
import { sharesSessions } from './pooler.ts';
import { checkoutPlaces } from './program-files.ts';
import { withClient } from './with-client.ts';

const message = (type: string, ...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
/** A login is accepted. The number of the backend is one of the pooler's own. */
const accepted = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('K', Buffer.from('7fffffff00000001', 'hex')),
  message('Z', Buffer.from('I')),
]);

/** As PgBouncer: `transaction` gives the sessions of two clients to one backend, `session` one to each; `exhausted` has none. */
async function openPooler(mode: 'transaction' | 'session' | 'exhausted') {
  const { host, port, user, database } = inject('postgres') as Record<string, string>;
  const config = { host: host!, port: Number(port), user: user!, database: database! };
  const openBackend = async () => {
    const client = new pg.Client(config);
    client.on('error', () => {});
    await client.connect();
    onTestFinished(() => client.end());
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    stream.removeAllListeners('data');
    return stream;
  };
  const shared = mode === 'transaction' ? await openBackend() : null;
  const server = createServer((client) => {
    client.on('error', () => {});
    client.once('data', async () => {
      if (mode === 'exhausted') return client.write(accepted);
      const backend = shared ?? (await openBackend());
      // A query and its answer, each in one piece.
      client.on('data', (query) => {
        if (query[0] !== 'Q'.charCodeAt(0)) return;
        backend.once('data', (answer) => client.write(answer));
        backend.write(query);
      });
      client.write(accepted);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { ...config, host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

const isShared = (config: pg.ClientConfig) => withClient(config, (client) => sharesSessions(client, config));

it('a pooler that shares sessions is found', async () => {
  expect(await isShared(await openPooler('transaction'))).toBe(true);
});

it('a pooler in session mode is accepted', async () => {
  expect(await isShared(await openPooler('session'))).toBe(false);
});

it('a direct connection is accepted', async () => {
  expect(await isShared(inject('postgres'))).toBe(false);
});

it('a start behind a pooler that shares sessions fails, and names the remedy', async () => {
  const { user, port, database } = await openPooler('transaction');
  const url = `postgres://${user}:pa55word@127.0.0.1:${port}/${database}`;
  const settings = readSettings({ DATABASE_URL: url }, checkoutPlaces('/checkout'), false);
  await expect(openDatabase(settings, silentLogger)).rejects.toThrow(
    /^the database postgres:\/\/\w+:…@127\.0\.0\.1:\d+\/\w+ is behind a pooler that shares its sessions .*; set pool_mode = session/,
  );
});

it('a start behind a pooler without a free session names the cause, and does not wait for the pooler', async () => {
  const { user, port, database } = await openPooler('exhausted');
  const url = `postgres://${user}@127.0.0.1:${port}/${database}`;
  const settings = readSettings({ DATABASE_URL: url }, checkoutPlaces('/checkout'), false);
  const error = await openDatabase(settings, silentLogger).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    message: expect.stringMatching(/ cannot be reached: it accepts connections .* \(PgBouncer: default_pool_size\)$/),
  });
  // Repeated by a server, as if PostgreSQL itself had no free connection.
  expect(isBusy(error)).toBe(true);
}, 20_000);
