/** The engine with everything around it breaking: workers, jobs, hosts, and the way to PostgreSQL. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, inject, it } from 'vitest';
import type { TestContext } from 'vitest';
import { drift, openGate, retryNow } from '../../test/crash-harness.ts';
import { createTestHost, passing, terminal } from '../../test/drivers.ts';
import type { TestHost } from '../../test/drivers.ts';
import { openCloudyard } from '../../test/harness.ts';
import type { Answer, Cloudyard } from '../../test/harness.ts';
import { openYard } from '../../test/processes.ts';
import { createFileShareReconciler } from '../resources/file-shares/reconcile.ts';
import { connect } from '../platform/db.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { silentLogger } from '../platform/log.ts';
import { startWorker } from './worker.ts';

const shares = '/cloud/v1/file_shares/1/1';
const truth = {
  sfs_count: 'select client_id, region_id, count(*) as amount from file_shares group by 1, 2',
  sfs_size: 'select client_id, region_id, sum(size) as amount from file_shares group by 1, 2',
};
/** What noticing that a worker died may take, and a little for the work itself. */
const takeover = { timeout: 17_000, interval: 100 };
const soon = { timeout: 30_000, interval: 20 };

/** A Cloudyard of this test alone; `worker: false`: nobody works on its tasks. */
async function aCloudyard(t: TestContext, { host = createTestHost(), worker = true } = {}) {
  const { cloudyard, stop } = await openCloudyard(inject('postgres'), { driver: worker ? host : null });
  t.onTestFinished(stop);
  return { cloud: cloudyard, host };
}

/** A worker with database connections of its own, as a process that is only a worker has. */
async function aWorker(t: TestContext, cloud: Cloudyard, host: TestHost, connection = cloud.connection) {
  const db = connect({ ...connection, poolSize: 8, log: silentLogger });
  const { services } = cloud;
  const worker = await startWorker({
    db,
    log: silentLogger,
    tasks: services.tasks,
    regionIds: [1],
    concurrency: 2,
    sweepSeconds: 1,
    reconcilers: [createFileShareReconciler({ ...services, db, driver: host })],
    driverStatus: () => [host.status()],
    onDriverError: () => {},
  });
  t.onTestFinished(async () => {
    await worker.stop();
    await db.$client.end();
  });
}

/** Somebody who holds a lock in the database until `release`, or the end of the test. */
async function aBlocker(t: TestContext, cloud: Cloudyard, lock: string): Promise<{ release(): Promise<void> }> {
  const client = await cloud.db.$client.connect();
  let holds = true;
  const release = async () => {
    if (!holds) return;
    holds = false;
    await client.query('rollback');
    client.release();
  };
  t.onTestFinished(release);
  await client.query('begin');
  await client.query(lock);
  return { release };
}

/** How many statements wait for a lock that are about this. */
const waiting = (cloud: Cloudyard, about: string) => async () => {
  const sql = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  return (await cloud.db.$client.query(`${sql} and strpos(query, $1) > 0`, [about])).rowCount!;
};

const networkOf = async (cloud: Cloudyard) => (await cloud.get('/cloud/v1/networks/1/1')).body.results[0].id as string;
const valid = { name: 'a share', protocol: 'NFS', size: 2 };

async function create(cloud: Cloudyard, changes: object = {}): Promise<Answer> {
  return cloud.post(shares, { ...valid, network: { network_id: await networkOf(cloud) }, ...changes });
}

const taskOf = async (cloud: Cloudyard, answer: Answer) =>
  (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body;
const idOf = async (cloud: Cloudyard, answer: Answer) =>
  (await taskOf(cloud, answer)).created_resources.file_shares[0] as string;
const share = async (cloud: Cloudyard, id: string) => (await cloud.get(`${shares}/${id}`)).body;
const stateOf = (cloud: Cloudyard, answer: Answer) => async () => (await taskOf(cloud, answer)).state as string;
const usage = async (cloud: Cloudyard) => {
  const { body } = await cloud.get('/cloud/v2/regional_quotas/1/1');
  return [body.sfs_count_usage, body.sfs_size_usage];
};

/** A share that works. */
async function available({ expect }: TestContext, cloud: Cloudyard, changes: object = {}): Promise<string> {
  const answer = await create(cloud, changes);
  expect(await cloud.ended(answer)).toMatchObject({ body: { state: 'FINISHED' } });
  return idOf(cloud, answer);
}

describe.concurrent('a worker that dies', () => {
  it('loses its jobs and queues to another one, which finishes them', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const answer = await create(cloud);
    for (const table of ['_private_jobs', '_private_job_queues']) {
      await cloud.db.$client.query(`update graphile_worker.${table} set locked_by = 'pool-dead', locked_at = now()`);
    }
    await aWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), takeover).toBe('FINISHED');
    expect(host.shares.has(await idOf(cloud, answer))).toBe(true);
  });

  it('by kill -9 in the middle of a transaction is taken over', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const answer = await create(cloud);
    const id = await idOf(cloud, answer);
    // The worker gets as far as recording what it did, and waits there for this lock.
    const blocker = await aBlocker(t, cloud, `select from file_shares where id = '${id}' for update`);
    const yard = await openYard({ DATABASE_URL: urlOf(cloud.connection), CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
    t.onTestFinished(() => yard.cleanUp());
    const child = await yard.start(['worker', '--region', '1']);
    await expect.poll(waiting(cloud, 'file_shares'), takeover).toBe(1);
    expect(await taskOf(cloud, answer)).toMatchObject({ state: 'RUNNING' });
    await child.kill();
    await blocker.release();
    await aWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), takeover).toBe('FINISHED');
    expect(await share(cloud, id)).toMatchObject({ status: 'available', connection_point: `host:/${id}` });
    expect(await drift(cloud.db, truth)).toEqual([]);
  }, 60_000);
});

