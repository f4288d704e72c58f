/** Connections to a PostgreSQL that has a synchronous standby. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/until.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../test/replicated-postgres.ts';
import { requires } from '../../test/requires.ts';
import { connect, type Db, transaction, type Tx } from './db.ts';
import { isUnavailable } from './db-errors.ts';
import { silentLogger } from './log.ts';

const insert = (tx: Tx, note: string) => (tx.$client as pg.Client).query('insert into notes values ($1)', [note]);
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe.skipIf(!requires('postgresql'))('a connection to a replicated PostgreSQL', () => {
  let servers: ReplicatedPostgres;
  let admin: pg.Client;

  beforeAll(async () => {
    servers = await startReplicatedPostgres();
    admin = new pg.Client({ connectionString: servers.primary.url });
    admin.on('error', () => {});
    await admin.connect();
    await admin.query('create table notes (note text)');
  }, 60_000);

  afterAll(async () => {
    await admin.end().catch(() => {});
    await servers.remove();
  });

  const open = (connectionString: string): Db => {
    const db = connect({ connectionString, log: silentLogger });
    onTestFinished(() => db.$client.end());
    return db;
  };

  it('is refused by a standby, whose rows may be old', async () => {
    const error = await failureOf(open(servers.standby.url).$client.query('select'));
    expect(error).toMatchObject({ message: 'the server is a standby' });
    expect(isUnavailable(error)).toBe(true);
  });

  it('does not report a commit whose wait for the standby was cancelled', async () => {
    const db = open(servers.primary.url);
    await db.$client.query('select');
    servers.standby.signal('SIGSTOP');
    onTestFinished(() => servers.standby.signal('SIGCONT'));
    const committed = failureOf(transaction(db, (tx) => insert(tx, 'unknown')));
    const waiting = `select pid from pg_stat_activity where wait_event = 'SyncRep'`;
    await until(async () => (await admin.query(waiting)).rows.length > 0, 30, 'a commit that waits for the standby');
    await admin.query(`select pg_cancel_backend(pid) from (${waiting}) as waiting`);
    const error = await committed;
    expect(error).toMatchObject({ message: 'the wait for the synchronous standby was cancelled', code: '08007' });
    expect(isUnavailable(error)).toBe(true);
    // PostgreSQL has committed it, and reported success.
    const stored = `select from notes where note = 'unknown'`;
    await until(async () => (await admin.query(stored)).rows.length === 1, 30, 'the commit');
  });

  it('leaves a server that becomes read-only', async () => {
    const db = open(servers.primary.url);
    const backend = async () => (await db.$client.query('select pg_backend_pid() as pid')).rows[0].pid as number;
    const before = await backend();
    await db.$client.query('set default_transaction_read_only = on');
    const error = await failureOf(transaction(db, (tx) => insert(tx, 'read-only')));
    expect(isUnavailable(error)).toBe(true);
    await transaction(db, (tx) => insert(tx, 'written'));
    expect(await backend()).not.toBe(before);
  });
});
