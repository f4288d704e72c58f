/** Time limits of PostgreSQL that an operator sets too short for a statement. */
import { describe, it, type TestContext } from 'vitest';
import { drift } from '../../test/crash-harness.ts';
import type { Cloudyard } from '../../test/harness.ts';
import {
  addWorker,
  available,
  create,
  holdLock,
  idOf,
  share,
  shares,
  soon,
  startCloudyard,
  stateOf,
  taskOf,
  truth,
  waiting,
} from '../../test/worker.ts';

/** Sets it for connections that are opened from now on. */
const limit = ({ db }: Cloudyard, setting: string, value: string) =>
  db.$client.query(
    `do $$ begin execute format('alter database %I set ${setting} = ''${value}''', current_database()); end $$`,
  );

/** From now on the statement that records a share as available takes longer than any limit. */
const makeSlow = ({ db }: Cloudyard) =>
  db.$client.query(`
    create function take_long() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
    create trigger take_long before update on file_shares for each row when (new.status = 'available')
      execute function take_long();`);

/** A share whose result is never recorded, and a worker that tries. */
async function startTrying(t: TestContext) {
  const { cloud, host } = await startCloudyard(t, { worker: false });
  await makeSlow(cloud);
  await limit(cloud, 'statement_timeout', '1s');
  await addWorker(t, cloud, host);
  return { cloud, host, answer: await create(cloud) };
}

describe.concurrent('a statement that always exceeds its statement_timeout', () => {
  it('is retried with backoff, and shown on the task with the setting', async (t) => {
    const { expect } = t;
    const { cloud, answer } = await startTrying(t);
    const data = async () => (await taskOf(cloud, answer)).data;
    await expect
      .poll(data, soon)
      .toMatchObject({ attempt: 1, last_error: expect.stringContaining('exceeded its statement_timeout') });
    const { rows } = await cloud.db.$client.query(
      `select attempts, run_at > now() + interval '1 second' as "isLater" from jobs where kind = 'file_share'`,
    );
    expect(rows).toEqual([{ attempts: 1, isLater: true }]);
  }, 60_000);

  it('ends its task with an error that names the setting, after the attempts of an hour', async (t) => {
    const { expect } = t;
    const { cloud, answer } = await startTrying(t);
    await expect.poll(async () => (await taskOf(cloud, answer)).data?.attempt, soon).toBe(1);
    const skip = () =>
      cloud.db.$client.query(
        `update jobs set attempts = 28, run_at = now() where kind = 'file_share' and attempts = 1`,
      );
    await expect.poll(async () => (await skip()).rowCount, soon).toBe(1);
    await expect.poll(stateOf(cloud, answer), soon).toBe('ERROR');
    expect((await taskOf(cloud, answer)).error).toContain('statement_timeout');
    expect(await share(cloud, await idOf(cloud, answer))).toMatchObject({ status: 'error' });
    expect(await drift(cloud.db, truth)).toEqual([]);
  }, 60_000);
});

describe('a lock_timeout of the operator', () => {
  it('gives 503 while the lock is held, and changes nothing', async (t) => {
    const { expect } = t;
    const { cloud } = await startCloudyard(t);
    const id = await available(t, cloud);
    const blocker = await holdLock(t, cloud, `select from file_shares where id = '${id}' for update`);
    const limited = `set lock_timeout = '200ms'`;
    cloud.db.$client.on('acquire', (client) => void client.query(limited).catch(() => {}));
    const answer = await cloud.post(`${shares}/${id}/extend`, { size: 3 });
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    expect(answer.body.message).toContain('lock_timeout');
    await blocker.release();
    expect(await share(cloud, id)).toMatchObject({ size: 2, status: 'available' });
    expect(await waiting(cloud, '')()).toBe(0);
  }, 60_000);

  it('is shown on a task that another session blocks', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const answer = await create(cloud);
    const blocker = await holdLock(
      t,
      cloud,
      `select from file_shares where id = '${await idOf(cloud, answer)}' for update`,
    );
    await limit(cloud, 'lock_timeout', '200ms');
    await addWorker(t, cloud, host);
    const error = async () => (await taskOf(cloud, answer)).data?.last_error;
    await expect.poll(error, soon).toBe('another session of the database locks what the task needs (lock_timeout)');
    await blocker.release();
    await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
  }, 60_000);
});
