/** Grouped transactions: that concurrent ones share commits, and what the refusal of one leaves of the others. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { holdLock } from '../../test/worker.ts';
import { afterCommit, connect, deferred } from './db.ts';
import { installWrites } from './deferred-writes.ts';
import { groupedTransaction, sendGrouped } from './group-commit.ts';
import { silentLogger } from './log.ts';

const cloud = useCloudyard({ driver: null, audit: false });
/** A write of these tests: fails for a text that is longer than three characters. */
const note = deferred('test_note', {
  parameters: 'text',
  body: 'insert into test_notes values ($1);',
});
/** As `note`, but its first call reports a deadlock. */
const noteAgain = deferred('test_note_again', {
  parameters: 'text',
  body: `if nextval('test_note_calls') = 1 then raise exception 'injected' using errcode = '40P01'; end if;
    insert into test_notes values ($1);`,
});
let committed: string[] = [];

beforeAll(async () => {
  await cloud.db.$client.query(
    'create table test_notes (text varchar(3) primary key); create sequence test_note_calls',
  );
  const client = await cloud.db.$client.connect();
  await installWrites(client as never).finally(() => client.release());
});
beforeEach(async () => {
  committed = [];
  await cloud.db.$client.query('truncate test_notes');
});

const write = (text: string) =>
  groupedTransaction(cloud.db, { group: 'test', id: text }, async (tx) => {
    await note(tx, text);
    afterCommit(tx, () => committed.push(text));
  });

const notes = async (): Promise<{ count: number; transactions: number }> => {
  const { rows } = await cloud.db.$client.query(
    `select count(*)::int as count, count(distinct xmin::text)::int as transactions from test_notes`,
  );
  return rows[0];
};

it('concurrent transactions share a few commits, and each is committed once', async () => {
  const texts = Array.from({ length: 40 }, (_, i) => String(i));
  await Promise.all(texts.map(write));
  const { count, transactions } = await notes();
  expect(count).toBe(40);
  expect(committed.toSorted()).toEqual(texts.toSorted());
  expect(transactions).toBeGreaterThan(1);
  expect(transactions).toBeLessThan(10);
});

it('the refusal of one affects no other', async () => {
  const results = await Promise.allSettled(['a', 'b', 'too long', 'c', 'd'].map(write));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(results[2]).toMatchObject({ reason: { code: '22001' } });
  expect((await notes()).count).toBe(4);
  expect(committed.toSorted()).toEqual(['a', 'b', 'c', 'd']);
});

it('after a deadlock each one runs alone', async () => {
  const again = (text: string) =>
    groupedTransaction(cloud.db, { group: 'deadlock', id: text }, (tx) => noteAgain(tx, text));
  await Promise.all(['a', 'b', 'c'].map(again));
  expect((await notes()).count).toBe(3);
});

it('a transaction that sends a statement of its own is refused', async () => {
  const work = groupedTransaction(cloud.db, { group: 'test', id: 'a' }, async (tx) => {
    await tx.$client.query('select 1');
  });
  await expect(work).rejects.toThrow('this transaction only defers writes');
});

it.for([
  ['common rows fail together', {}, 1],
  ['rows of their own run alone', { id: 'a' }, 7],
] as const)('after a lock_timeout, transactions with %s', async ([, id, statements], t) => {
  const { $client } = connect({ ...cloud.connection, log: silentLogger });
  t.onTestFinished(() => $client.end());
  let sent = 0;
  $client.on('acquire', (client) => {
    sent += 1;
    client.query(`set lock_timeout = '100ms'`).catch(() => {});
  });
  const lock = await holdLock(t, cloud, 'lock table test_notes in share mode');
  const send = (text: string) => sendGrouped($client, { group: 'held', ...id }, [note.write(text)]);
  const results = await Promise.allSettled(['a', 'b', 'c', 'd'].map(send));
  for (const result of results) expect(result).toMatchObject({ reason: { code: '55P03' } });
  expect(sent).toBe(statements);
  await lock.release();
});
