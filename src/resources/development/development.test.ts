import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { connect } from '../../platform/db.ts';
import { openDevelopmentClock } from '../../platform/development-clock.ts';
import { silentLogger } from '../../platform/log.ts';
import { resources } from '../list.ts';
import { createDevelopment } from './service.ts';
import { withMoveLock } from './store.ts';

const cloud = useCloudyard({ development: true, pollSeconds: 0.05 });
const closed = useCloudyard({ driver: null });
const clock = '/cloudyard/v1/dev/clock';
const faults = '/cloudyard/v1/dev/faults';
const move = (body: object) => cloud.post(clock, body);
const paths = ({ status, body }: Answer) => [status, ...(body.errors ?? []).map((e: { path: string }) => e.path)];
const nowOf = ({ body }: Answer) => Date.parse(body.now);

afterEach(async () => {
  await move({ real: true });
  await cloud.delete(faults);
});

async function newVolume(): Promise<string> {
  const body = { name: 'data', size: 1, source: 'new-volume' };
  const task = await cloud.ended(await cloud.post('/cloud/v1/volumes/1/1', body));
  expect(task.body.state).toBe('FINISHED');
  return task.body.created_resources.volumes[0];
}

describe('the clock', () => {
  it('can be set, continues from there, and can be reset', async () => {
    expect(nowOf(await move({ set: '2030-01-01T00:00:00Z' }))).toBe(Date.parse('2030-01-01T00:00:00Z'));
    const advanced = nowOf(await move({ advance_seconds: 3600 })) - Date.parse('2030-01-01T01:00:00Z');
    expect(advanced).toBeGreaterThanOrEqual(0);
    expect(advanced).toBeLessThan(60_000);
    expect(nowOf(await cloud.get(clock))).toBeGreaterThanOrEqual(Date.parse('2030-01-01T01:00:00Z'));
    const { headers } = await cloud.app.inject('/readyz');
    expect(headers.date).toMatch(/Jan 2030 01:/);
    const id = await newVolume();
    expect((await cloud.get(`/cloud/v1/volumes/1/1/${id}`)).body.created_at).toMatch(/^2030-01-01T01:/);
    expect(Math.abs(nowOf(await move({ real: true })) - Date.now())).toBeLessThan(5000);
  });

  it.each(['2030-01-01T00:00:00', '2030-01-01 02:00:00+02', '2029-12-31T19:00:00-0500'])(
    'can be set to %s',
    async (set) => {
      const late = nowOf(await move({ set })) - Date.parse('2030-01-01T00:00:00Z');
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThan(60_000);
    },
  );

  it('is the same for every process, within a second', async () => {
    const other = await openDevelopmentClock(cloud.db);
    expect(other.isMoving()).toBe(false);
    await move({ set: '2031-01-01T00:00:00Z' });
    await expect.poll(() => other.now().getUTCFullYear(), { timeout: 1000, interval: 20 }).toBe(2031);
    expect(other.isMoving()).toBe(true);
    other.stop();
  });

  it('advances from the time that another process has just set', async () => {
    const other = await openDevelopmentClock(cloud.db);
    await other.setOffset(Date.parse('2032-01-01T00:00:00Z') - Date.now());
    const advanced = nowOf(await move({ advance_seconds: 60 })) - Date.parse('2032-01-01T00:01:00Z');
    expect(advanced).toBeGreaterThanOrEqual(0);
    expect(advanced).toBeLessThan(60_000);
    other.stop();
  });

  it('advances through a month of a policy, run by run', async () => {
    const volume = await newVolume();
    await move({ set: '2027-03-01T00:00:00Z' });
    const schedules = [
      { type: 'cron', hour: '3', max_quantity: 5, timezone: 'Europe/Luxembourg', retention_time: { days: 3 } },
    ];
    const body = { action: 'volume_snapshot', name: 'nightly', schedules, volume_ids: [volume] };
    const policy = (await cloud.post('/cloud/v1/lifecycle_policy/1/1', body)).body;
    expect((await move({ advance_seconds: 31 * 86_400 })).status).toBe(200);
    const { results } = (await cloud.get(`/cloud/v1/lifecycle_policy/1/1/${policy.id}/runs`)).body;
    expect(results).toHaveLength(31);
    expect(results.at(0).due_at).toBe('2027-03-31T01:00:00Z');
    expect(results.at(-1).due_at).toBe('2027-03-01T02:00:00Z');
    for (const run of results) expect(run).toMatchObject({ snapshots: [{ volume_id: volume }], failed: [] });
    // The retention time expires snapshots older than three days between runs.
    expect(results[0].started_at).toBe(results[0].due_at);
    const kept = (await cloud.get(`/cloud/v1/snapshots/1/1?volume_id=${volume}`)).body.results;
    expect(kept.map(({ status }: any) => status)).toEqual(Array(3).fill('available'));

    // A jump ahead starts one run; after a jump back, the schedule waits for its next time.
    await move({ set: '2027-04-10T00:00:00Z' });
    const runs = async () => (await cloud.get(`/cloud/v1/lifecycle_policy/1/1/${policy.id}/runs`)).body.count;
    expect(await runs()).toBe(32);
    await move({ set: '2027-03-20T00:00:00Z' });
    expect(await runs()).toBe(19);
    await move({ advance_seconds: 86_400 });
    expect(await runs()).toBe(20);
    await cloud.delete(`/cloud/v1/lifecycle_policy/1/1/${policy.id}`);
  }, 60_000);

  it('can be set back, and policies continue from there, regardless of their later runs', async () => {
    const volume = await newVolume();
    const snapshots = async () => (await cloud.get(`/cloud/v1/snapshots/1/1?volume_id=${volume}`)).body.results;
    await move({ set: '2028-06-01T00:00:30Z' });
    const schedules = [
      { type: 'cron', hour: '3', max_quantity: 2 },
      { type: 'interval', hours: 5, max_quantity: 2 },
    ];
    const body = { action: 'volume_snapshot', name: 'both', schedules, volume_ids: [volume] };
    const policy = (await cloud.post('/cloud/v1/lifecycle_policy/1/1', body)).body;
    const path = `/cloud/v1/lifecycle_policy/1/1/${policy.id}`;
    const runs = async () => (await cloud.get(`${path}/runs`)).body.results;
    await move({ advance_seconds: 3 * 86_400 });
    expect((await snapshots()).map((one: any) => one.status)).toEqual(Array(4).fill('available'));
    const later = await snapshots();

    await move({ set: '2028-05-01T00:00:00Z' });
    expect(await runs()).toEqual([]);
    expect((await cloud.get(`/cloud/v1/snapshots/1/1?lifecycle_policy_id=${policy.id}`)).body.count).toBe(4);
    for (const { id } of policy.schedules) {
      expect((await cloud.get(`/cloud/v1/snapshots/1/1?schedule_id=${id}`)).body.count).toBe(0);
    }
    const back = await snapshots();
    expect(back.map(({ id, tags }: any) => [id, tags])).toEqual(later.map(({ id, tags }: any) => [id, tags]));
    for (const { created_at } of back) expect(Date.parse(created_at) <= Date.parse('2028-05-01T00:00:01Z')).toBe(true);

    await cloud.ended(await cloud.post('/cloud/v1/snapshots/1/1', { name: 'by hand', volume_id: volume }));
    expect((await snapshots()).at(-1).name).toBe('by hand');
    await move({ advance_seconds: 3 * 86_400 });
    const due = (await runs()).map(({ due_at }: any) => due_at);
    expect(due.filter((at: string) => at.endsWith('T03:00:00Z'))).toHaveLength(3);
    expect(due.at(-1)).toBe('2028-05-01T03:00:00Z');
    expect(due).toHaveLength(3 + 14);
    // Snapshots from after the new time no longer belong to the policy: they stay, and the four newest are the policy's.
    await expect
      .poll(async () => (await snapshots()).map((one: any) => one.status))
      .toEqual(Array(9).fill('available'));
    expect((await snapshots()).slice(0, 4).map(({ id }: any) => id)).toEqual(later.map(({ id }: any) => id));

    await move({ real: true });
    expect(await runs()).toEqual([]);
    expect((await snapshots()).slice(0, 4).map(({ id }: any) => id)).toEqual(later.map(({ id }: any) => id));
    await cloud.delete(path);
  }, 60_000);

  it('can be set back, and runs that were missed later are missed again', async () => {
    const body = { action: 'volume_snapshot', name: 'hourly', schedules: [{ type: 'cron', minute: '0' }] };
    await move({ set: '2028-07-01T00:30:00Z' });
    const { id } = (await cloud.post('/cloud/v1/lifecycle_policy/1/1', body)).body;
    const missed = async () => (await cloud.get(`/cloudyard/v1/lifecycle_policy/1/1/${id}/missed_runs`)).body.count;
    const messages = async () => {
      await cloud.services.missedRuns.report();
      const notifications = '/cloudyard/v1/clients/1/notifications?type=lifecycle_policy_run_missed';
      const { results } = (await cloud.get(notifications)).body;
      return results.filter(({ data }: any) => data.policy_id === id).length;
    };
    for (const count of [1, 2]) {
      await move({ set: '2028-07-02T00:30:00Z' });
      expect([await missed(), await messages()]).toEqual([1, count]);
      await move({ set: '2028-07-01T00:40:00Z' });
      expect(await missed()).toBe(0);
    }
    await cloud.delete(`/cloud/v1/lifecycle_policy/1/1/${id}`);
  });

  it('reports that work hangs', async () => {
    const volume = await newVolume();
    await move({ set: '2027-05-01T00:00:00Z' });
    const schedules = [{ type: 'cron', hour: '3', max_quantity: 5 }];
    const body = { action: 'volume_snapshot', name: 'nightly', schedules, volume_ids: [volume] };
    const policy = (await cloud.post('/cloud/v1/lifecycle_policy/1/1', body)).body;
    const day = { advance_seconds: 86_400 };
    expect((await move(day)).body).toEqual({ now: expect.stringMatching(/^2027-05-02T00:/), complete: true });
    await cloud.post(faults, { resource: 'snapshot', operation: 'apply', mode: 'stall' });
    expect((await move(day)).body.complete).toBe(false);
    await cloud.delete(faults);
    await cloud.delete(`/cloud/v1/lifecycle_policy/1/1/${policy.id}`);
  });

  it('reports that it skipped work after the time limit', async () => {
    const own = await openDevelopmentClock(cloud.db);
    const idempotency = {
      auditedTransaction: (_db: unknown, _by: unknown, work: (...of: object[]) => object) => work({}, {}),
    };
    const inASecond = async () => new Date(own.now().getTime() + 1000);
    const development = createDevelopment({
      ...{ db: cloud.db, clock: own, idempotency: idempotency as never, moveTimeoutMs: 50 },
      ...{ policies: {} as never, snapshots: {} as never, runs: { nextEvent: inASecond, countOpen: async () => 0 } },
    });
    const before = own.now().getTime();
    const moved = await development.moveClock({} as never, { advance_seconds: 10_000_000 });
    expect(moved.complete).toBe(false);
    expect(Date.parse(moved.now) - before).toBeGreaterThan(9_999_998_000);
    own.stop();
  });

  it('is moved by one request at a time, of all servers', async () => {
    const other = connect({ ...cloud.connection, log: silentLogger });
    const refused = await withMoveLock(other, () => move({ advance_seconds: 1 }));
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining('another request') } });
    expect((await move({ advance_seconds: 1 })).status).toBe(200);
    await other.$client.end();
  });

  it('advances by fractions of a second, and by zero to read the time', async () => {
    const before = nowOf(await move({ set: '2029-01-01T00:00:00Z' }));
    expect(nowOf(await move({ advance_seconds: 0 })) - before).toBeLessThan(60_000);
    expect((await move({ advance_seconds: 0.5 })).status).toBe(200);
    expect((await move({ advance_seconds: 1.192092896e-7 })).status).toBe(200);
  });

  it.each<[object, (string | number)[]]>([
    [{}, [400, '']],
    [{ advance_seconds: 1, real: true }, [400, 'real']],
    [{ advance_seconds: -1 }, [400, 'advance_seconds']],
    [{ advance_seconds: 1e12 }, [400, 'advance_seconds']],
    [{ advance_seconds: '1' }, [400, 'advance_seconds']],
    [{ set: 'noon' }, [400, 'set']],
    [{ set: '1960-01-01T00:00:00Z' }, [400, 'set']],
    [{ set: '2026-12-31T23:59:60Z' }, [400, 'set']],
    [{ real: false }, [400, 'real']],
    [{ back: 1 }, [400, 'back']],
  ])('refuses %j', async (body, expected) => {
    expect(paths(await move(body))).toEqual(expected);
  });
});

