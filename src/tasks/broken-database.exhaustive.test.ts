/** The engine of tasks when the database breaks. */
import { describe, it } from 'vitest';
import { drift, openGate } from '../../test/crash-harness.ts';
import type { Answer, Cloudyard } from '../../test/harness.ts';
import {
  addWorker,
  afterDeath,
  available,
  breakConnections,
  create,
  holdLock,
  networkOf,
  shares,
  soon,
  startBehindGate,
  startCloudyard,
  stateOf,
  taskOf,
  truth,
  valid,
  waiting,
} from '../../test/worker.ts';
import { workerLocks } from './jobs.ts';

/** The processes of PostgreSQL that hold the lock of a worker. */
const sessions = (cloud: Cloudyard) => async () => {
  const { rows } = await cloud.db.$client.query<{ pid: number }>(
    `select l.pid from pg_locks l join pg_database d on d.oid = l.database
     where locktype = 'advisory' and granted and classid = $1 and datname = current_database()`,
    [workerLocks],
  );
  return rows.map(({ pid }) => pid);
};

describe.concurrent('a database that breaks', () => {
  it('repeatedly, connection by connection, loses no acknowledged work', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
    const kill = () =>
      cloud.db.$client
        .query(
          `select count(pg_terminate_backend(pid)) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()`,
        )
        .catch(() => {});
    const accepted: Answer[] = [];
    const body = { ...valid, network: { network_id: await networkOf(cloud) } };
    const insist = async (key: number): Promise<void> => {
      for (;;) {
        const answer = await cloud.post(shares, body, { headers: { 'idempotency-key': `share ${key}` } });
        if (answer.status === 200) return void accepted.push(answer);
        expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
      }
    };
    const clients = Promise.all(Array.from({ length: 40 }, (_, key) => insist(key)));
    for (let i = 0; i < 8; i++) {
      const before = accepted.length;
      await kill();
      await expect.poll(() => accepted.length >= Math.min(before + 4, 40), soon).toBe(true);
    }
    await clients;
    await kill();
    for (const answer of accepted)
      await expect.poll(stateOf(cloud, answer), { ...afterDeath, timeout: 40_000 }).toBe('FINISHED');
    expect((await cloud.get(shares)).body.count).toBe(40);
    expect(host.shares.size).toBe(40);
    expect(await drift(cloud.db, truth)).toEqual([]);
    await available(t, cloud);
    expect(host.overlap).toBe(1);
  }, 90_000);

  it('when a job ends leaves no lock behind', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    await addWorker(t, cloud, host);
    const id = await available(t, cloud);
    const release = host.hold();
    const answer = await cloud.post(`${shares}/${id}/extend`, { size: 3 });
    await expect.poll(() => host.held.length, soon).toBe(1);
    // The statement that ends the job waits for this lock, and is terminated there.
    const blocker = await holdLock(t, cloud, 'lock table jobs in share row exclusive mode');
    release();
    await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
    await expect.poll(waiting(cloud, 'removed as'), soon).toBe(1);
    const killed = async () =>
      (
        await cloud.db.$client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%jobs%'`,
        )
      ).rowCount;
    await expect.poll(killed, soon).toBe(1);
    await blocker.release();
    const next = await cloud.post(`${shares}/${id}/extend`, { size: 4 });
    await expect.poll(stateOf(cloud, next), afterDeath).toBe('FINISHED');
  }, 60_000);

  it('when a job is fetched does not leave the job without a runner', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const answer = await create(cloud);
    // The statement that fetches the job waits for this lock; its response is lost.
    const lock = 'lock table jobs in share row exclusive mode';
    const blocker = await holdLock(t, cloud, lock);
    const gate = await openGate(cloud.connection);
    await addWorker(t, cloud, host, gate.connection);
    await expect.poll(waiting(cloud, 'from jobs'), soon).toBeGreaterThan(0);
    gate.deafen();
    await blocker.release();
    const holders = async () => (await cloud.db.$client.query('select from jobs where locked_by is not null')).rowCount;
    await expect.poll(holders, soon).toBe(1);
    await breakConnections(gate);
    await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
  }, 60_000);

  it('does not release the job of a live worker that still runs it', async (t) => {
    const { expect } = t;
    const { cloud, host, gate } = await startBehindGate(t);
    const release = host.hold();
    const held = await create(cloud);
    await expect.poll(() => host.held.length, soon).toBe(1);
    await breakConnections(gate);
    // Both workers scan for dead workers at every heartbeat; after nine seconds they would have released the job.
    await addWorker(t, cloud, host);
    const heartbeats = async () =>
      (await cloud.db.$client.query(`select from workers where seen_at > started_at + interval '9 seconds'`)).rowCount;
    await expect.poll(heartbeats, { timeout: 25_000, interval: 100 }).toBe(2);
    expect(host.held).toHaveLength(1);
    expect(host.overlap).toBe(1);
    release();
    await expect.poll(stateOf(cloud, held), afterDeath).toBe('FINISHED');
    expect(host.overlap).toBe(1);
  }, 60_000);

  it('for a while is used by one session afterwards, not by one for each attempt', async (t) => {
    const { expect } = t;
    const { cloud, gate } = await startBehindGate(t);
    await expect.poll(sessions(cloud), soon).toEqual([expect.any(Number)]);
    for (let i = 0; i < 3; i++) {
      await gate.rejectAttempts(6);
      await expect.poll(sessions(cloud), soon).toEqual([expect.any(Number)]);
    }
    await available(t, cloud);
    expect(await sessions(cloud)()).toHaveLength(1);
  }, 60_000);

  it('does not make new jobs wait for a job that hangs', async (t) => {
    const { expect } = t;
    const { cloud, host, gate } = await startBehindGate(t);
    const release = host.hold();
    t.onTestFinished(release);
    const hung = await create(cloud);
    await expect.poll(() => host.held.length, soon).toBe(1);
    host.admit();
    await breakConnections(gate);
    const next = await create(cloud);
    await expect.poll(stateOf(cloud, next), afterDeath).toBe('FINISHED');
    expect(await taskOf(cloud, hung)).toMatchObject({ state: 'RUNNING' });
  }, 60_000);

  it('repeatedly while jobs hang leaves connections for later jobs', async (t) => {
    const { expect } = t;
    const { cloud, host, gate } = await startBehindGate(t);
    const release = host.hold();
    t.onTestFinished(release);
    const hung = [await create(cloud), await create(cloud)];
    await expect.poll(() => host.held.length, soon).toBe(2);
    // More than the worker's pool has connections.
    for (let i = 1; i <= 10; i++) {
      const before = await sessions(cloud)();
      await breakConnections(gate);
      await expect
        .poll(async () => (await sessions(cloud)()).filter((pid) => !before.includes(pid)), soon)
        .toHaveLength(1);
    }
    hung.push(await create(cloud));
    expect(host.held).toHaveLength(2);
    release();
    for (const answer of hung) await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
    expect(host.overlap).toBe(1);
  }, 120_000);
});
