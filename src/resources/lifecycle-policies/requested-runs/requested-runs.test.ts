/** Runs that clients request: what they create and expire, their tasks, and when they are refused. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createFaultyVolumeDriver } from '../../../../test/faulty-volume-driver.ts';
import { useCloudyard } from '../../../../test/harness.ts';

const { driver, faults } = createFaultyVolumeDriver();
const cloud = useCloudyard({ driver: null, volumeDriver: driver, pollSeconds: 0.05 });
const nightly = { type: 'cron', hour: '3', max_quantity: 2, resource_name_template: 'at {scheduled_at}' };
const weekly = { type: 'interval', weeks: 1 };
let client: Awaited<ReturnType<typeof cloud.newClient>>;
let policies: string;

beforeAll(async () => {
  cloud.clock.set(new Date('2026-06-01T12:00:00Z'));
  await cloud.startWorker();
});

beforeEach(async () => {
  faults.clear();
  client = await cloud.newClient();
  policies = `/cloud/v1/lifecycle_policy/${client.projectId}/1`;
});

async function newVolume(): Promise<string> {
  const body = { name: 'data', size: 1, source: 'new-volume' };
  const made = await cloud.post(`/cloud/v1/volumes/${client.projectId}/1`, body, client);
  return (await cloud.ended(made, client)).body.created_resources.volumes[0];
}

async function newPolicy(schedules: object[], volume_ids: string[]) {
  const body = { action: 'volume_snapshot', name: 'policy', schedules, volume_ids };
  const { id, schedules: made } = (await cloud.post(policies, body, client)).body;
  const own = `/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${id}`;
  return {
    id: id as number,
    path: `${policies}/${id}`,
    schedules: (made as { id: string }[]).map((schedule) => schedule.id),
    run: (body: object = {}, who: { token: string } = client) => cloud.post(`${own}/run`, body, who),
    runs: async () => (await cloud.get(`${policies}/${id}/runs`, client)).body.results,
  };
}

const taskOf = async (id: string) => (await cloud.get(`/cloud/v1/tasks/${id}`, client)).body;
const ended = async (id: string) => (await cloud.get(`/cloud/v1/tasks/${id}?wait=20`, client)).body;

async function snapshotsOf(volumeId: string) {
  const path = `/cloud/v1/snapshots/${client.projectId}/1?volume_id=${volumeId}`;
  return (await cloud.get(path, client)).body.results as { id: string; name: string; tags: object[] }[];
}

describe('a run that a client requests', () => {
  it('creates the snapshots of each schedule, with a task that ends when they are done', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([nightly, weekly], [volume]);
    const { status, body } = await policy.run();
    expect([status, body.tasks.length]).toEqual([200, 2]);
    for (const [i, id] of body.tasks.entries()) {
      expect(await ended(id)).toMatchObject({
        state: 'FINISHED',
        task_type: 'run_lifecyclepolicy',
        error: null,
        data: { lifecycle_policy_id: policy.id, schedule_id: policy.schedules[i], run_id: expect.any(String) },
      });
    }
    const runs = await policy.runs();
    expect(runs.map((run: { task_id: string }) => run.task_id).toSorted()).toEqual(body.tasks.toSorted());
    for (const run of runs) expect(run).toMatchObject({ snapshots: [{ volume_id: volume }], failed: [], pending: [] });
    const snapshots = await snapshotsOf(volume);
    expect(snapshots).toHaveLength(2);
    expect(snapshots.map(({ name }) => name)).toContain('at 2026-06-01T12:00:00Z');
    expect(snapshots[0]!.tags).toContainEqual({
      key: 'created_by_policy',
      value: String(policy.id),
      read_only: true,
    });
  });

  it('does not move the next run, and counts for retention like any other', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([nightly], [volume]);
    const next = async () => {
      const path = `/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${policy.id}/forecast?count=1`;
      return (await cloud.get(path, client)).body.runs[0].utc;
    };
    const before = await next();
    const made: string[] = [];
    // The clock does not move: each run needs an instant of its own.
    for (let i = 0; i < 3; i++) {
      const task = (await policy.run()).body.tasks[0];
      expect((await ended(task)).state).toBe('FINISHED');
      made.push((await policy.runs())[0].snapshots[0].snapshot_id);
    }
    await expect
      .poll(async () => (await snapshotsOf(volume)).map(({ id }) => id).toSorted())
      .toEqual(made.slice(1).toSorted());
    expect(await next()).toBe(before);
  });

  it('of chosen schedules runs only those', async () => {
    const policy = await newPolicy([nightly, weekly], [await newVolume()]);
    const { body } = await policy.run({ schedule_ids: [policy.schedules[1]] });
    expect((await ended(body.tasks[0])).state).toBe('FINISHED');
    expect((await policy.runs()).map((run: { schedule_id: string }) => run.schedule_id)).toEqual([policy.schedules[1]]);
  });

  it('without volumes is done at once', async () => {
    const policy = await newPolicy([nightly], []);
    expect((await taskOf((await policy.run()).body.tasks[0])).state).toBe('FINISHED');
    expect(await policy.runs()).toMatchObject([{ snapshots: [], done_at: expect.any(String) }]);
  });

  it('ends in ERROR when a snapshot fails or exceeds a quota, and the other volumes get theirs', async () => {
    const [bad, good] = [await newVolume(), await newVolume()];
    const policy = await newPolicy([nightly], [bad, good]);
    faults.set(bad, 'fail');
    const task = await ended((await policy.run()).body.tasks[0]);
    expect(task).toMatchObject({
      state: 'ERROR',
      error: `1 of 2 snapshots failed: volume ${bad}: The disk is broken.`,
    });
    expect((await policy.runs())[0]).toMatchObject({ snapshots: [{ volume_id: good }], failed: [{ volume_id: bad }] });
    faults.clear();
    const limit = { region_id: 1, volume_snapshots_count_limit: 1 };
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, limit);
    const refused = await ended((await policy.run()).body.tasks[0]);
    expect(refused).toMatchObject({ state: 'ERROR', error: expect.stringContaining('volume_snapshots_count') });
  });

  it('is repeated with the same idempotency key without a second run', async () => {
    const policy = await newPolicy([nightly], [await newVolume()]);
    const path = `/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${policy.id}/run`;
    const send = () => cloud.request('POST', path, {}, { ...client, headers: { 'idempotency-key': 'one' } });
    const [first, second] = [await send(), await send()];
    expect(second.body).toEqual(first.body);
    expect(await policy.runs()).toHaveLength(1);
  });
});

describe('a run that has not ended', () => {
  it('locks its schedule for other requests, and its task fails when the policy is deleted', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([nightly], [volume]);
    faults.set(volume, 'hang');
    const { tasks } = (await policy.run()).body;
    await expect.poll(async () => (await taskOf(tasks[0])).state).toBe('RUNNING');
    const again = await policy.run();
    expect(again).toMatchObject({
      status: 409,
      body: { exception_class: 'ResourceLocked', errors: [{ path: 'task_id', message: tasks[0] }] },
    });
    expect((await cloud.delete(policy.path, client)).status).toBe(204);
    expect(await taskOf(tasks[0])).toMatchObject({ state: 'ERROR', error: 'the lifecycle policy was deleted' });
  });
});

describe('a request for a run', () => {
  it('is refused for a paused policy, one without a schedule, unknown schedules, and readers', async () => {
    const policy = await newPolicy([nightly], []);
    const unknown = '00000000-0000-4000-8000-000000000000';
    expect(await policy.run({ schedule_ids: [unknown] })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'schedule_ids.0', message: `schedule ${unknown} not found` }] },
    });
    expect((await policy.run({ schedule_ids: [] })).status).toBe(400);
    const token = await cloud.newToken(client.clientId, 'reader');
    expect((await policy.run({}, { token })).status).toBe(403);
    await cloud.patch(policy.path, { status: 'paused' }, client);
    expect(await policy.run()).toMatchObject({
      status: 409,
      body: { exception_class: 'Conflict', message: `lifecycle policy ${policy.id} is paused; resume it first` },
    });
    const empty = await newPolicy([], []);
    expect((await empty.run()).body.message).toBe(`lifecycle policy ${empty.id} has no schedule`);
    expect((await (await newPolicy([nightly], [])).run({}, await cloud.newClient())).status).toBe(404);
  });
});
