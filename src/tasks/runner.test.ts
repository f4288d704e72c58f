/** How workers share a queue: jobs of one resource never overlap, whatever happens to the workers or to their connections. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, inject, it, type TestContext } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { systemClock } from '../platform/clock.ts';
import { connect, type ConnectionOptions, type Db } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { type AssignedJob, insertJobs, regionQueue, runDistantJobs } from './jobs.ts';
import { type Runner, startRunner } from './runner.ts';
import type { JobEnd, RunJob } from './running-jobs.ts';
import { createWakeups, type Wakeups } from './wakeups.ts';

const queue = regionQueue(1);
const soon = { timeout: 30_000, interval: 5 };
const done: JobEnd = { done: true };

async function openQueue(t: TestContext) {
  const { connection, drop } = await cloneDatabase(inject('postgres'));
  const db = connect({ ...connection, poolSize: 4, log: silentLogger });
  t.onTestFinished(async () => {
    await db.$client.end();
    await drop();
  });
  const enqueue = (id: string | number, { clientId = 1, priority = 0, on = db as Pick<Db, '$client'> } = {}) =>
    on.$client.query(insertJobs(`values ('thing', $1, '${queue}', $2::int, $3::int, now())`), [
      String(id),
      clientId,
      priority,
    ]);
  const jobs = async () => (await db.$client.query('select * from jobs order by id')).rows;
  return { connection, db, enqueue, jobs, wakeups: createWakeups(db) };
}

let workers = 0;

interface WorkerOptions {
  concurrency?: number;
  slotsPerClient?: number;
  wakeups?: Wakeups;
  pollMs?: number;
}

/** Starts a worker with its own connections. `stop` has running jobs aborted, as a process that ends does. */
function startWorker(t: TestContext, connection: ConnectionOptions, run: RunJob, options: WorkerOptions = {}) {
  const db = connect({ ...connection, poolSize: 2, log: silentLogger });
  const shutdown = new AbortController();
  const workerId = `worker-${++workers}`;
  const runner: Runner = startRunner(
    {
      ...{ db, workerId, queues: [queue], log: silentLogger, clock: systemClock },
      ...{ concurrency: 4, slotsPerClient: 4, pollMs: 50, wakeups: options.wakeups ?? createWakeups(db), ...options },
    },
    run,
    shutdown.signal,
  );
  let stopping: Promise<void> | undefined;
  const stop = () => {
    shutdown.abort(new Error('stopping'));
    return (stopping ??= runner.stop().then(() => db.$client.end()));
  };
  t.onTestFinished(stop);
  return { stop, workerId };
}

/** A job that runs until the test ends it. */
function held() {
  const running: AssignedJob[] = [];
  const gate = Promise.withResolvers<JobEnd>();
  const run: RunJob = (job, signal) => {
    running.push(job);
    const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    return Promise.race([gate.promise, aborted]);
  };
  return { running, run, end: gate.resolve };
}

