import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { connect, type Db } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { removeOldNotifications } from '../resources/notifications/retention.ts';
import { removeEndedSignIns } from '../resources/tokens/store.ts';
import { removeEndedTasks } from '../tasks/retention.ts';

let database: Awaited<ReturnType<typeof cloneDatabase>>;
let db: Db;

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  db = connect({ ...database.connection, log: silentLogger });
  await db.$client.query(
    `insert into clients (name, operator, created_at) values ('one', true, now()), ('two', false, now())`,
  );
});
afterAll(async () => {
  await db.$client.end();
  await database.drop();
});

const count = async (text: string) => (await db.$client.query<{ count: number }>(text)).rows[0]!.count;
const day = (ago: number) => new Date(Date.now() - ago * 86_400_000);

it('tasks that ended before the time are removed, in batches; active ones and later ones stay', async () => {
  const insert = `insert into tasks (id, client_id, user_id, task_type, state, resource, resource_id, generation, created_on,
      updated_on, finished_on)
    select gen_random_uuid(), 1 + n % 2, 1, 'x', $1, 'file_share', n::text, 1, $2, $2, $3 from generate_series(1, $4::int) n`;
  await db.$client.query(insert, ['FINISHED', day(100), day(99), 1200]);
  await db.$client.query(insert, ['ERROR', day(100), day(99), 5]);
  await db.$client.query(insert, ['RUNNING', day(100), null, 7]);
  // It ran for long.
  await db.$client.query(insert, ['FINISHED', day(100), day(1), 3]);
  await db.$client.query(insert, ['FINISHED', day(10), day(10), 11]);
  expect(await removeEndedTasks(db, day(90))).toBe(1205);
  expect(await count('select count(*)::int as count from tasks')).toBe(21);
  expect(await removeEndedTasks(db, day(90))).toBe(0);
});

it('tokens of sign-ins that ended before the time are removed with their sessions; tokens created by hand stay', async () => {
  const insert = `insert into tokens (key_id, secret_hash, client_id, name, identity, role, created_at, expires_at, revoked_at)
    select $1 || n, '', 2, $1, $2, 'member', $3, $4, $5 from generate_series(1, $6::int) n`;
  await db.$client.query(insert, ['expired', 'issuer subject', day(500), day(400), null, 700]);
  await db.$client.query(insert, ['revoked', 'issuer subject', day(500), day(-1), day(400), 3]);
  await db.$client.query(insert, ['recent', 'issuer subject', day(500), day(10), null, 2]);
  await db.$client.query(insert, ['valid', 'issuer subject', day(1), day(-1), null, 1]);
  await db.$client.query(insert, ['by hand', null, day(500), day(400), day(400), 1]);
  await db.$client.query(
    `insert into sessions (key_id, secret_hash, token_id, created_at, last_used_at, expires_at)
     select key_id, '', id, created_at, created_at, now() from tokens`,
  );
  expect(await removeEndedSignIns(db, day(365))).toBe(703);
  const { rows } = await db.$client.query('select name, count(*)::int from tokens group by name order by name');
  expect(rows).toEqual([
    { name: 'by hand', count: 1 },
    { name: 'recent', count: 2 },
    { name: 'valid', count: 1 },
  ]);
  expect(await count('select count(*)::int as count from sessions')).toBe(4);
  expect(await removeEndedSignIns(db, day(365))).toBe(0);
});

it('old notifications are removed with their deliveries, unless one is pending', async () => {
  const add = async (createdAt: Date, state: string) => {
    const id = randomUUID();
    await db.$client.query(
      `insert into notifications (id, client_id, type, subject, body, data, created_at) values ($1, 2, 'x', 'x', '{}', '{}', $2)`,
      [id, createdAt],
    );
    await db.$client.query(
      `insert into notification_deliveries (id, notification_id, channel, target, state, give_up_at)
       values (gen_random_uuid(), $1, 'email', 'a@example.com', $2, now())`,
      [id, state],
    );
  };
  await add(day(100), 'delivered');
  await add(day(100), 'failed');
  await add(day(100), 'pending');
  await add(day(1), 'delivered');
  expect(await removeOldNotifications(db, day(90))).toBe(2);
  expect(await count('select count(*)::int as count from notification_deliveries')).toBe(2);
});
