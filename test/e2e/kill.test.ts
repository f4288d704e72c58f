/**
 * `kill -9` of every process in the middle of many requests. Nothing acknowledged is lost and nothing is done twice: every
 * task ends, counters equal rows, and the host has what the rows say.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { nfs, nfsUrl } from '../nfs-client.ts';
import { openYard, until } from '../processes.ts';
import type { Running, Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { allEnded, createMany, expectConsistent, expectHostEqualsRows, shares, storm } from './storm.ts';
import type { Storm } from './storm.ts';

const parts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;
const runsGanesha = requires(...parts);
const timeout = { timeout: 300_000 };

let yard: Yard;
afterEach(() => yard?.cleanUp());

const simulatedYard = async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
  return yard.start(['start']);
};
const killPid = (pid: number | null) => process.kill(pid!, 'SIGKILL');
const finishedTasks = async () =>
  (await yard.sql<{ n: number }>(`select count(*)::int as n from tasks where state = 'FINISHED'`))[0]!.n;

/** Ends the storm and looks at everything that must be true then. */
async function expectAllFinished(creates: Storm, rows: number): Promise<void> {
  const tasks = await allEnded(yard, creates);
  expect(tasks.filter(({ state }) => state !== 'FINISHED')).toEqual([]);
  expect(new Set(tasks.map(({ id }) => id)).size).toBe(tasks.length);
  await expectConsistent(yard, rows);
}

describe('with simulated shares, in the middle of 200 creates', () => {
  it('kills of the server lose nothing, the second one while it starts', timeout, async () => {
    const first = await simulatedYard();
    const creates = await createMany(yard, 200);
    await creates.reached(60);
    await first.kill();
    const second = yard.spawn(['start']);
    await until(() => second.stdout().includes('daemon adopted'), 60, 'the database adopted');
    await second.kill();
    const third = await yard.start(['start']);
    await creates.reached(120);
    await third.kill();
    await yard.start(['start']);
    await expectAllFinished(creates, 200);
  });

  it('a killed worker’s work is taken over within 15 seconds, or waits for the next worker', timeout, async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
    await yard.start(['serve']);
    const worker = await yard.start(['worker', '--region', '1']);
    const creates = await createMany(yard, 200);
    await creates.reached(20);
    const tasks = await freezeAtWork(worker);
    const standby = await startStandby();
    await worker.kill();
    const killed = performance.now();
    await until(async () => (await activeOf(tasks)) === 0, 30, 'the takeover');
    expect(performance.now() - killed).toBeLessThan(15_000);

    await standby.kill();
    // The server goes on to accept without any worker.
    await creates.answers;
    await yard.start(['worker', '--region', '1']);
    await expectAllFinished(creates, 200);
  });

  it('kills of PostgreSQL lose nothing, and no request is answered by 500', timeout, async () => {
    const server = await simulatedYard();
    const creates = await createMany(yard, 200);
    await creates.reached(60);
    const first = yard.pids().postgres;
    killPid(first);
    await until(() => ![null, first].includes(yard.pids().postgres), 30, 'another PostgreSQL');
    killPid(yard.pids().postgres);
    await creates.reached(140);
    killPid(yard.pids().postgres);
    await expectAllFinished(creates, 200);
    expect(server.log().filter(({ msg, status }) => msg === 'request' && status === 500)).toEqual([]);
  });

  /** Stops a worker in the middle of jobs, and returns the tasks that wait for these. */
  async function freezeAtWork(worker: Running): Promise<string[]> {
    let tasks: string[] = [];
    const look = async () => {
      worker.signal('SIGSTOP');
      tasks = (
        await yard.sql<{ id: string }>(
          `select t.id from tasks t join graphile_worker._private_jobs j on j.payload ->> 'id' = t.resource_id
         where j.locked_by is not null and t.state in ('NEW', 'RUNNING')`,
        )
      ).map(({ id }) => id);
      if (tasks.length === 0) worker.signal('SIGCONT');
      return tasks.length > 0;
    };
    await until(look, 30, 'a job in work');
    return tasks;
  }

  async function activeOf(tasks: string[]): Promise<number> {
    const active = `select from tasks where id = any($1::uuid[]) and state in ('NEW', 'RUNNING')`;
    return (await yard.sql(active, [tasks])).length;
  }

  /** A worker with the same database and a data directory of its own. */
  async function startStandby(): Promise<Running> {
    const dataDir = join(yard.folder, 'standby');
    mkdirSync(dataDir);
    return yard.start(['worker', '--region', '1'], { DATABASE_URL: yard.databaseUrl(), CLOUDYARD_DATA_DIR: dataDir });
  }
});