describe.concurrent('workers of one queue', () => {
  it('never run two jobs of a resource at once, and run each request', async (t) => {
    const { expect } = t;
    const { connection, enqueue, jobs } = await openQueue(t);
    const running = new Set<string>();
    const seen = new Map<string, number>();
    const wanted = new Map<string, number>();
    const overlaps: string[] = [];
    const run: RunJob = async ({ id, attempt }) => {
      if (running.has(id)) overlaps.push(id);
      running.add(id);
      const version = wanted.get(id)!;
      await sleep(Math.random() * 4);
      running.delete(id);
      if (attempt < 3 && Math.random() < 0.1) return { againAfter: 0, attempts: attempt };
      seen.set(id, Math.max(seen.get(id) ?? 0, version));
      return done;
    };
    for (let i = 0; i < 3; i++) startWorker(t, connection, run);
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let i = 0; i < 150; i++) {
          const id = String(Math.floor(Math.random() * 12));
          wanted.set(id, (wanted.get(id) ?? 0) + 1);
          await enqueue(id);
        }
      }),
    );
    await expect.poll(jobs, soon).toEqual([]);
    expect(overlaps).toEqual([]);
    expect(seen).toEqual(wanted);
  }, 60_000);

  it('survive that their connections break, without a job that is lost or runs twice at once', async (t) => {
    const { expect } = t;
    const { connection, db, enqueue, jobs } = await openQueue(t);
    const running = new Set<string>();
    const ran = new Set<string>();
    const overlaps: string[] = [];
    const run: RunJob = async ({ id }) => {
      if (running.has(id)) overlaps.push(id);
      running.add(id);
      await sleep(Math.random() * 10);
      running.delete(id);
      ran.add(id);
      return done;
    };
    const workerIds = [startWorker(t, connection, run), startWorker(t, connection, run)].map((w) => w.workerId);
    for (let i = 0; i < 200; i++) {
      await enqueue(i % 50);
      if (i % 20 === 19) {
        await db.$client.query(
          `select pg_terminate_backend(l.pid) from pg_locks l where locktype = 'advisory'
             and objid = any (select (hashtext(w)::int8 & 4294967295)::oid from unnest($1::text[]) w)`,
          [workerIds],
        );
      }
    }
    await expect.poll(jobs, soon).toEqual([]);
    expect(overlaps).toEqual([]);
    expect(ran.size).toBe(50);
  }, 60_000);

  it('leave a job of a worker that stops to another one, without counting the attempt', async (t) => {
    const { expect } = t;
    const { connection, enqueue, jobs } = await openQueue(t);
    const first = held();
    const worker = startWorker(t, connection, first.run);
    await enqueue('a');
    await expect.poll(() => first.running, soon).toHaveLength(1);
    await worker.stop();
    expect(await jobs()).toMatchObject([{ locked_by: null, attempts: 0 }]);
    const second = held();
    startWorker(t, connection, second.run);
    await expect.poll(() => second.running, soon).toMatchObject([{ id: 'a', attempt: 1 }]);
    second.end(done);
    await expect.poll(jobs, soon).toEqual([]);
  });
});

