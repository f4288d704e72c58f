/** Lifecycle policies over time: the tests set the clock, everything else runs as in production. */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createFaultyVolumeDriver } from '../../../../test/faulty-volume-driver.ts';
import { useCloudyard } from '../../../../test/harness.ts';
import { silentLogger } from '../../../platform/log.ts';
import { startAndRequest } from './reconcile.ts';

const { driver, faults } = createFaultyVolumeDriver();
const cloud = useCloudyard({ driver: null, volumeDriver: driver, pollSeconds: 0.05 });
const day = 86_400;
let client: { clientId: number; projectId: number; token: string };
let volumesPath: string;
let policiesPath: string;

beforeAll(async () => {
  cloud.clock.set(new Date('2026-06-01T12:00:00Z'));
  await cloud.startWorker();
});

beforeEach(async () => {
  faults.clear();
  client = await cloud.newClient();
  volumesPath = `/cloud/v1/volumes/${client.projectId}/1`;
  policiesPath = `/cloud/v1/lifecycle_policy/${client.projectId}/1`;
});

/** Otherwise the runs of these policies would show up in the next test. */
afterEach(async () => {
  for (const { id } of (await cloud.get(policiesPath, client)).body.results) {
    await cloud.delete(`${policiesPath}/${id}`, client);
  }
});

/** The client's notifications about failed runs. */
async function messages() {
  const { body } = await cloud.get(`/cloudyard/v1/clients/${client.clientId}/notifications`, client);
  return body.results.filter(({ type }: { type: string }) => type === 'lifecycle_policy_run_failed');
}

async function newVolume(name = 'data', more = {}): Promise<string> {
  const task = await cloud.ended(
    await cloud.post(volumesPath, { name, size: 1, source: 'new-volume', ...more }, client),
    client,
  );
  return task.body.created_resources.volumes[0];
}

async function newPolicy(schedules: object[], volume_ids: string[]) {
  const answer = await cloud.post(
    policiesPath,
    { action: 'volume_snapshot', name: 'policy', schedules, volume_ids },
    client,
  );
  expect(answer.status).toBe(200);
  const { id } = answer.body as { id: number };
  const path = `${policiesPath}/${id}`;
  return {
    id,
    schedules: answer.body.schedules as { id: string }[],
    path,
    runs: async () => (await cloud.get(`${path}/runs`, client)).body.results,
    patch: (body: object) => cloud.patch(path, body, client),
    put: (what: string, ids: string[]) => cloud.request('PUT', `${path}/${what}`, { volume_ids: ids }, client),
  };
}

/** Snapshots of a volume, oldest first. */
async function snapshotsOf(volumeId: string) {
  const { body } = await cloud.get(`/cloud/v1/snapshots/${client.projectId}/1?volume_id=${volumeId}`, client);
  return body.results as { id: string; name: string; status: string; created_at: string; tags: object[] }[];
}

async function eventually(condition: () => Promise<unknown>): Promise<void> {
  await expect.poll(condition, { timeout: 30_000, interval: 50 }).toBe(true);
}

/** Waits until all due runs have ended. */
const idle = () => eventually(async () => (await cloud.services.lifecyclePolicyRuns.countOpen([1])) === 0);
const gone = () =>
  eventually(async () => {
    const { rows } = await cloud.db.$client.query(`select from snapshots where deleted_at is not null`);
    return rows.length === 0;
  });

/** Advances the clock from event to event and waits for each one. */
async function pass(seconds: number): Promise<void> {
  const until = cloud.clock.now().getTime() + seconds * 1000;
  for (;;) {
    const next = await cloud.services.lifecyclePolicyRuns.nextEvent([1]);
    if (!next || next.getTime() > until) break;
    if (next > cloud.clock.now()) cloud.clock.set(next);
    await idle();
  }
  cloud.clock.set(new Date(until));
  await gone();
}

const hourly = { type: 'interval', hours: 1 };

