/** Expiry when it is obstructed: a host that fails to delete snapshots, or an exhausted quota. */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { DriverError } from '../../../drivers/driver.ts';
import { createSimulatedVolumeDriver } from '../../../drivers/simulated/volume.ts';

/** Whether the host fails to delete snapshots. */
let stuck = false;
const driver = createSimulatedVolumeDriver();
const remove = driver.snapshots.remove;
driver.snapshots.remove = async (id, signal) => {
  if (stuck) throw new DriverError('stuck', { customerMessage: 'The disk is stuck.', retryable: false });
  return remove(id, signal);
};

const cloud = useCloudyard({ driver: null, volumeDriver: driver, pollSeconds: 0.05 });
let worker: Awaited<ReturnType<typeof cloud.startWorker>>;
let client: { clientId: number; projectId: number; token: string };
const at = (what: string) => `/cloud/v1/${what}/${client.projectId}/1`;

beforeAll(async () => {
  cloud.clock.set(new Date('2026-06-01T12:00:00Z'));
  worker = await cloud.startWorker();
});

beforeEach(async () => {
  stuck = false;
  client = await cloud.newClient();
});

afterEach(async () => {
  stuck = false;
  for (const { id } of (await cloud.get(at('lifecycle_policy'), client)).body.results) {
    await cloud.delete(`${at('lifecycle_policy')}/${id}`, client);
  }
});

async function newVolume(): Promise<string> {
  const answer = await cloud.post(at('volumes'), { name: 'data', size: 1, source: 'new-volume' }, client);
  return (await cloud.ended(answer, client)).body.created_resources.volumes[0];
}

async function newPolicy(max_quantity: number, volume_ids: string[]) {
  const schedules = [{ type: 'interval', hours: 1, max_quantity }];
  const body = { action: 'volume_snapshot', name: 'policy', schedules, volume_ids };
  const { id, schedules: made } = (await cloud.post(at('lifecycle_policy'), body, client)).body;
  const path = `${at('lifecycle_policy')}/${id}`;
  return {
    id,
    path,
    scheduleId: made[0].id,
    runs: async () => (await cloud.get(`${path}/runs`, client)).body.results,
    estimate: async () => {
      const answer = await cloud.post(`${at('lifecycle_policy')}/estimate_max_policy_usage`, body, client);
      return answer.body.max_volume_snapshot_count_usage as number;
    },
  };
}

const limit = (volume_snapshots_count_limit: number) =>
  cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, volume_snapshots_count_limit });

/** Oldest first. */
async function snapshotsOf(volume: string): Promise<{ id: string; status: string }[]> {
  return (await cloud.get(`${at('snapshots')}?volume_id=${volume}`, client)).body.results;
}
const statusesOf = async (volume: string) => (await snapshotsOf(volume)).map(({ status }) => status);
const deletions = async () =>
  (await cloud.get('/cloud/v1/tasks?task_type=delete_snapshot&limit=1000', client)).body.results;

const soon = { timeout: 30_000, interval: 20 };

