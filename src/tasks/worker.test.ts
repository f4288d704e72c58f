/** The engine of tasks when workers, jobs and hosts fail. */
import { describe, it, type TestContext } from 'vitest';
import { drift, retryNow } from '../../test/crash-harness.ts';
import { createTestHost, passing, terminal } from '../../test/drivers.ts';
import type { Cloudyard } from '../../test/harness.ts';
import { openYard } from '../../test/processes.ts';
import { hostError } from '../drivers/command.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { findPending } from '../resources/file-shares/store.ts';
import type { Reconciler } from './reconcile.ts';
import { requeuePending } from './worker.ts';
import {
  addWorker,
  afterDeath,
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
  usage,
  waiting,
} from '../../test/worker.ts';

const deleteRule = async (cloud: Cloudyard, id: string) => {
  const rules = `${shares}/${id}/access_rule`;
  const [rule] = (await cloud.get(rules)).body.results;
  return cloud.delete(`${rules}/${rule.id}`);
};

describe.concurrent('a worker that dies', () => {
  it('leaves jobs that another worker finishes', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const answer = await create(cloud);
    await cloud.db.$client.query(`update jobs set locked_by = 'worker-dead', lease = 1, attempts = 1`);
    await addWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
    expect(host.shares.has(await idOf(cloud, answer))).toBe(true);
  });

  it('by kill -9 in the middle of a transaction leaves a job that another worker finishes', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const answer = await create(cloud);
    const id = await idOf(cloud, answer);
    // The worker reaches the statement that records the result, and waits there for this lock.
    const blocker = await holdLock(t, cloud, `select from file_shares where id = '${id}' for update`);
    const yard = await openYard({ DATABASE_URL: urlOf(cloud.connection), CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
    t.onTestFinished(() => yard.cleanUp());
    const child = await yard.start(['worker', '--region', '1']);
    await expect.poll(waiting(cloud, ''), afterDeath).toBe(1);
    expect(await taskOf(cloud, answer)).toMatchObject({ state: 'RUNNING' });
    await child.kill();
    await blocker.release();
    await addWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
    // PostgreSQL may still have executed what the killed worker had sent; the job runs again all the same.
    const recorded = { status: 'available', connection_point: `host:/${id}` };
    await expect.poll(() => share(cloud, id), afterDeath).toMatchObject(recorded);
    expect(await drift(cloud.db, truth)).toEqual([]);
  }, 60_000);
});