describe('over time', () => {
  it('a daily schedule takes one snapshot a day for a week and keeps the newest', async () => {
    cloud.clock.set(new Date('2026-07-01T12:00:00Z'));
    const [first, second] = [await newVolume('first'), await newVolume('second')];
    const template = '{volume_id} of {lifecycle_policy_id} by {schedule_id} at {scheduled_at}';
    const policy = await newPolicy(
      [{ type: 'cron', hour: '3', timezone: 'Europe/Berlin', max_quantity: 3, resource_name_template: template }],
      [first, second],
    );
    await pass(7 * day);
    const left = await snapshotsOf(first);
    const { id } = policy.schedules[0]!;
    expect(left.map(({ name }) => name)).toEqual(
      ['06', '07', '08'].map((d) => `${first} of ${policy.id} by ${id} at 2026-07-${d}T01:00:00Z`),
    );
    expect(left[0]!.tags).toEqual([{ key: 'created_by_policy', value: String(policy.id), read_only: true }]);
    expect(await snapshotsOf(second)).toHaveLength(3);
    const runs = await policy.runs();
    expect(runs).toHaveLength(7);
    expect(runs[0]).toEqual({
      id: expect.any(String),
      schedule_id: id,
      due_at: '2026-07-08T01:00:00Z',
      started_at: '2026-07-08T01:00:00Z',
      done_at: expect.stringMatching(/Z$/),
      snapshots: expect.arrayContaining([{ volume_id: first, snapshot_id: left[2]!.id }]),
      expired: expect.arrayContaining([{ volume_id: first, snapshot_id: expect.any(String) }]),
      failed: [],
      pending: [],
      task_id: null,
    });
    expect(runs[0].snapshots).toHaveLength(2);
    expect(runs[0].expired).toHaveLength(2);
    const listed = await cloud.get(
      `/cloud/v1/snapshots/${client.projectId}/1?lifecycle_policy_id=${policy.id}&schedule_id=${id}`,
      client,
    );
    expect(listed.body.count).toBe(6);
    expect(await messages()).toEqual([]);
  });

  it('the retention time expires snapshots between runs, but never the last successful one', async () => {
    const volume = await newVolume();
    const policy = await newPolicy(
      [{ type: 'interval', days: 1, max_quantity: 10, retention_time: { hours: 30 } }],
      [volume],
    );
    await pass(2 * day + 60);
    expect(await snapshotsOf(volume)).toHaveLength(2);
    await pass(6 * 3600);
    expect(await snapshotsOf(volume)).toHaveLength(1);
    const [newest] = await snapshotsOf(volume);
    await policy.put('add_volumes_to_policy', []);
    faults.set(volume, 'fail');
    await pass(5 * day);
    expect((await snapshotsOf(volume)).map(({ id }) => id)).toEqual([newest!.id]);
    faults.clear();
    await pass(day);
    const [after, ...more] = await snapshotsOf(volume);
    expect(more).toEqual([]);
    expect(after!.id).not.toBe(newest!.id);
    expect((await policy.runs())[0].expired).toEqual([{ volume_id: volume, snapshot_id: newest!.id }]);
  });

  it('a stored retention time beyond the year 9999 expires nothing, and the number is still limited', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([{ ...hourly, max_quantity: 1, retention_time: { weeks: 1 } }], [volume]);
    // Earlier releases accepted it.
    await cloud.db.$client.query(
      `update lifecycle_policy_schedules set retention_seconds = 604800000000,
         given = jsonb_set(given, '{retention_time,weeks}', '1000000') where policy_id = $1`,
      [policy.id],
    );
    await pass(2 * 3600);
    await policy.patch({ status: 'paused' });
    await policy.patch({ status: 'active' });
    await pass(2 * 3600);
    expect(await snapshotsOf(volume)).toHaveLength(1);
    const runs = await policy.runs();
    expect(runs).toHaveLength(4);
    for (const run of runs) expect(run).toMatchObject({ failed: [], pending: [], done_at: expect.any(String) });
  });

  it('schedules of one volume retain their snapshots separately', async () => {
    const volume = await newVolume();
    await newPolicy(
      [
        { ...hourly, max_quantity: 1 },
        { type: 'interval', hours: 2, max_quantity: 3 },
      ],
      [volume],
    );
    await pass(8 * 3600);
    expect(await snapshotsOf(volume)).toHaveLength(4);
  });

  it('a paused policy neither takes nor expires snapshots, and resuming starts no run', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([{ ...hourly, retention_time: { minutes: 90 }, max_quantity: 5 }], [volume]);
    await pass(2 * 3600 + 60);
    expect(await policy.runs()).toHaveLength(2);
    await policy.patch({ status: 'paused' });
    await pass(day + 600);
    expect(await snapshotsOf(volume)).toHaveLength(2);
    await policy.patch({ status: 'active' });
    await idle();
    expect(await policy.runs()).toHaveLength(2);
    await pass(3600);
    expect(await policy.runs()).toHaveLength(3);
    expect(await snapshotsOf(volume)).toHaveLength(1);
  });

  it('each schedule runs once after downtime', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([hourly, { type: 'interval', minutes: 50 }], [volume]);
    const due = new Date(cloud.clock.now().getTime() + 3600_000);
    cloud.clock.advance(10 * day);
    await idle();
    const runs = await policy.runs();
    expect(runs).toHaveLength(2);
    expect(runs[0].due_at).toBe(due.toISOString().replace('.000', ''));
    await pass(3600);
    expect((await policy.runs()).length).toBeGreaterThanOrEqual(4);
  });

  it('snapshots remain after their policy is deleted or their volume is removed from it', async () => {
    const [kept, taken] = [await newVolume(), await newVolume()];
    const schedule = { ...hourly, max_quantity: 5, retention_time: { hours: 2 } };
    const policy = await newPolicy([schedule], [kept, taken]);
    await pass(2 * 3600);
    await policy.put('remove_volumes_from_policy', [taken]);
    await pass(5 * 3600);
    expect(await snapshotsOf(taken)).toHaveLength(2);
    expect((await cloud.delete(policy.path, client)).status).toBe(204);
    const before = await snapshotsOf(kept);
    await pass(5 * day);
    expect(await snapshotsOf(kept)).toEqual(before);
    expect(before.length).toBeGreaterThan(0);
  });

  it('a schedule without volumes runs and takes no snapshots', async () => {
    const policy = await newPolicy([hourly], []);
    await pass(3600);
    expect(await policy.runs()).toMatchObject([
      { snapshots: [], failed: [], pending: [], done_at: expect.any(String) },
    ]);
  });
});

