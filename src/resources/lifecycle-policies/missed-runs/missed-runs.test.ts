/** Runs that are late or skipped: what is recorded, when the client is notified, and how often. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { transaction } from '../../../platform/db.ts';
import { silentLogger } from '../../../platform/log.ts';
import { startDueRuns } from '../runs/reconcile.ts';

const cloud = useCloudyard({ driver: null });
const hour = 3600;
let client: Awaited<ReturnType<typeof cloud.newClient>>;
let path: string;

beforeEach(async () => {
  cloud.clock.set(new Date('2026-06-01T12:30:00Z'));
  client = await cloud.newClient();
  path = `/cloud/v1/lifecycle_policy/${client.projectId}/1`;
});
afterEach(async () => {
  for (const { id } of (await cloud.get(path, client)).body.results) await cloud.delete(`${path}/${id}`, client);
});

async function newPolicy(schedules: object[] = [{ type: 'cron', minute: '0' }], more = {}): Promise<number> {
  const { body } = await cloud.post(path, { action: 'volume_snapshot', name: 'hourly', schedules, ...more }, client);
  return body.id;
}

/** What each process does every few seconds, and what the worker of the region does. */
const report = () => cloud.services.missedRuns.report();
const run = () => {
  const { missedRuns, metrics, snapshots } = cloud.services;
  const notify = async () => {};
  return startDueRuns({
    ...{ db: cloud.db, clock: cloud.clock, log: silentLogger, regionIds: [1], snapshots, notify, missedRuns, metrics },
  } as never);
};

async function messages(): Promise<any[]> {
  const { body } = await cloud.get(`/cloudyard/v1/clients/${client.clientId}/notifications`, client);
  return body.results.filter(({ type }: { type: string }) => type === 'lifecycle_policy_run_missed');
}