describe('faults', () => {
  const create = (body: object) => cloud.post(faults, { operation: 'apply', mode: 'fail', ...body });
  const volume = { name: 'data', size: 1, source: 'new-volume' };

  it('fail the requested number of times with the requested message', async () => {
    const created = await create({ resource: 'volume', count: 2, message: 'No disk for you.' });
    const fault = { resource: 'volume', operation: 'apply', mode: 'fail', count: 2, seconds: null };
    expect(created.body).toEqual({ ...fault, id: expect.any(Number), remaining: 2, message: 'No disk for you.' });
    for (let i = 0; i < 2; i++) {
      const task = await cloud.ended(await cloud.post('/cloud/v1/volumes/1/1', volume));
      expect(task.body).toMatchObject({ state: 'ERROR', error: 'No disk for you.' });
    }
    await newVolume();
    expect((await cloud.get(faults)).body).toMatchObject({ count: 1, results: [{ remaining: 0 }] });
    expect((await cloud.delete(faults)).status).toBe(204);
    expect((await cloud.get(faults)).body).toEqual({ count: 0, results: [] });
  });

  it('are cleared one by one', async () => {
    const [first, second] = [await create({ resource: 'volume' }), await create({ resource: 'snapshot' })];
    expect((await cloud.delete(`${faults}/${first.body.id}`)).status).toBe(204);
    expect((await cloud.get(faults)).body.results).toEqual([second.body]);
    await newVolume();
    expect((await cloud.delete(`${faults}/${first.body.id}`)).status).toBe(404);
  });

  it('delay operations', async () => {
    await create({ resource: 'volume', mode: 'slow', seconds: 1 });
    const before = performance.now();
    await newVolume();
    expect(performance.now() - before).toBeGreaterThan(1000);
  });

  it('stall operations until they are cleared', async () => {
    const id = await newVolume();
    await create({ resource: 'snapshot', mode: 'stall' });
    const answer = await cloud.post('/cloud/v1/snapshots/1/1', { name: 'stalled', volume_id: id });
    const state = async () => (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.state;
    await expect.poll(state).toBe('RUNNING');
    await cloud.afterDuties();
    expect(await state()).toBe('RUNNING');
    await cloud.delete(faults);
    await expect.poll(state).toBe('FINISHED');
  });

  it('apply to deletions, and only to the named resource', async () => {
    const id = await newVolume();
    await create({ resource: 'volume', operation: 'remove' });
    await create({ resource: 'file_share' });
    expect((await cloud.ended(await cloud.delete(`/cloud/v1/volumes/1/1/${id}`))).body.state).toBe('ERROR');
    expect((await cloud.ended(await cloud.delete(`/cloud/v1/volumes/1/1/${id}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(faults)).body.results.map((fault: any) => fault.remaining)).toEqual([0, 1]);
  });

  it.each<[object, string[]]>([
    [{ resource: 'toaster' }, ['resource']],
    [{ resource: 'registry' }, ['resource']],
    [{}, ['resource']],
    [{ resource: 'volume', operation: 'explode' }, ['operation']],
    [{ resource: 'volume', mode: 'maybe' }, ['mode']],
    [{ resource: 'volume', count: 0 }, ['count']],
    [{ resource: 'volume', seconds: -1 }, ['seconds']],
    [{ resource: 'volume', message: '' }, ['message']],
  ])('refuses %j', async (body, named) => {
    expect(paths(await create(body))).toEqual([400, ...named]);
  });

  it.each(resources.flatMap(({ faults }) => (faults ? [[faults]] : [])))('of %s are accepted', async (resource) => {
    expect((await create({ resource })).status).toBe(200);
  });
});

describe('access', () => {
  const requests = [
    ['GET', clock, undefined],
    ['POST', clock, { advance_seconds: 1 }],
    ['POST', faults, { resource: 'volume', operation: 'apply', mode: 'fail' }],
    ['GET', faults, undefined],
    ['DELETE', faults, undefined],
  ] as const;

  it.each(requests)(
    '%s %s requires an operator admin and returns 404 outside development mode',
    async (method, path, body) => {
      const { token } = await cloud.newClient('admin');
      const member = await cloud.newToken(1, 'member');
      expect((await cloud.request(method, path, body, { token: null })).status).toBe(401);
      expect((await cloud.request(method, path, body, { token })).status).toBe(403);
      expect((await cloud.request(method, path, body, { token: member })).status).toBe(403);
      const absent = await closed.request(method, path, body);
      expect(absent).toMatchObject({ status: 404, body: { message: expect.stringContaining('CLOUDYARD_DEV=1') } });
    },
  );
});