describe('failures', () => {
  it('a failed snapshot is cleaned up, other volumes get theirs, and the client is notified once', async () => {
    const [bad, good] = [await newVolume('bad'), await newVolume('good')];
    const policy = await newPolicy([{ ...hourly, max_quantity: 2 }], [bad, good]);
    await pass(2 * 3600);
    faults.set(bad, 'fail');
    await pass(3 * 3600);
    const runs = await policy.runs();
    expect(runs).toHaveLength(5);
    expect(runs[0]).toMatchObject({
      done_at: expect.any(String),
      snapshots: [{ volume_id: good }],
      failed: [{ volume_id: bad, message: 'The disk is broken.' }],
    });
    expect((await snapshotsOf(bad)).map(({ status }) => status)).toEqual(['available', 'available']);
    expect(await snapshotsOf(good)).toHaveLength(2);
    expect(await messages()).toMatchObject([
      {
        client_id: client.clientId,
        type: 'lifecycle_policy_run_failed',
        subject: 'Lifecycle policy policy: 1 of 2 snapshots failed',
        data: { policy_id: policy.id, run_id: runs[2].id, failed: [{ volume_id: bad }] },
      },
    ]);
    faults.clear();
    await pass(3600);
    faults.set(bad, 'fail');
    await pass(3600);
    expect(await messages()).toHaveLength(2);
  });

  it('a run over the quota reports it, and the next run proceeds', async () => {
    const volumes = [await newVolume(), await newVolume()];
    const quotas = `/cloudyard/v1/clients/${client.clientId}/quotas`;
    await cloud.patch(quotas, { region_id: 1, volume_snapshots_count_limit: 1 });
    const policy = await newPolicy([hourly], volumes);
    await pass(3600);
    const [run] = await policy.runs();
    expect(run.snapshots).toHaveLength(1);
    expect(run.failed).toEqual([
      { volume_id: expect.any(String), message: expect.stringContaining('volume_snapshots_count') },
    ]);
    expect(await messages()).toHaveLength(1);
    await cloud.patch(quotas, { region_id: 1, volume_snapshots_count_limit: 10 });
    await pass(3600);
    expect((await policy.runs())[0]).toMatchObject({ failed: [], snapshots: [{}, {}] });
  });

  it('a hanging snapshot blocks neither later runs nor other volumes', async () => {
    const [stuck, free] = [await newVolume(), await newVolume()];
    const policy = await newPolicy([hourly], [stuck, free]);
    faults.set(stuck, 'hang');
    for (const hour of [1, 2, 3]) {
      cloud.clock.advance(3600);
      await eventually(async () => {
        const runs = await policy.runs();
        return runs.length === hour && runs[0].snapshots.length === 1;
      });
    }
    const runs = await policy.runs();
    expect(runs).toHaveLength(3);
    for (const run of runs) {
      expect(run).toMatchObject({ done_at: null, snapshots: [{ volume_id: free }], pending: [{ volume_id: stuck }] });
    }
    faults.clear();
    await idle();
    for (const run of await policy.runs()) expect(run.snapshots).toHaveLength(2);
    await gone();
    expect(await snapshotsOf(stuck)).toHaveLength(2);
  });

  it('a deleted volume is skipped', async () => {
    const [deleted, remaining] = [await newVolume(), await newVolume()];
    const policy = await newPolicy([hourly], [deleted, remaining]);
    await cloud.ended(await cloud.delete(`${volumesPath}/${deleted}`, client), client);
    await pass(3600);
    expect(await policy.runs()).toMatchObject([{ snapshots: [{ volume_id: remaining }], failed: [] }]);
    expect((await cloud.get(`${policy.path}?need_volumes=true`, client)).body.volumes).toHaveLength(1);
  });
});

