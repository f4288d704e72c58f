/**
 * Every statement of a change of each family of resources fails once, from the request to the end of its task. The request
 * succeeds or says that the database is unavailable; after repeats the change was made once. The harness compares counters
 * and rows at the end.
 */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { retryNow } from '../../test/crash-harness.ts';
import { type DatabaseFault, withDatabaseFault } from '../../test/database-faults.ts';
import { type Answer, useCloudyard } from '../../test/harness.ts';
import { builders, pools, v2 } from '../resources/load-balancers/test-balancers.ts';

const cloud = useCloudyard({ pollSeconds: 0.05 });
const { aBalancer, aPool } = builders(cloud);
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const policies = '/cloud/v1/lifecycle_policy/1/1';
const registries = '/cloud/v1/registries/1/1';

const faults: DatabaseFault[] = ['a serialization failure', 'a statement timeout', 'a connection that breaks after'];

interface Change {
  /** Makes what the change needs. Returns an ID or a name for the others. */
  arrange(): Promise<string>;
  /** Sends the change; `key` is the same for each repeat. */
  send(id: string, key: { headers: Record<string, string> }): Promise<Answer>;
  /** What the API shows afterwards. */
  result(id: string): Promise<unknown>;
  expected: unknown;
  /** Default: all. */
  faults?: DatabaseFault[];
}

const newVolume = async (): Promise<string> => {
  const made = await cloud.post(volumes, { name: 'data', size: 1, source: 'new-volume' });
  return (await cloud.ended(made)).body.created_resources.volumes[0];
};

let balancer: string;
const changes: Record<string, Change> = {
  'the extension of a volume': {
    arrange: newVolume,
    send: (id, key) => cloud.post(`${volumes}/${id}/extend`, { size: 2 }, key),
    async result(id) {
      const { size, status } = (await cloud.get(`${volumes}/${id}`)).body;
      return { size, status };
    },
    expected: { size: 2, status: 'available' },
  },
  'the update of a pool': {
    arrange: () => aPool({ load_balancer_id: balancer }),
    send: (id, key) => cloud.patch(v2(`${pools}/${id}`), { lb_algorithm: 'LEAST_CONNECTIONS' }, key),
    async result(id) {
      const { lb_algorithm, provisioning_status } = (await cloud.get(`${pools}/${id}`)).body;
      return { lb_algorithm, provisioning_status };
    },
    expected: { lb_algorithm: 'LEAST_CONNECTIONS', provisioning_status: 'ACTIVE' },
  },
  'a run of a lifecycle policy': {
    async arrange() {
      const volume = await newVolume();
      const body = { action: 'volume_snapshot', name: 'policy', volume_ids: [volume] };
      const schedules = [{ type: 'interval', weeks: 1 }];
      return `${(await cloud.post(policies, { ...body, schedules })).body.id} ${volume}`;
    },
    send: (id, key) => cloud.post(`/cloudyard/v1/lifecycle_policy/1/1/${id.split(' ')[0]}/run`, {}, key),
    async result(id) {
      const [policy, volume] = id.split(' ');
      const runs = (await cloud.get(`${policies}/${policy}/runs`)).body.results.length;
      const made = (await cloud.get(`${snapshots}?volume_id=${volume}`)).body.results;
      return { runs, snapshots: made.map(({ status }: { status: string }) => status) };
    },
    expected: { runs: 1, snapshots: ['available'] },
    // Each of its statements takes a second: several duties work one after the other.
    faults: ['a connection that breaks after'],
  },
  'the creation of a registry': {
    arrange: async () => `r${randomUUID().slice(0, 8)}`,
    send: (name, key) => cloud.post(registries, { name, storage_limit: 1 }, key),
    async result(name) {
      const { results } = (await cloud.get(`${registries}?limit=1000`)).body;
      return results.filter((each: { name: string }) => each.name === name).length;
    },
    expected: 1,
  },
};

/** Statements of a worker and a notifier without work, and those of `result`. */
const ordinary = new Set<string>();

beforeAll(async () => {
  const limits = { volume_count: 10_000, volume_size: 10_000, snapshot_schedule_count: 10_000, registry_count: 10_000 };
  const body = Object.fromEntries(Object.entries(limits).map(([kind, limit]) => [`${kind}_limit`, limit]));
  expect((await cloud.patch('/cloudyard/v1/clients/1/quotas', { region_id: 1, ...body })).status).toBe(200);
  balancer = await aBalancer();
});

const activeTasks = async (): Promise<number> => {
  const { status, body } = await cloud.get('/cloud/v1/tasks?state=NEW&state=RUNNING&limit=1');
  return status === 200 ? body.count : Number.NaN;
};

const settled = async (): Promise<number> => {
  await retryNow(cloud.db).catch(() => undefined);
  return activeTasks();
};

/** Runs the change with one fault. Returns the statement that failed; null if every statement had failed before. */
async function changeWithFault(change: Change, fault: DatabaseFault, failed: Set<string>): Promise<string | null> {
  const id = await change.arrange();
  const key = { headers: { 'idempotency-key': randomUUID() } };
  const chooses = (text: string) => !failed.has(text) && !ordinary.has(text);
  const statement = await withDatabaseFault(fault, chooses, async () => {
    let answer = await change.send(id, key);
    for (let tries = 0; answer.status === 503 && tries < 10; tries++) answer = await change.send(id, key);
    // The first request without a key may have been committed: its task locks the resource.
    if (answer.body.exception_class !== 'ResourceLocked') expect(answer.status).toBeLessThan(300);
    await expect.poll(settled, { timeout: 30_000, interval: 20 }).toBe(0);
  });
  const result = async () => [statement, await change.result(id)];
  await expect.poll(result, { timeout: 30_000, interval: 20 }).toEqual([statement, change.expected]);
  return statement;
}

describe.each(Object.entries(changes))('%s', (_name, change) => {
  it.each(change.faults ?? faults)(
    'is made once, with %s at any of its statements',
    { timeout: 240_000 },
    async (fault) => {
      const id = await change.arrange();
      await withDatabaseFault(
        fault,
        (text) => (ordinary.add(text), false),
        async () => {
          await change.result(id).catch(() => undefined);
          await settled();
          await cloud.afterDuties();
        },
      );
      const failed = new Set<string>();
      for (;;) {
        const statement = await changeWithFault(change, fault, failed);
        if (statement === null) break;
        failed.add(statement);
      }
      expect(failed.size).toBeGreaterThan(2);
    },
  );
});