describe('with simulated shares, in the middle of deletes and extends', () => {
  it.each(['server', 'PostgreSQL'])('a kill of the %s loses nothing', timeout, async (victim) => {
    const server = await simulatedYard();
    await expectAllFinished(await createMany(yard, 100), 100);
    const changes = await deletesAndExtends();
    await changes.reached(40);
    if (victim === 'server') {
      await server.kill();
      await yard.start(['start']);
    } else killPid(yard.pids().postgres);
    await expectAllFinished(changes, 50);
    expect(await sizes()).toEqual(Array(50).fill(2));
  });
});

describe.skipIf(!runsGanesha)(skipReason(...parts) ?? 'with real shares', () => {
  it('a kill of Ganesha in the middle of 100 creates loses nothing', timeout, async () => {
    yard = await openYard();
    await yard.start(['start']);
    const creates = await createMany(yard, 100);
    await until(async () => (await finishedTasks()) >= 20, 60, '20 finished');
    killPid(yard.pids().ganesha);
    await expectAllFinished(creates, 100);
    await expectHostEqualsRows(yard);
    await expectSomeToServe();
  });

  it('an absence of the database in the middle of 40 creates loses nothing', timeout, async () => {
    yard = await openYard();
    let postgres = await startEmbeddedPostgres({ dataDir: yard.dataDir, log: silentLogger });
    try {
      const server = await yard.start(['start'], { DATABASE_URL: postgres.url });
      const creates = await createMany(yard, 40);
      await creates.answers;
      await until(async () => (await finishedTasks()) >= 8, 60, '8 finished');
      await postgres.stop();
      const away = performance.now();
      await until(() => performance.now() - away > 3000, 10, 'jobs that end without a database');
      postgres = await startEmbeddedPostgres({ dataDir: yard.dataDir, log: silentLogger });
      await expectAllFinished(creates, 40);
      await expectHostEqualsRows(yard);
      expect((await server.stop()).code).toBe(0);
    } finally {
      await postgres.stop();
    }
  });

  it('a kill of the server in the middle of creates, then of deletes and extends, loses nothing', timeout, async () => {
    yard = await openYard();
    const first = await yard.start(['start']);
    const creates = await createMany(yard, 60);
    await until(async () => (await finishedTasks()) >= 15, 60, '15 finished');
    const { ganesha } = yard.pids();
    await first.kill();
    const second = await yard.start(['start']);
    expect(yard.pids().ganesha).toBe(ganesha);
    await expectAllFinished(creates, 60);
    await expectHostEqualsRows(yard);

    const changes = await deletesAndExtends();
    await until(async () => (await finishedTasks()) >= 75, 60, '15 of them finished');
    await second.kill();
    killPid(yard.pids().ganesha);
    await yard.start(['start']);
    await expectAllFinished(changes, 30);
    await expectHostEqualsRows(yard);
    expect(await sizes()).toEqual(Array(30).fill(2));
    await expectSomeToServe();
  });
});

/** Every second share goes, every other one grows to 2 GiB. */
async function deletesAndExtends(): Promise<Storm> {
  const { results } = (await yard.get(`${shares}?limit=1000`)).body as { results: { id: string }[] };
  return storm(
    results.map(({ id }, i) => () => {
      if (i % 2 === 0) return yard.insist('POST', `${shares}/${id}/extend`, { size: 2 });
      return insistOnDelete(id);
    }),
  );
}

/** A repeated delete has no `Idempotency-Key`: the task that an unheard answer named is the one that locks the share. */
async function insistOnDelete(id: string) {
  const answer = await yard.insist('DELETE', `${shares}/${id}`);
  if (answer.status === 409) return { ...answer, status: 200, body: { tasks: [answer.body.errors[0].message] } };
  if (answer.status !== 404) return answer;
  const tasks = await yard.sql(`select id from tasks where resource_id = $1 and task_type = 'delete_sfs'`, [id]);
  return { ...answer, status: 200, body: { tasks: tasks.map((task) => task['id']) } };
}

async function sizes(): Promise<number[]> {
  return (await yard.sql<{ size: string }>('select size from file_shares')).map(({ size }) => Number(size));
}

async function expectSomeToServe(): Promise<void> {
  const { results } = (await yard.get(`${shares}?limit=1000`)).body;
  const sample = results.filter((_: unknown, i: number) => i % 10 === 0);
  for (const { connection_point } of sample) expect(await nfs('nfs-ls', nfsUrl(yard, connection_point))).toBe('');
}
