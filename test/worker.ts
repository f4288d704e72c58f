/** A Cloudyard, workers and requests for tests of the task engine. */
import { inject, type TestContext } from 'vitest';
import { type Gate, openGate } from './crash-harness.ts';
import { createTestHost, type TestHost } from './drivers.ts';
import { type Answer, type Cloudyard, openCloudyard } from './harness.ts';
import { createFileShareReconciler } from '../src/resources/file-shares/reconcile.ts';
import { connect } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { startWorker } from '../src/tasks/worker.ts';

export { truthOfShares as truth } from './crash-harness.ts';

export const shares = '/cloud/v1/file_shares/1/1';
/** Time to detect a dead worker and to run its jobs. */
export const afterDeath = { timeout: 60_000, interval: 100 };
export const soon = { timeout: 30_000, interval: 20 };

/** A separate Cloudyard for this test. `worker: false` starts no worker. */
export async function startCloudyard(t: TestContext, { host = createTestHost(), worker = true } = {}) {
  const { cloudyard, stop } = await openCloudyard(inject('postgres'), { driver: worker ? host : null });
  t.onTestFinished(stop);
  return { cloud: cloudyard, host };
}

/** Starts a worker with separate database connections, like a worker process. */
export async function addWorker(t: TestContext, cloud: Cloudyard, host: TestHost, connection = cloud.connection) {
  const db = connect({ ...connection, poolSize: 8, log: silentLogger });
  const { services } = cloud;
  const worker = await startWorker({
    db,
    log: silentLogger,
    clock: services.clock,
    tasks: services.tasks,
    wakeups: services.wakeups,
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

/** Holds a database lock until `release` or the end of the test. */
export async function holdLock(t: TestContext, cloud: Cloudyard, lock: string): Promise<{ release(): Promise<void> }> {
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

/** The number of statements that contain a text and wait for a lock. */
export const waiting = (cloud: Cloudyard, about: string) => async () => {
  const sql = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  return (await cloud.db.$client.query(`${sql} and strpos(query, $1) > 0`, [about])).rowCount!;
};

export const networkOf = async (cloud: Cloudyard) =>
  (await cloud.get('/cloud/v1/networks/1/1')).body.results[0].id as string;
export const valid = { name: 'a share', protocol: 'NFS', size: 2 };

export async function create(cloud: Cloudyard, changes: object = {}): Promise<Answer> {
  return cloud.post(shares, { ...valid, network: { network_id: await networkOf(cloud) }, ...changes });
}

export const taskOf = async (cloud: Cloudyard, answer: Answer) =>
  (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body;
export const idOf = async (cloud: Cloudyard, answer: Answer) =>
  (await taskOf(cloud, answer)).created_resources.file_shares[0] as string;
export const share = async (cloud: Cloudyard, id: string) => (await cloud.get(`${shares}/${id}`)).body;
export const stateOf = (cloud: Cloudyard, answer: Answer) => async () => (await taskOf(cloud, answer)).state as string;
export const usage = async (cloud: Cloudyard) => {
  const { body } = await cloud.get('/cloud/v2/regional_quotas/1/1');
  return [body.sfs_count_usage, body.sfs_size_usage];
};

/** Creates a share and waits until it is available. */
export async function available({ expect }: TestContext, cloud: Cloudyard, changes: object = {}): Promise<string> {
  const answer = await create(cloud, changes);
  expect(await cloud.ended(answer)).toMatchObject({ body: { state: 'FINISHED' } });
  return idOf(cloud, answer);
}

/** A Cloudyard whose only worker connects to the database through a gate that the test can break. */
export async function startBehindGate(t: TestContext): Promise<{ cloud: Cloudyard; host: TestHost; gate: Gate }> {
  const { cloud, host } = await startCloudyard(t, { worker: false });
  const gate = await openGate(cloud.connection);
  await addWorker(t, cloud, host, gate.connection);
  return { cloud, host, gate };
}

/** Breaks all connections of the worker at once. */
export async function breakConnections(gate: Gate): Promise<void> {
  await gate.cut();
  await gate.restore();
}
