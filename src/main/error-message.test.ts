import { type AddressInfo, createServer } from 'node:net';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { expect, it } from 'vitest';
import { connect } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { withClient } from '../platform/with-client.ts';
import { messageOf } from './error-message.ts';

it('names the database, and of a failed query the cause, and neither the statement nor its parameters', () => {
  const cause = new Error('Connection terminated unexpectedly');
  expect(messageOf(new DrizzleQueryError('rollback', ['secret'], cause))).toBe(
    'the database failed: Connection terminated unexpectedly',
  );
  const reached = 'the database cannot be reached: timeout expired';
  expect([messageOf(new Error('timeout expired')), messageOf(new Error(reached))]).toEqual([reached, reached]);
  expect(messageOf(new Error('the key file cannot be read'))).toBe('the key file cannot be read');
});

it('names the database when its connection breaks', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const options = { host: '127.0.0.1', port: (server.address() as AddressInfo).port, user: 'me', database: 'none' };
  const db = connect({ ...options, log: silentLogger });
  const errors = [
    await db.$client.query('select 1').catch((error: Error) => error),
    await withClient(options, (client) => client.query('select 1')).catch((error: Error) => error),
  ];
  expect(errors.map((error) => messageOf(error as Error))).toEqual(
    errors.map(() => 'the database cannot be reached: read ECONNRESET'),
  );
  await db.$client.end();
  await new Promise((resolve) => server.close(resolve));
});