async function metric(line: string): Promise<number> {
  const { body } = await cloud.get('/metrics');
  return Number(new RegExp(`^${line.replace(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(body)![1]);
}

describe('a schedule whose region has no worker', () => {
  it('is reported once it is late, with a metric that falls when it has run', async () => {
    const id = await newPolicy();
    cloud.clock.set(new Date('2026-06-01T13:04:59Z'));
    await report();
    expect(await messages()).toEqual([]);
    expect(await metric('cloudyard_schedules_late')).toBe(0);
    cloud.clock.set(new Date('2026-06-01T13:05:01Z'));
    await report();
    await report();
    const [message, ...others] = await messages();
    expect(others).toEqual([]);
    expect(message).toMatchObject({
      subject: 'Lifecycle policy hourly: runs were missed (1 late)',
      data: {
        policy_id: id,
        project_id: client.projectId,
        region_id: 1,
        late_count: 1,
        skipped_count: 0,
        missed: [{ due_at: '2026-06-01T13:00:00Z', started_at: null, skipped: 0 }],
      },
    });
    expect(await metric('cloudyard_schedules_late')).toBe(1);
    await run();
    expect(await metric('cloudyard_schedules_late')).toBe(0);
  });

  it('is as late as its next run, however long a snapshot has been due to expire', async () => {
    const volumes = `/cloud/v1/volumes/${client.projectId}/1`;
    await cloud.post(volumes, { name: 'data', size: 1, source: 'new-volume' }, client);
    const [{ id }] = (await cloud.get(volumes, client)).body.results;
    await newPolicy(undefined, { volume_ids: [id] });
    cloud.clock.set(new Date('2026-06-01T13:00:00Z'));
    await run();
    const { rowCount } = await cloud.db.$client.query(
      `update lifecycle_policy_run_volumes set expire_at = '2026-06-01T12:00:00Z' where volume_id = $1`,
      [id],
    );
    expect(rowCount).toBe(1);
    cloud.clock.set(new Date('2026-06-01T13:30:00Z'));
    expect(await metric('cloudyard_schedule_lateness_seconds')).toBe(0);
    cloud.clock.set(new Date('2026-06-01T14:10:00Z'));
    expect(await metric('cloudyard_schedule_lateness_seconds')).toBe(600);
  });

  it('makes one message for a policy in an hour, however many schedules are late and for however long', async () => {
    await newPolicy([
      { type: 'cron', minute: '0' },
      { type: 'cron', minute: '15' },
      { type: 'interval', minutes: 20 },
    ]);
    for (let minute = 0; minute <= 59; minute++) {
      cloud.clock.set(new Date(Date.UTC(2026, 5, 1, 13, minute, 30)));
      await report();
    }
    expect(await messages()).toHaveLength(1);
  });

  it('is reported by one process only, however many scan at the same time', async () => {
    await newPolicy();
    cloud.clock.advance(2 * hour);
    await Promise.all(Array.from({ length: 6 }, report));
    expect(await messages()).toHaveLength(1);
  });

  it('is not reported while its policy is paused, or after the policy was deleted', async () => {
    const paused = await newPolicy();
    await cloud.patch(`${path}/${paused}`, { status: 'paused' }, client);
    const deleted = await newPolicy();
    await cloud.delete(`${path}/${deleted}`, client);
    cloud.clock.advance(3 * hour);
    await report();
    expect(await messages()).toEqual([]);
  });
});

describe('a run after downtime', () => {
  it('is reported with the number of instants that it replaced', async () => {
    const id = await newPolicy();
    cloud.clock.set(new Date('2026-06-01T16:20:00Z'));
    const [late, skipped] = ['late', 'skipped'].map((kind) => `cloudyard_schedule_missed_runs_total{kind="${kind}"}`);
    const before = [await metric(late!), await metric(skipped!)];
    await run();
    await report();
    expect((await messages()).map(({ data }) => data)).toMatchObject([
      {
        late_count: 1,
        skipped_count: 3,
        missed: [{ due_at: '2026-06-01T13:00:00Z', started_at: '2026-06-01T16:20:00Z', skipped: 3 }],
      },
    ]);
    expect([await metric(late!), await metric(skipped!)]).toEqual([before[0]! + 1, before[1]! + 3]);
    const { rows } = await cloud.db.$client.query(
      'select next_run_at from lifecycle_policy_schedules where policy_id = $1',
      [id],
    );
    expect(rows[0].next_run_at).toEqual(new Date('2026-06-01T17:00:00Z'));
  });

  it('that was reported as late is reported again when instants were skipped, after the window', async () => {
    await newPolicy();
    cloud.clock.set(new Date('2026-06-01T13:10:00Z'));
    await report();
    cloud.clock.set(new Date('2026-06-01T14:05:00Z'));
    await run();
    await report();
    expect(await messages()).toHaveLength(1);
    cloud.clock.set(new Date('2026-06-01T14:10:01Z'));
    await report();
    expect((await messages())[0].data).toMatchObject({ late_count: 1, skipped_count: 1 });
  });

  it('on time is not reported, and after a recovery a new miss is', async () => {
    await newPolicy();
    cloud.clock.set(new Date('2026-06-01T13:30:00Z'));
    await run();
    await report();
    for (const hours of [14, 15, 16]) {
      cloud.clock.set(new Date(Date.UTC(2026, 5, 1, hours, 0, 1)));
      await run();
      await report();
    }
    expect(await messages()).toHaveLength(1);
    cloud.clock.set(new Date('2026-06-01T17:06:00Z'));
    await report();
    expect(await messages()).toHaveLength(2);
  });

  it('counts at most a thousand instants', async () => {
    await newPolicy([{ type: 'cron', minute: '*' }]);
    cloud.clock.advance(30 * 24 * hour);
    await run();
    await report();
    expect((await messages())[0].data).toMatchObject({ skipped_count: 1000 });
    const { rows } = await cloud.db.$client.query(
      'select next_run_at > $1::timestamptz as later from lifecycle_policy_schedules',
      [cloud.clock.now()],
    );
    expect(rows).toEqual([{ later: true }]);
  });
});

describe('the list of missed runs', () => {
  const list = async (id: number) =>
    (await cloud.get(`/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${id}/missed_runs`, client)).body;

  it('has late runs and the instants that they replaced, newest first', async () => {
    const id = await newPolicy();
    cloud.clock.set(new Date('2026-06-01T16:20:00Z'));
    await run();
    cloud.clock.set(new Date('2026-06-01T17:30:00Z'));
    await report();
    const late = {
      due_at: '2026-06-01T13:00:00Z',
      started_at: '2026-06-01T16:20:00Z',
      skipped: 3,
      skipped_at: ['2026-06-01T14:00:00Z', '2026-06-01T15:00:00Z', '2026-06-01T16:00:00Z'],
    };
    expect(await list(id)).toMatchObject({
      count: 2,
      results: [{ due_at: '2026-06-01T17:00:00Z', started_at: null, skipped: 0, skipped_at: [] }, late],
    });
  });

  it('does not guess the skipped instants of a schedule that has changed since', async () => {
    const id = await newPolicy();
    cloud.clock.set(new Date('2026-06-01T16:20:00Z'));
    await run();
    const { body } = await cloud.get(`${path}/${id}`, client);
    await cloud.patch(`/cloud/v1/schedule/${client.projectId}/1/${body.schedules[0].id}`, { minute: '*/7' }, client);
    expect((await list(id)).results).toMatchObject([{ skipped: 3, skipped_at: [] }]);
  });

  it('is empty after the clock was set back, and a process that still has the old time reports nothing again', async () => {
    const id = await newPolicy();
    const late = new Date('2026-06-01T13:30:00Z');
    cloud.clock.set(late);
    await report();
    const { lifecyclePolicies } = cloud.services;
    const earlier = new Date('2026-06-01T12:40:00Z');
    await transaction(cloud.db, (tx) => lifecyclePolicies.moveToPast(tx, earlier));
    await report();
    cloud.clock.set(earlier);
    await lifecyclePolicies.rescheduleAll();
    expect([(await list(id)).count, (await messages()).length]).toEqual([0, 1]);
    cloud.clock.set(late);
    await report();
    expect([(await list(id)).count, (await messages()).length]).toEqual([1, 2]);
  });

  it('of another client is not found', async () => {
    const id = await newPolicy();
    const other = await cloud.newClient();
    const answer = await cloud.get(`/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${id}/missed_runs`, other);
    expect(answer.status).toBe(404);
  });
});
