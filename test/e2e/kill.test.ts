/**
 * `kill -9` of every process during many requests. No acknowledged request is lost or executed twice: every task ends,
 * counters match the rows, and the host matches the rows.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { nfs, nfsUrl } from '../nfs-client.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { allEnded, createMany, expectConsistent, expectHostEqualsRows, shares, storm, type Storm } from './storm.ts';

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

/** Waits for the end of all tasks and checks the invariants. */
async function expectAllFinished(creates: Storm, rows: number): Promise<void> {
  const tasks = await allEnded(yard, creates);
  expect(tasks.filter(({ state }) => state !== 'FINISHED')).toEqual([]);
  expect(new Set(tasks.map(({ id }) => id)).size).toBe(tasks.length);
  await expectConsistent(yard, rows);
}

describe('with simulated shares, during 200 creates', () => {
  it('killing the server, also during its start, loses nothing', timeout, async () => {
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

  it('another worker runs the jobs of a killed worker within 15 seconds, or the next one does', timeout, async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
    await yard.start(['serve']);
    const worker = await yard.start(['worker', '--region', '1']);
    const creates = await createMany(yard, 200);
    await creates.reached(20);
    const tasks = await freezeAtWork(worker);
    const standby = await startStandby();
    await worker.kill();
    const killed = performance.now();
    await until(async () => (await activeOf(tasks)) === 0, 30, 'the standby to finish these tasks');
    expect(performance.now() - killed).toBeLessThan(15_000);

    await standby.kill();
    // The server accepts requests without a worker.
    await creates.answers;
    await yard.start(['worker', '--region', '1']);
    await expectAllFinished(creates, 200);
  });

  it('killing PostgreSQL loses nothing, and no request returns 500', timeout, async () => {
    const server = await simulatedYard();
    const creates = await createMany(yard, 200);
    await creates.reached(60);
    const first = yard.pids().postgres;
    killPid(first);
    await until(() => ![null, first].includes(yard.pids().postgres), 30, 'a new PostgreSQL');
    killPid(yard.pids().postgres);
    await creates.reached(140);
    killPid(yard.pids().postgres);
    await expectAllFinished(creates, 200);
    expect(server.log().filter(({ msg, status }) => msg === 'request' && status === 500)).toEqual([]);
  });

  /** Stops a worker during jobs. Returns the tasks that wait for these jobs. */
  async function freezeAtWork(worker: Running): Promise<string[]> {
    let tasks: string[] = [];
    const tryToFreeze = async () => {
      worker.signal('SIGSTOP');
      tasks = (
        await yard.sql<{ id: string }>(
          `select t.id from tasks t join jobs j on j.id = t.resource_id
         where j.locked_by is not null and t.state in ('NEW', 'RUNNING')`,
        )
      ).map(({ id }) => id);
      if (tasks.length === 0) worker.signal('SIGCONT');
      return tasks.length > 0;
    };
    await until(tryToFreeze, 30, 'a running job');
    return tasks;
  }

  async function activeOf(tasks: string[]): Promise<number> {
    const active = `select from tasks where id = any($1::uuid[]) and state in ('NEW', 'RUNNING')`;
    return (await yard.sql(active, [tasks])).length;
  }

  /** A worker with the same database and another data directory. */
  async function startStandby(): Promise<Running> {
    const dataDir = join(yard.folder, 'standby');
    mkdirSync(dataDir);
    return yard.start(['worker', '--region', '1'], { DATABASE_URL: yard.databaseUrl(), CLOUDYARD_DATA_DIR: dataDir });
  }
});

describe('with simulated shares, during deletes and extends', () => {
  it.each(['server', 'PostgreSQL'])('killing the %s loses nothing', timeout, async (victim) => {
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
  it('killing Ganesha during 100 creates loses nothing', timeout, async () => {
    yard = await openYard();
    await yard.start(['start']);
    const creates = await createMany(yard, 100);
    await until(async () => (await finishedTasks()) >= 20, 60, '20 finished');
    killPid(yard.pids().ganesha);
    await expectAllFinished(creates, 100);
    await expectHostEqualsRows(yard);
    await expectSomeToServe();
  });

  it('a database outage during 40 creates loses nothing', timeout, async () => {
    yard = await openYard();
    let postgres = await startEmbeddedPostgres({ dataDir: yard.dataDir, log: silentLogger });
    try {
      const server = await yard.start(['start'], { DATABASE_URL: postgres.url });
      const creates = await createMany(yard, 40);
      await creates.answers;
      await until(async () => (await finishedTasks()) >= 8, 60, '8 finished');
      await postgres.stop();
      const noticed = () => server.log().filter(({ msg }) => msg === 'periodic duty of the worker failed').length;
      await until(() => noticed() >= 2, 60, 'two failed duties, while jobs end without a database');
      postgres = await startEmbeddedPostgres({ dataDir: yard.dataDir, log: silentLogger });
      await expectAllFinished(creates, 40);
      await expectHostEqualsRows(yard);
      expect((await server.stop()).code).toBe(0);
    } finally {
      await postgres.stop();
    }
  });

  it('killing the server during creates, then during deletes and extends, loses nothing', timeout, async () => {
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

/** Deletes every second share and extends the others to 2 GiB. */
async function deletesAndExtends(): Promise<Storm> {
  const { results } = (await yard.get(`${shares}?limit=1000`)).body as { results: { id: string }[] };
  return storm(
    results.map(({ id }, i) => () => {
      if (i % 2 === 0) return yard.insist('POST', `${shares}/${id}/extend`, { size: 2 });
      return insistOnDelete(id);
    }),
  );
}

/** A repeated delete has no `Idempotency-Key`: the task of the lost response is the task that locks the share. */
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