/** Advances the clock by an hour and waits for due runs; deletions may still be pending. */
async function hour(): Promise<void> {
  cloud.clock.advance(3600);
  await expect.poll(() => cloud.services.lifecyclePolicyRuns.countOpen([1]), soon).toBe(0);
}
async function hours(count: number, volumes: string[]): Promise<void> {
  for (let i = 0; i < count; i++) {
    await hour();
    for (const volume of volumes) await expect.poll(() => statusesOf(volume), soon).not.toContain('deleting');
  }
}
describe('a failed deletion of an expired snapshot', () => {
  const statuses = { available: 'available', stuck: 'error_deleting' };

  it('is retried after one minute, then after two, also by another worker, until it succeeds', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(1, [volume]);
    stuck = true;
    await hours(2, [volume]);
    expect(await statusesOf(volume)).toEqual([statuses.stuck, statuses.available]);
    const [old] = await snapshotsOf(volume);
    expect((await policy.runs())[0].expired).toEqual([]);
    await cloud.afterDuties();
    expect(await deletions()).toHaveLength(1);
    cloud.clock.advance(60);
    await expect.poll(deletions, soon).toHaveLength(2);
    await expect.poll(() => statusesOf(volume), soon).toEqual([statuses.stuck, statuses.available]);
    cloud.clock.advance(60);
    await cloud.afterDuties();
    expect(await deletions()).toHaveLength(2);

    await worker.stop();
    worker.stop = async () => undefined;
    stuck = false;
    worker = await cloud.startWorker();
    cloud.clock.advance(60);
    await expect.poll(() => statusesOf(volume), soon).toEqual([statuses.available]);
    expect((await policy.runs())[0].expired).toEqual([{ volume_id: volume, snapshot_id: old!.id }]);
    const tasks = await deletions();
    // Newest first.
    expect(tasks.map(({ state }: { state: string }) => state)).toEqual(['FINISHED', 'ERROR', 'ERROR']);
    for (const task of tasks) {
      expect(task).toMatchObject({ lifecycle_policy_id: policy.id, schedule_id: policy.scheduleId });
    }
  });

  it('is not retried while the policy is paused or after it is deleted', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(1, [volume]);
    stuck = true;
    await hours(2, [volume]);
    await cloud.patch(policy.path, { status: 'paused' }, client);
    stuck = false;
    cloud.clock.advance(600);
    await cloud.afterDuties();
    expect(await statusesOf(volume)).toEqual([statuses.stuck, statuses.available]);
    stuck = true;
    await cloud.patch(policy.path, { status: 'active' }, client);
    await expect.poll(deletions, soon).toHaveLength(2);
    await expect.poll(() => statusesOf(volume), soon).toEqual([statuses.stuck, statuses.available]);
    await cloud.delete(policy.path, client);
    stuck = false;
    cloud.clock.advance(600);
    await cloud.afterDuties();
    expect(await statusesOf(volume)).toEqual([statuses.stuck, statuses.available]);
  });
});

describe('a quota that equals the number of retained snapshots', () => {
  it('makes the policy delete the oldest snapshot before it takes a new one', async () => {
    const volumes = [await newVolume(), await newVolume()];
    const policy = await newPolicy(3, volumes);
    await limit(await policy.estimate());
    await hours(7, volumes);
    const runs = await policy.runs();
    expect(runs).toHaveLength(7);
    for (const run of runs) expect(run).toMatchObject({ failed: [], snapshots: [{}, {}] });
    for (const run of runs.slice(0, 4)) expect(run.expired).toHaveLength(2);
    for (const volume of volumes) expect(await statusesOf(volume)).toEqual(['available', 'available', 'available']);
    const { results: tasks } = (await cloud.get('/cloud/v1/tasks?task_type=create_snapshot&limit=1000', client)).body;
    expect(tasks).toHaveLength(14);
    for (const task of tasks) {
      expect(task).toMatchObject({ lifecycle_policy_id: policy.id, schedule_id: policy.scheduleId });
    }
    const { body } = await cloud.get(`/cloudyard/v1/clients/${client.clientId}/notifications`, client);
    expect(body.results.map(({ type }: { type: string }) => type)).not.toContain('lifecycle_policy_run_failed');
  });

  it('is shared by several volumes, and a volume below its retained count uses the remainder', async () => {
    const volumes = [await newVolume(), await newVolume(), await newVolume(), await newVolume(), await newVolume()];
    const policy = await newPolicy(2, volumes);
    await limit(await policy.estimate());
    await hours(2, volumes);
    const short = (await snapshotsOf(volumes[2]!))[0]!.id;
    await cloud.ended(await cloud.delete(`/cloud/v1/snapshots/${client.projectId}/1/${short}`, client), client);
    await hours(4, volumes);
    for (const run of (await policy.runs()).slice(0, 4))
      expect(run).toMatchObject({ failed: [], snapshots: [{}, {}, {}, {}, {}] });
    for (const volume of volumes) expect(await statusesOf(volume)).toEqual(['available', 'available']);
  });

  it('fails the volume while the oldest snapshot cannot be deleted, and recovers afterwards', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(2, [volume]);
    await limit(2);
    await hours(2, [volume]);
    stuck = true;
    await hours(2, [volume]);
    const [last, before] = await policy.runs();
    for (const run of [last, before]) {
      expect(run.failed).toMatchObject([{ message: expect.stringContaining('volume_snapshots_count') }]);
      expect(run.expired).toEqual([]);
    }
    expect(await statusesOf(volume)).toEqual(['error_deleting', 'available']);
    stuck = false;
    cloud.clock.advance(600);
    await expect.poll(() => statusesOf(volume), soon).toEqual(['available']);
    await hours(2, [volume]);
    expect((await policy.runs())[0]).toMatchObject({ failed: [], snapshots: [{}] });
    expect(await statusesOf(volume)).toEqual(['available', 'available']);
  });

  it('deletes nothing for a schedule that retains one snapshot or is below its retained count', async () => {
    const [single, few] = [await newVolume(), await newVolume()];
    const one = await newPolicy(1, [single]);
    const three = await newPolicy(3, [few]);
    await limit(3);
    await hours(1, [single, few]);
    const kept = [await snapshotsOf(single), await snapshotsOf(few)];
    await limit(2);
    await hours(2, [single, few]);
    expect([await snapshotsOf(single), await snapshotsOf(few)]).toEqual(kept);
    for (const policy of [one, three]) {
      expect((await policy.runs())[0].failed).toMatchObject([{ message: expect.stringContaining('quota') }]);
    }
  });
});