describe.concurrent('a worker that is frozen', () => {
  it('longer than the grace keeps its job, and finishes it when it continues', async (t) => {
    const { expect } = t;
    const { cloud, host, answer, child, blocker } = await freezeAtWork(t);
    await addWorker(t, cloud, host);
    // The other worker would have taken the job after four seconds.
    const heartbeats = async () =>
      (await cloud.db.$client.query(`select from workers where seen_at > started_at + interval '9 seconds'`)).rowCount;
    await expect.poll(heartbeats, afterDeath).toBeGreaterThan(0);
    expect(host.log).toEqual([]);
    expect(await taskOf(cloud, answer)).toMatchObject({ state: 'RUNNING' });
    await blocker.release();
    child.signal('SIGCONT');
    await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
    expect(host.log).toEqual([]);
    expect(await drift(cloud.db, truth)).toEqual([]);
  }, 120_000);

  it('and loses its connections is replaced, and changes nothing when it continues', async (t) => {
    const { expect } = t;
    const { cloud, host, answer, child, blocker } = await freezeAtWork(t);
    await cloud.db.$client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name like 'cloudyard worker%'`,
    );
    await blocker.release();
    await addWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), afterDeath).toBe('FINISHED');
    const id = await idOf(cloud, answer);
    const before = await share(cloud, id);
    expect(before).toMatchObject({ status: 'available', connection_point: `host:/${id}` });
    const continued = (await cloud.db.$client.query('select now() as time')).rows[0].time;
    child.signal('SIGCONT');
    // The notifier of the process sends heartbeats, too, and has no region.
    const live = async () =>
      (await cloud.db.$client.query(`select from workers where seen_at > $1 and region_ids = '{1}'`, [continued]))
        .rowCount;
    await expect.poll(live, afterDeath).toBe(2);
    expect(await share(cloud, id)).toEqual(before);
    expect(await drift(cloud.db, truth)).toEqual([]);
  }, 120_000);
});

/** Freezes a worker process (SIGSTOP) while it waits to record what it has done for a new share. */
async function freezeAtWork(t: TestContext) {
  const { cloud, host } = await startCloudyard(t, { worker: false });
  const answer = await create(cloud);
  const blocker = await holdLock(
    t,
    cloud,
    `select from file_shares where id = '${await idOf(cloud, answer)}' for update`,
  );
  const yard = await openYard({ DATABASE_URL: urlOf(cloud.connection), CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
  t.onTestFinished(() => yard.cleanUp());
  const child = await yard.start(['worker', '--region', '1']);
  await t.expect.poll(waiting(cloud, ''), afterDeath).toBe(1);
  child.signal('SIGSTOP');
  return { cloud, host, answer, child, blocker };
}

function urlOf({ connectionString, host, port, user, database }: ConnectionOptions): string {
  return connectionString ?? `postgres:///${database}?host=${encodeURIComponent(host!)}&port=${port}&user=${user}`;
}

describe.concurrent('a job that is lost', () => {
  it('from the queue is enqueued again', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const lost = await create(cloud);
    await cloud.db.$client.query('delete from jobs');
    await addWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, lost), { timeout: 30_000 }).toBe('FINISHED');
  }, 60_000);

  it('is not mistaken for one that ends while pending rows are read', async (t) => {
    const { expect } = t;
    const { cloud } = await startCloudyard(t, { worker: false });
    await create(cloud);
    const jobEnds = async () => {
      const pending = await findPending(cloud.db, [1]);
      await cloud.db.$client.query('update file_shares set observed_generation = generation');
      await cloud.db.$client.query('delete from jobs');
      return pending;
    };
    const reconciler = { resource: 'file_share', findPending: jobEnds } as unknown as Reconciler;
    await requeuePending({ db: cloud.db, regionIds: [1], reconcilers: [reconciler] });
    const { rows } = await cloud.db.$client.query('select kind from jobs');
    expect(rows).toEqual([]);
  });
});

describe.concurrent('a job of a time before the clock was set back', () => {
  it('does not wait until the clock reaches that time again', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { worker: false });
    const answer = await create(cloud);
    await cloud.db.$client.query(`update jobs set run_at = now() + interval '1 day'`);
    await addWorker(t, cloud, host);
    await expect.poll(stateOf(cloud, answer), { timeout: 30_000 }).toBe('FINISHED');
  }, 60_000);
});