function urlOf({ connectionString, host, port, user, database }: ConnectionOptions): string {
  return connectionString ?? `postgres:///${database}?host=${encodeURIComponent(host!)}&port=${port}&user=${user}`;
}

describe.concurrent('a job that is lost', () => {
  it('from the queue, or that the queue has given up, is put there again', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const lost = await create(cloud);
    await cloud.db.$client.query('delete from graphile_worker._private_jobs');
    const givenUp = await create(cloud);
    await cloud.db.$client.query(
      `update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'the database was away'`,
    );
    const farAway = await create(cloud);
    await cloud.db.$client.query(
      `update graphile_worker._private_jobs set attempts = 12, run_at = now() + interval '6 hours' where attempts = 0`,
    );
    await aWorker(t, cloud, host);
    for (const answer of [lost, givenUp, farAway]) {
      await expect.poll(stateOf(cloud, answer), { timeout: 30_000 }).toBe('FINISHED');
    }
  }, 60_000);
});

describe.concurrent('a host that fails', () => {
  it('for a while is asked again, and the task says why it takes long', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
    host.trouble(() => ({ error: passing('the host is busy'), done: false }));
    const answer = await create(cloud);
    const notes = async () => (await taskOf(cloud, answer)).data;
    await expect.poll(notes, soon).toEqual({ attempt: 1, last_error: 'the host is busy' });
    expect(await taskOf(cloud, answer)).toMatchObject({ state: 'RUNNING', error: null });
    const delayed = async () =>
      (await cloud.db.$client.query('select from graphile_worker._private_jobs where run_at > now()')).rowCount;
    await expect.poll(delayed, soon).toBe(1);
    await retryNow(cloud.db);
    await expect.poll(notes, soon).toEqual({ attempt: 2, last_error: 'the host is busy' });
    host.trouble();
    await retryNow(cloud.db);
    await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
  });

  it('every time ends the task in ERROR with its sentence, and the share can be deleted and gives its quota back', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
    host.trouble(() => ({ error: passing('the host is busy'), done: true }));
    const answer = await create(cloud);
    const id = await idOf(cloud, answer);
    const hurried = async () => {
      await retryNow(cloud.db);
      return stateOf(cloud, answer)();
    };
    await expect.poll(hurried, soon).toBe('ERROR');
    const task = await taskOf(cloud, answer);
    expect(task).toMatchObject({ error: 'the host is busy', detailed_state: 'ERROR', data: { attempt: 5 } });
    expect(task.finished_on).toEqual(expect.any(String));
    expect(await share(cloud, id)).toMatchObject({ status: 'error', task_id: null });
    expect(await usage(cloud)).toEqual([1, 2]);
    for (const [path, body] of [
      ['extend', { size: 3 }],
      ['access_rule', { access_mode: 'ro', ip_address: '1.1.1.1' }],
    ]) {
      const refused = await cloud.post(`${shares}/${id}/${path}`, body);
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    }
    host.trouble();
    expect((await cloud.ended(await cloud.delete(`${shares}/${id}`))).body.state).toBe('FINISHED');
    expect(await usage(cloud)).toEqual([0, 0]);
    expect([...host.shares.keys()]).toEqual([]);
  });

  it('to grow a share leaves it as it was, in extending_error, with size and quota back, and may be asked again', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
    const id = await available(t, cloud);
    host.trouble(() => ({ error: terminal('there is no space left on the host'), done: false }));
    const task = await cloud.ended(await cloud.post(`${shares}/${id}/extend`, { size: 9 }));
    expect(task.body).toMatchObject({ state: 'ERROR', error: 'there is no space left on the host' });
    expect(await share(cloud, id)).toMatchObject({ status: 'extending_error', size: 2, task_id: null });
    expect(await usage(cloud)).toEqual([1, 2]);
    host.trouble();
    expect((await cloud.ended(await cloud.post(`${shares}/${id}/extend`, { size: 3 }))).body.state).toBe('FINISHED');
    expect(await share(cloud, id)).toMatchObject({ status: 'available', size: 3 });
    expect(await usage(cloud)).toEqual([1, 3]);
  });

  it('to delete a share leaves it in error_deleting with its quota, and may be asked again', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
    const id = await available(t, cloud);
    host.trouble(() => ({ error: terminal('the share is busy on the host'), done: false }));
    const task = await cloud.ended(await cloud.delete(`${shares}/${id}`));
    expect(task.body).toMatchObject({ state: 'ERROR', error: 'the share is busy on the host' });
    expect(await share(cloud, id)).toMatchObject({ status: 'error_deleting', task_id: null });
    expect(await usage(cloud)).toEqual([1, 2]);
    expect((await cloud.post(`${shares}/${id}/extend`, { size: 3 })).status).toBe(409);
    host.trouble();
    expect((await cloud.ended(await cloud.delete(`${shares}/${id}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(`${shares}/${id}`)).status).toBe(404);
    expect(await usage(cloud)).toEqual([0, 0]);
  });
});

describe.concurrent('a host whose shares survive a restart', () => {
  it('gets back a share that it lost, and has what nobody knows put aside', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { host: createTestHost({ real: true }) });
    const id = await available(t, cloud, { access: [{ access_mode: 'rw', ip_address: '10.0.0.0/8' }] });
    const before = structuredClone(host.shares.get(id));
    const stray = { ...before!, id: '99999999-9999-4999-8999-999999999999' };
    host.shares.set(stray.id, stray);
    host.shares.delete(id);
    await expect.poll(() => host.shares.get(id), soon).toEqual(before);
    await expect.poll(() => [...host.quarantined.values()], soon).toEqual([stray]);
    expect([...host.shares.keys()]).toEqual([id]);
    expect(await share(cloud, id)).toMatchObject({ status: 'available', task_id: null });
  });
});

describe.concurrent('changes that come while a job runs', () => {
  it('are applied together afterwards, never two at a time', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
    const id = await available(t, cloud);
    const release = host.hold();
    const addresses = Array.from({ length: 30 }, (_, i) => `10.0.0.${i + 1}`);
    for (const ip_address of addresses) {
      const answer = await cloud.post(`${shares}/${id}/access_rule`, { access_mode: 'rw', ip_address });
      expect(answer.status).toBe(200);
    }
    await expect.poll(() => host.held.length, soon).toBe(1);
    release();
    const rules = async () => (await cloud.get(`${shares}/${id}/access_rule`)).body.results;
    const active = addresses.map((access_to) => expect.objectContaining({ access_to, state: 'active' }));
    await expect.poll(rules, soon).toEqual(active);
    expect(host.shares.get(id)!.access).toHaveLength(30);
    expect(host.overlap).toBe(1);
    // Once to create it, once for whatever was there at the first job, once for all the rest.
    expect(host.log.length).toBeLessThanOrEqual(4);
  });
});

describe.concurrent('queues that no job is in', () => {
  it('are forgotten when there are many, but for that of a job that is just being added', async (t) => {
    const { expect } = t;
    const { cloud } = await aCloudyard(t);
    const { $client } = cloud.db;
    await $client.query(
      `insert into graphile_worker._private_job_queues (queue_name) select 'q' || n from generate_series(1, 1000) as n`,
    );
    const adding = await $client.connect();
    await adding.query('begin');
    await adding.query(`select graphile_worker.add_job('for nobody', queue_name => 'q7')`);
    const queues = async () => {
      const { rows } = await $client.query('select queue_name as name from graphile_worker._private_job_queues');
      return rows.map(({ name }) => name);
    };
    await sleep(7000);
    expect(await queues()).toHaveLength(1000);
    await adding.query('commit');
    adding.release();
    await expect.poll(queues, takeover).toEqual(['q7']);
  }, 60_000);
});

describe.concurrent('a database that breaks', () => {
  it('connection by connection, again and again, costs no work that was acknowledged', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t);
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
      await expect.poll(stateOf(cloud, answer), { ...takeover, timeout: 40_000 }).toBe('FINISHED');
    expect((await cloud.get(shares)).body.count).toBe(40);
    expect(host.shares.size).toBe(40);
    expect(await drift(cloud.db, truth)).toEqual([]);
    await available(t, cloud);
    expect(host.overlap).toBe(1);
  }, 90_000);

  it('just when a job ends leaves nothing locked', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    await aWorker(t, cloud, host);
    const id = await available(t, cloud);
    const release = host.hold();
    const answer = await cloud.post(`${shares}/${id}/extend`, { size: 3 });
    await expect.poll(() => host.held.length, soon).toBe(1);
    // The statement that ends the job waits for this lock, and dies there.
    const blocker = await aBlocker(t, cloud, 'select from graphile_worker._private_jobs for update');
    release();
    await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
    const killed = async () =>
      (
        await cloud.db.$client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%_private_jobs%'`,
        )
      ).rowCount;
    await expect.poll(killed, soon).toBe(1);
    await blocker.release();
    const next = await cloud.post(`${shares}/${id}/extend`, { size: 4 });
    await expect.poll(stateOf(cloud, next), takeover).toBe('FINISHED');
  }, 60_000);

  it('just when a job is taken does not leave it taken by nobody', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const answer = await create(cloud);
    // The statement that takes the job is sent, and waits for this lock; its answer will be lost.
    const lock = 'lock table graphile_worker._private_jobs in share row exclusive mode';
    const blocker = await aBlocker(t, cloud, lock);
    const gate = await openGate(cloud.connection);
    await aWorker(t, cloud, host, gate.connection);
    await expect.poll(waiting(cloud, '_private_jobs'), soon).toBeGreaterThan(0);
    gate.deafen();
    await blocker.release();
    const holders = async () =>
      (await cloud.db.$client.query('select from graphile_worker._private_jobs where locked_by is not null')).rowCount;
    await expect.poll(holders, soon).toBe(1);
    await gate.cut();
    await gate.restore();
    await expect.poll(stateOf(cloud, answer), takeover).toBe('FINISHED');
  }, 60_000);

  it('does not have a job taken from a worker that lives and still runs it', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const gate = await openGate(cloud.connection);
    await aWorker(t, cloud, host, gate.connection);
    const release = host.hold();
    const held = await create(cloud);
    await expect.poll(() => host.held.length, soon).toBe(1);
    await gate.cut();
    await gate.restore();
    // Both look for dead workers at every beat, and have seen enough of them after nine seconds.
    await aWorker(t, cloud, host);
    const beats = async () =>
      (await cloud.db.$client.query(`select from workers where seen_at > started_at + interval '9 seconds'`)).rowCount;
    await expect.poll(beats, { timeout: 30_000, interval: 100 }).toBe(2);
    expect(host.held).toHaveLength(1);
    expect(host.overlap).toBe(1);
    release();
    await expect.poll(stateOf(cloud, held), takeover).toBe('FINISHED');
    expect(host.overlap).toBe(1);
  }, 60_000);

  it('and stays away for a while is asked by one queue afterwards, not by one for each try', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const gate = await openGate(cloud.connection);
    await aWorker(t, cloud, host, gate.connection);
    const listening = async () =>
      (
        await cloud.db.$client.query(
          `select from pg_stat_activity where datname = current_database() and query like 'LISTEN "jobs:insert"%'`,
        )
      ).rowCount;
    await expect.poll(listening, soon).toBe(1);
    for (let i = 0; i < 3; i++) {
      await gate.cut();
      await sleep(700);
      await gate.restore();
      await expect.poll(listening, soon).toBe(1);
    }
    await available(t, cloud);
    expect(await listening()).toBe(1);
  }, 60_000);

  it('does not have new jobs wait for one that hangs', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const gate = await openGate(cloud.connection);
    await aWorker(t, cloud, host, gate.connection);
    const release = host.hold();
    t.onTestFinished(release);
    const hung = await create(cloud);
    await expect.poll(() => host.held.length, soon).toBe(1);
    host.admit();
    await gate.cut();
    await gate.restore();
    const next = await create(cloud);
    await expect.poll(stateOf(cloud, next), takeover).toBe('FINISHED');
    expect(await taskOf(cloud, hung)).toMatchObject({ state: 'RUNNING' });
  }, 60_000);

  it('again and again while jobs hang leaves connections for the next ones', async (t) => {
    const { expect } = t;
    const { cloud, host } = await aCloudyard(t, { worker: false });
    const gate = await openGate(cloud.connection);
    await aWorker(t, cloud, host, gate.connection);
    const release = host.hold();
    t.onTestFinished(release);
    const hung: Answer[] = [];
    // More than the worker's pool has connections, each loss leaving a retired queue that waits for its job.
    for (let i = 1; i <= 10; i++) {
      hung.push(await create(cloud));
      await expect.poll(() => host.held.length, takeover).toBe(i);
      await gate.cut();
      await gate.restore();
    }
    release();
    for (const answer of hung) await expect.poll(stateOf(cloud, answer), takeover).toBe('FINISHED');
    expect(host.overlap).toBe(1);
  }, 120_000);
});