describe('snapshots that were made while the clock was ahead', () => {
  /** As if the clock had been set back by this time since the snapshots were made. */
  const setBack = (volume: string, by: string) =>
    cloud.db.$client.query(
      `with runs as (
         update lifecycle_policy_runs r set scheduled_at = scheduled_at + $2::interval
         from lifecycle_policy_run_volumes rv where rv.run_id = r.id and rv.volume_id = $1)
       update snapshots set scheduled_at = scheduled_at + $2::interval, created_at = created_at + $2::interval
       where volume_id = $1`,
      [volume, by],
    );

  it('are the oldest, so that later ones are retained', async () => {
    const volume = await newVolume();
    await newPolicy(2, [volume]);
    await hours(2, [volume]);
    const ahead = await snapshotsOf(volume);
    await setBack(volume, '30 days');
    await hours(1, [volume]);
    const kept = (await snapshotsOf(volume)).map(({ id }) => id);
    expect(kept).toHaveLength(2);
    expect(kept).toContain(ahead[1]!.id);
    await hours(1, [volume]);
    const ids = new Set(ahead.map(({ id }) => id));
    expect((await snapshotsOf(volume)).filter(({ id }) => ids.has(id))).toEqual([]);
    expect(await statusesOf(volume)).toEqual(['available', 'available']);
  });

  it('do not make the snapshot of a requested run one of the future', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(1, [volume]);
    await hours(1, [volume]);
    await setBack(volume, '30 days');
    await hours(1, [volume]);
    const [before] = await snapshotsOf(volume);
    const run = await cloud.post(`${policy.path.replace('/cloud/', '/cloudyard/')}/run`, {}, client);
    expect(await cloud.ended(run, client)).toMatchObject({ body: { state: 'FINISHED' } });
    await expect.poll(() => statusesOf(volume), soon).toEqual(['available']);
    expect((await snapshotsOf(volume))[0]!.id).not.toBe(before!.id);
  });

  it('are deleted first when the quota is exhausted', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(2, [volume]);
    await limit(await policy.estimate());
    await hours(2, [volume]);
    const ahead = new Set((await snapshotsOf(volume)).map(({ id }) => id));
    await setBack(volume, '30 days');
    await limit(2);
    await hours(2, [volume]);
    expect((await snapshotsOf(volume)).filter(({ id }) => ahead.has(id))).toEqual([]);
    expect(await statusesOf(volume)).toEqual(['available', 'available']);
  });
});
