import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../../test/harness.ts';
import { connect, type Db } from '../db.ts';
import { silentLogger } from '../log.ts';
import { findRow } from './store.ts';

let db: Db;
let drop: () => Promise<void>;
beforeAll(async () => {
  const database = await cloneDatabase(inject('postgres'));
  drop = database.drop;
  db = connect({ ...database.connection, log: silentLogger });
});
afterAll(async () => {
  await db?.$client.end();
  await drop?.();
});

it.each([
  ['-1 hour', false],
  ['1 hour', true],
  // Written before the clock of PostgreSQL was set back.
  ['1 year', false],
])('an attempt that may be made in %s is paused: %s', async (after, paused) => {
  await db.$client.query(
    `insert into acme_certificates (id, next_attempt_at) values (1, now() + $1::interval)
     on conflict (id) do update set next_attempt_at = excluded.next_attempt_at`,
    [after],
  );
  expect(await findRow(db)).toMatchObject({ paused });
});
