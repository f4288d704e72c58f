/** A connection that no longer reaches its server, and nobody has closed: packets of the two sides are dropped. */
import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { expect, inject, it, onTestFinished } from 'vitest';
import { isUnavailable } from './db-errors.ts';
import { closeLostConnections } from './lost-servers.ts';
import { createPrimaryClient } from './primary-client.ts';

/**
 * Forwards connections to the PostgreSQL of the test run.
 * - `cut`: the server sees the end of its connections, the client does not.
 * - `replace`: nothing is forwarded, and new connections are to a server that was started at another time.
 * - `overload`: new connections are accepted, and nothing responds.
 */
async function openNetwork() {
  const { host, port } = inject('postgres') as { host: string; port: number };
  const servers = new Set<Socket>();
  let isOverloaded = false;
  let rewrite = (data: Buffer) => data;
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    onTestFinished(() => void client.destroy());
    client.on('error', () => {});
    if (isOverloaded) return;
    const server = host.startsWith('/') ? connectTo(`${host}/.s.PGSQL.${port}`) : connectTo(port, host);
    servers.add(server);
    server.on('error', () => {});
    client.on('data', (data) => servers.has(server) && server.write(data));
    server.on('data', (data) => servers.has(server) && client.write(rewrite(data)));
    client.on('close', () => server.destroy());
    server.on('close', () => servers.delete(server) && client.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => void listener.close());
  const cut = () => {
    const cutOff = [...servers];
    servers.clear();
    for (const server of cutOff) server.destroy();
  };
  const replace = (startedAt: string) => {
    servers.clear();
    const other = startedAt.replace(/^..../, '1999');
    rewrite = (data) => Buffer.from(data.toString('latin1').replace(startedAt, other), 'latin1');
  };
  const overload = () => void (isOverloaded = true);
  return { port: (listener.address() as AddressInfo).port, cut, replace, overload };
}

async function openPool() {
  const { port, ...network } = await openNetwork();
  const { user, database } = inject('postgres');
  const config = { host: '127.0.0.1', port, user: user!, database: database!, pipeline: true };
  const pool = new pg.Pool({ ...config, Client: createPrimaryClient } as unknown as pg.PoolConfig);
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  onTestFinished(() => pool.end());
  closeLostConnections(pool, config, { checkMs: 20, unansweredMs: 200, probeMs: 200 });
  return { pool, ...network };
}

it('fails the statement of a lost connection, and serves the next one', async () => {
  const { pool, cut } = await openPool();
  await pool.query('select');
  cut();
  const error = await pool.query('select').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: 'the server of this connection is gone' });
  expect(isUnavailable(error)).toBe(true);
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
});

it('waits for a slow statement', async () => {
  const { pool } = await openPool();
  expect((await pool.query('select 1 as one from pg_sleep(1)')).rows).toEqual([{ one: 1 }]);
});

it('waits for a slow statement although the server is too busy for new connections', async () => {
  const { pool, overload } = await openPool();
  await pool.query('select');
  const slow = pool.query('select 1 as one from pg_sleep(2)');
  overload();
  expect((await slow).rows).toEqual([{ one: 1 }]);
});

it('fails the statement of a lost connection although the next server has a backend of the same number', async () => {
  const { pool, replace } = await openPool();
  const { rows } = await pool.query<{ text: string }>('select pg_postmaster_start_time()::text as text');
  replace(rows[0]!.text);
  const error = await pool.query('select').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: 'the server of this connection is gone' });
});