describe.concurrent('a host that fails', () => {
  it('for a while is retried, and the task shows the last error', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
    host.trouble(() => ({ error: passing('the host is busy'), done: false }));
    const answer = await create(cloud);
    const notes = async () => (await taskOf(cloud, answer)).data;
    await expect.poll(notes, soon).toMatchObject({ attempt: 1, last_error: 'the host is busy' });
    expect(await taskOf(cloud, answer)).toMatchObject({ state: 'RUNNING', error: null });
    const delayed = async () => (await cloud.db.$client.query('select from jobs where run_at > now()')).rowCount;
    await expect.poll(delayed, soon).toBe(1);
    await retryNow(cloud.db);
    await expect.poll(notes, soon).toMatchObject({ attempt: 2, last_error: 'the host is busy' });
    host.trouble();
    await retryNow(cloud.db);
    await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
  });

  it('every time ends the task in ERROR with the error; the share can be deleted, which releases its quota', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
    host.trouble(() => ({ error: passing('the host is busy'), done: true }));
    const answer = await create(cloud, { access: [{ access_mode: 'rw', ip_address: '10.0.0.0/8' }] });
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
    expect((await deleteRule(cloud, id)).status).toBe(409);
    host.trouble();
    expect((await cloud.ended(await cloud.delete(`${shares}/${id}`))).body.state).toBe('FINISHED');
    expect(await usage(cloud)).toEqual([0, 0]);
    expect([...host.shares.keys()]).toEqual([]);
  });

  it('because the host is full is retried for an hour, and succeeds when there is space', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
    host.trouble(() => ({ error: hostError('No space left on device', null), done: false }));
    const answer = await create(cloud);
    const attempts = async () => {
      await retryNow(cloud.db);
      return (await taskOf(cloud, answer)).data?.attempt ?? 0;
    };
    await expect.poll(attempts, soon).toBeGreaterThan(10);
    const waiting = await taskOf(cloud, answer);
    expect(waiting).toMatchObject({ state: 'RUNNING', data: { last_error: expect.stringContaining('no space') } });
    host.trouble();
    await expect.poll(async () => (await retryNow(cloud.db), stateOf(cloud, answer)()), soon).toBe('FINISHED');
  });

  it('to extend a share leaves it in extending_error with its old size and quota, and can be retried', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
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

  it('to delete a share leaves it in error_deleting with its quota, and can be retried', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
    const id = await available(t, cloud, { access: [{ access_mode: 'rw', ip_address: '10.0.0.0/8' }] });
    host.trouble(() => ({ error: terminal('the share is busy on the host'), done: false }));
    const task = await cloud.ended(await cloud.delete(`${shares}/${id}`));
    expect(task.body).toMatchObject({ state: 'ERROR', error: 'the share is busy on the host' });
    expect(await share(cloud, id)).toMatchObject({ status: 'error_deleting', task_id: null });
    expect(await usage(cloud)).toEqual([1, 2]);
    expect((await cloud.post(`${shares}/${id}/extend`, { size: 3 })).status).toBe(409);
    expect((await deleteRule(cloud, id)).status).toBe(409);
    host.trouble();
    expect((await cloud.ended(await cloud.delete(`${shares}/${id}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(`${shares}/${id}`)).status).toBe(404);
    expect(await usage(cloud)).toEqual([0, 0]);
  });
});

describe.concurrent('a host whose shares survive a restart', () => {
  it('gets a lost share back, and an unknown share is quarantined', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { host: createTestHost({ real: true }) });
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

describe.concurrent('a share that is damaged on its host', () => {
  it('is applied again by the next sweep', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { host: createTestHost({ real: true }) });
    const id = await available(t, cloud);
    const before = host.log.length;
    host.damaged.add(id);
    await expect.poll(() => [...host.damaged], soon).toEqual([]);
    expect(host.log.length).toBeGreaterThan(before);
    expect(await share(cloud, id)).toMatchObject({ status: 'available', task_id: null });
  });
});

describe.concurrent('a share whose extension failed', () => {
  it('is applied again by the next sweep when it is damaged on its host', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t, { host: createTestHost({ real: true }) });
    const id = await available(t, cloud);
    host.trouble(() => ({ error: terminal(), done: false }));
    await cloud.ended(await cloud.post(`${shares}/${id}/extend`, { size: 9 }));
    host.damaged.add(id);
    host.trouble();
    await expect.poll(() => [...host.damaged], soon).toEqual([]);
    expect(host.shares.get(id)).toMatchObject({ sizeGib: 2 });
  });
});

describe.concurrent('changes during a job', () => {
  it('are applied together afterwards, one reconcile at a time', async (t) => {
    const { expect } = t;
    const { cloud, host } = await startCloudyard(t);
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
    // One to create it, one for the rules at the start of the first job, one for all other rules.
    expect(host.log.length).toBeLessThanOrEqual(4);
  });
});