describe('concurrent scans for due schedules', () => {
  it('start one run per schedule', async () => {
    const volume = await newVolume();
    const policies = [];
    for (let i = 0; i < 30; i++)
      policies.push(await newPolicy([hourly, { type: 'interval', hours: 1, days: 0 }], [volume]));
    cloud.clock.advance(3600);
    const { services, db, clock } = cloud;
    const deps = { ...services, db, clock, log: silentLogger, notify: services.notifications.issue, regionIds: [1] };
    await Promise.all(Array.from({ length: 10 }, () => startAndRequest(deps)));
    await idle();
    for (const policy of policies) {
      const runs = await policy.runs();
      expect(runs).toHaveLength(2);
      for (const run of runs) expect(run.snapshots).toHaveLength(1);
    }
    expect(await snapshotsOf(volume)).toHaveLength(60);
  });

  it('do not repeat a run after the clock is set back', async () => {
    const volume = await newVolume();
    const policy = await newPolicy([{ type: 'cron', minute: '0' }], [volume]);
    const before = cloud.clock.now();
    await pass(2 * 3600);
    cloud.clock.set(before);
    await policy.patch({ status: 'paused' });
    await policy.patch({ status: 'active' });
    await pass(3 * 3600);
    expect(await policy.runs()).toHaveLength(3);
    expect((await snapshotsOf(volume)).map(({ name }) => name)).toHaveLength(2);
  });
});