describe.concurrent('a job', () => {
  it('that is requested while it runs, runs again afterwards', async (t) => {
    const { expect } = t;
    const { connection, enqueue, jobs } = await openQueue(t);
    const { running, run, end } = held();
    startWorker(t, connection, run);
    await enqueue('a');
    await expect.poll(() => running, soon).toHaveLength(1);
    for (let i = 0; i < 5; i++) await enqueue('a');
    expect(running).toHaveLength(1);
    end(done);
    await expect.poll(jobs, soon).toEqual([]);
    expect(running).toHaveLength(2);
  });

  it('that fails is repeated with a growing delay, and keeps its priority', async (t) => {
    const { expect } = t;
    const { connection, db, enqueue, jobs } = await openQueue(t);
    const attempts: number[] = [];
    startWorker(t, connection, async ({ attempt }) => {
      attempts.push(attempt);
      throw new Error('the host is away');
    });
    const seconds = async (statement: string): Promise<number> =>
      (await db.$client.query(`${statement} as seconds`)).rows[0].seconds;
    let dueAt = await seconds('select extract(epoch from now())::float8');
    await enqueue('a', { priority: 7 });
    for (let i = 1; i <= 7; i++) {
      await expect.poll(jobs, soon).toMatchObject([{ attempts: i, locked_by: null, priority: 7 }]);
      // It failed at some time between these.
      const failedBefore = await seconds('select extract(epoch from now())::float8');
      const repeatedAt = await seconds('select (select extract(epoch from run_at) from jobs)::float8');
      const delay = Math.exp(Math.min(i, 5));
      expect([dueAt + delay <= repeatedAt, repeatedAt <= failedBefore + delay]).toEqual([true, true]);
      dueAt = await seconds('update jobs set run_at = now() returning extract(epoch from run_at)::float8');
    }
    expect(attempts.slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('that fails because its host lacks resources is repeated with a growing delay', async (t) => {
    const { expect } = t;
    const { connection, enqueue, jobs } = await openQueue(t);
    startWorker(t, connection, () => Promise.reject(Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' })));
    await enqueue('a');
    await expect.poll(jobs, soon).toMatchObject([{ attempts: 1, locked_by: null }]);
  });

  it('that is distant and whose row another transaction holds is left to the next scan', async (t) => {
    const { expect } = t;
    const { db, enqueue, jobs } = await openQueue(t);
    for (const id of ['a', 'b']) await enqueue(id);
    await db.$client.query(`update jobs set run_at = now() + interval '1 day'`);
    const client = await db.$client.connect();
    await client.query(`begin; select from jobs where id = 'a' for update`);
    await runDistantJobs(db, [queue], 300);
    const isDistant = async () => (await jobs()).map(({ run_at }) => run_at > Date.now() + 60_000);
    expect(await isDistant()).toEqual([true, false]);
    await client.query('commit');
    client.release();
    await runDistantJobs(db, [queue], 300);
    expect(await isDistant()).toEqual([false, false]);
  });

  it('whose row another transaction holds when it ends does not hold up other jobs', async (t) => {
    const { expect } = t;
    const { connection, db, enqueue, jobs } = await openQueue(t);
    const first = held();
    const ran: string[] = [];
    startWorker(t, connection, (job, signal) => {
      ran.push(job.id);
      return job.id === 'a' && ran.length === 1 ? first.run(job, signal) : Promise.resolve(done);
    });
    await enqueue('a');
    await expect.poll(() => first.running, soon).toHaveLength(1);
    const client = await db.$client.connect();
    await client.query('begin');
    await enqueue('a', { on: { $client: client as never } });
    first.end(done);
    await enqueue('b');
    await expect.poll(() => ran, soon).toEqual(['a', 'b']);
    await client.query('commit');
    client.release();
    await expect.poll(() => ran, soon).toEqual(['a', 'b', 'a']);
    await expect.poll(jobs, soon).toEqual([]);
  });

  it('that another worker has taken over is aborted, and its end changes nothing', async (t) => {
    const { expect } = t;
    const { connection, db, enqueue, jobs } = await openQueue(t);
    const { running, run } = held();
    const ended: string[] = [];
    const { workerId } = startWorker(t, connection, (job, signal) =>
      run(job, signal).finally(() => ended.push(job.id)),
    );
    await enqueue('a');
    await expect.poll(() => running, soon).toHaveLength(1);
    await db.$client.query(`update jobs set locked_by = 'another', lease = 99`);
    await db.$client.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
         and objid = (hashtext($1)::int8 & 4294967295)::oid`,
      [workerId],
    );
    await expect.poll(() => ended, soon).toEqual(['a']);
    await enqueue('b');
    await expect.poll(() => running.map(({ id }) => id), soon).toEqual(['a', 'b']);
    expect((await jobs())[0]).toMatchObject({ id: 'a', locked_by: 'another', lease: 99, attempts: 1 });
  });
});

describe.concurrent('an idle worker', () => {
  it('starts a job when its transaction commits, with one statement to fetch and one to end it', async (t) => {
    const { expect } = t;
    const { connection, db, enqueue, jobs, wakeups } = await openQueue(t);
    const ran: string[] = [];
    startWorker(
      t,
      connection,
      async ({ id }) => {
        ran.push(id);
        return done;
      },
      { pollMs: 60_000 },
    );
    const sessions = async () =>
      (
        await db.$client.query(
          `select a.pid, a.query_start from pg_stat_activity a join pg_locks l using (pid)
           where l.locktype = 'advisory' and a.datname = current_database() and a.state = 'idle' and a.query like '%given as%'`,
        )
      ).rows;
    await expect.poll(sessions, soon).toHaveLength(1);
    await db.$client.query('create sequence turns');
    await db.$client.query(
      `create function count_turn() returns trigger language plpgsql as $$ begin perform nextval('turns'); return null; end $$;
       create trigger count_turn after update or delete on jobs for each statement execute function count_turn()`,
    );
    await enqueue('a');
    expect(ran).toEqual([]);
    wakeups.wake(queue);
    await expect.poll(() => ran, soon).toEqual(['a']);
    await expect.poll(jobs, soon).toEqual([]);
    // The trigger runs twice a turn: for its delete and for its updates.
    const { rows } = await db.$client.query('select last_value / 2 as turns from turns');
    expect(rows).toEqual([{ turns: 2 }]);
  });

  it('runs at most the slots of a client, and skips that client until one is free', async (t) => {
    const { expect } = t;
    const { connection, enqueue } = await openQueue(t);
    const { running, run, end } = held();
    startWorker(t, connection, run, { concurrency: 4, slotsPerClient: 3 });
    for (let i = 0; i < 10; i++) await enqueue(`a${i}`, { clientId: 1 });
    await expect.poll(() => running, soon).toHaveLength(3);
    await enqueue('b', { clientId: 2, priority: 100 });
    await expect.poll(() => running, soon).toHaveLength(4);
    expect(running[3]).toMatchObject({ id: 'b' });
    end(done);
    await expect.poll(() => running, soon).toHaveLength(11);
  });
});
