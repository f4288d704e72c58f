/** Schedules as resources of their own. The clock of the test decides when they run. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const policies = '/cloud/v1/lifecycle_policy/1/1';
const schedules = '/cloud/v1/schedule/1/1';
const unknownId = '11111111-1111-4111-8111-111111111111';
const start = new Date('2026-06-01T12:00:00Z');
const daily = { type: 'cron', hour: '3', minute: '30', timezone: 'Europe/Luxembourg' };
const hourly = { type: 'interval', hours: 6 };
const template = 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}';

let policy: number;
beforeEach(() => cloud.clock.set(start));

async function aSchedule(schedule: object, more: object = {}): Promise<string> {
  const body = { action: 'volume_snapshot', name: 'nightly', schedules: [schedule], ...more };
  const answer = await cloud.post(policies, body);
  policy = answer.body.id;
  return answer.body.schedules[0].id;
}
const patch = (id: string, body: unknown) => cloud.patch(`${schedules}/${id}`, body);
const paths = ({ status, body }: Answer) => [status, ...(body.errors ?? []).map((e: { path: string }) => e.path)];
async function nextRun(id: string): Promise<string | null> {
  const { rows } = await cloud.db.$client.query('select next_run_at from lifecycle_policy_schedules where id = $1', [
    id,
  ]);
  return rows[0].next_run_at?.toISOString() ?? null;
}
const isInPolicy = async (shown: object) =>
  expect((await cloud.get(`${policies}/${policy}`)).body.schedules).toEqual([shown]);

describe('a schedule', () => {
  it('is shown as in its policy', async () => {
    for (const given of [daily, { ...hourly, retention_time: { weeks: 2 }, max_quantity: 100 }]) {
      const shown = await cloud.get(`${schedules}/${await aSchedule(given)}`);
      expect(shown.body).toMatchObject({ ...given, owner: 'lifecycle_policy', owner_id: policy });
      await isInPolicy(shown.body);
    }
  });

  it('is changed by field: absent fields are kept, null removes, and a retention time is replaced whole', async () => {
    const id = await aSchedule({ ...daily, max_quantity: 7, retention_time: { days: 7, hours: 1 } });
    const before = (await cloud.get(`${schedules}/${id}`)).body;
    const retimed = await patch(id, { hour: '4', day_of_week: 'mon-fri' });
    expect(retimed.body).toEqual({ ...before, hour: '4', day_of_week: 'mon-fri' });
    expect((await patch(id, { retention_time: {}, max_quantity: 7 })).body).toEqual(retimed.body);
    const given = { day_of_week: null, resource_name_template: 'of {volume_id}', retention_time: { weeks: 1 } };
    const changed = await patch(id, given);
    const retention_time = { weeks: 1, days: null, hours: null, minutes: null };
    expect(changed.body).toEqual({ ...before, hour: '4', ...given, retention_time });
    const cleared = await patch(id, { resource_name_template: null, retention_time: null, timezone: null });
    const defaults = { resource_name_template: template, retention_time: null, timezone: 'UTC' };
    expect(cleared.body).toEqual({ ...before, hour: '4', ...defaults });
    await isInPolicy(cleared.body);
    expect((await cloud.get(`${schedules}/${id}`)).body).toEqual(cleared.body);
  });

  it('becomes one of the other type without the fields of the old one', async () => {
    const id = await aSchedule({ ...daily, max_quantity: 7 });
    expect(paths(await patch(id, { type: 'interval' }))).toEqual([400, '']);
    expect(paths(await patch(id, { hours: 6 }))).toEqual([400, 'hours']);
    const interval = (await patch(id, hourly)).body;
    expect(interval).toMatchObject({ id, ...hourly, max_quantity: 7 });
    expect(interval).not.toHaveProperty('hour');
    await isInPolicy(interval);
    const cron = (await patch(id, daily)).body;
    expect(cron).toMatchObject({ id, ...daily, max_quantity: 7 });
    await isInPolicy(cron);
  });

  it('is unchanged by an empty patch and by its own values', async () => {
    const id = await aSchedule({ ...daily, retention_time: { days: 1 } });
    const { id: _, owner: _o, owner_id: _i, user_id: _u, ...own } = (await cloud.get(`${schedules}/${id}`)).body;
    const before = await nextRun(id);
    for (const body of [{}, own, { hour: '3' }]) {
      expect(await patch(id, body)).toMatchObject({ status: 200, body: own });
    }
    expect(await nextRun(id)).toEqual(before);
  });

  it('has its changes in the audit log', async () => {
    const id = await aSchedule(daily);
    await patch(id, { hour: '5' });
    const { rows } = await cloud.db.$client.query(
      `select changes from audit_entries where operation = 'updateLifecyclePolicySchedule' order by id desc limit 1`,
    );
    expect(JSON.stringify(rows[0].changes)).toContain(id);
  });
});

describe('the next run of a changed schedule', () => {
  it('is the first instant after the change', async () => {
    const id = await aSchedule(daily);
    expect(await nextRun(id)).toBe('2026-06-02T01:30:00.000Z');
    await patch(id, { timezone: 'UTC' });
    expect(await nextRun(id)).toBe('2026-06-02T03:30:00.000Z');
    // 12:00 is now: it does not run.
    await patch(id, { hour: '12', minute: '0' });
    expect(await nextRun(id)).toBe('2026-06-02T12:00:00.000Z');
  });

  it('of an interval is a whole interval after the change', async () => {
    const id = await aSchedule(hourly);
    expect(await nextRun(id)).toBe('2026-06-01T18:00:00.000Z');
    cloud.clock.advance(5 * 3600 + 1800);
    await patch(id, { hours: 1 });
    expect(await nextRun(id)).toBe('2026-06-01T18:30:00.000Z');
    await patch(id, { hours: null, minutes: 30 });
    expect(await nextRun(id)).toBe('2026-06-01T18:00:00.000Z');
  });

  it('does not move with other fields, even when it is due', async () => {
    const id = await aSchedule(hourly);
    cloud.clock.advance(7 * 3600);
    await patch(id, { max_quantity: 9, retention_time: { days: 1 }, resource_name_template: 'x {volume_id}' });
    expect(await nextRun(id)).toBe('2026-06-01T18:00:00.000Z');
  });

  it('does not move when an interval of the same length is written in another way', async () => {
    const id = await aSchedule(hourly);
    cloud.clock.advance(3600);
    for (const body of [
      { hours: 6, minutes: 0, days: 0, weeks: 0 },
      { hours: 5, minutes: 60 },
    ]) {
      expect((await patch(id, body)).body).toMatchObject(body);
      expect(await nextRun(id)).toBe('2026-06-01T18:00:00.000Z');
    }
  });

  it('is none while the policy is paused, and follows the change when it is resumed', async () => {
    const id = await aSchedule(daily, { status: 'paused' });
    await patch(id, { hour: '11', timezone: 'UTC' });
    expect(await nextRun(id)).toBeNull();
    cloud.clock.advance(7 * 86_400);
    await cloud.patch(`${policies}/${policy}`, { status: 'active' });
    expect(await nextRun(id)).toBe('2026-06-09T11:30:00.000Z');
  });
});

describe('invalid input is refused with the field name and changes nothing', () => {
  const huge = 1_000_001;
  it.each<[string, unknown, string[]]>([
    ['a quantity of 0', { max_quantity: 0 }, ['max_quantity']],
    ['a quantity of 10,001', { max_quantity: 10_001 }, ['max_quantity']],
    ['a quantity of null', { max_quantity: null }, ['max_quantity']],
    ['fields of intervals', { weeks: 1, days: 1, hours: 1, minutes: 1 }, ['weeks', 'days', 'hours', 'minutes']],
    ['an interval too long', { type: 'interval', days: huge }, ['days']],
    ['a negative interval', { type: 'interval', days: -1 }, ['days']],
    ['an interval of 0', { type: 'interval', days: 0 }, ['']],
    ['an interval with a cron field', { type: 'interval', days: 1, hour: '3' }, ['hour']],
    ['an unknown type', { type: 'daily' }, ['type']],
    ['a type of null', { type: null }, ['type']],
    ['hour 24', { hour: '24' }, ['hour']],
    ['no field', { hour: null, minute: null }, ['']],
    ['a day that does not exist', { month: '2', day: '30' }, ['']],
    ['an unknown zone', { timezone: 'Mars/Olympus' }, ['timezone']],
    ['an unknown placeholder', { resource_name_template: '{colour}' }, ['resource_name_template']],
    ['an empty template', { resource_name_template: '' }, ['resource_name_template']],
    ['a retention time of 0', { retention_time: { days: 0 } }, ['retention_time']],
    ['a retention time beyond the year 9999', { retention_time: { weeks: 1_000_000 } }, ['retention_time']],
    ['an unknown field', { colour: 'red', id: unknownId }, ['colour', 'id']],
    ['everything at once', { minute: '60', timezone: 'x', days: 1 }, ['minute', 'timezone', 'days']],
    ['a list', [], ['']],
  ])('%s', async (_name, body, fields) => {
    const id = await aSchedule(daily);
    const before = [(await cloud.get(`${schedules}/${id}`)).body, await nextRun(id)];
    const refused = await patch(id, body);
    expect([refused.status, new Set(paths(refused).slice(1))]).toEqual([400, new Set(fields)]);
    expect([(await cloud.get(`${schedules}/${id}`)).body, await nextRun(id)]).toEqual(before);
  });

  it('an invalid id, an unknown one, one of another project, and one that was removed', async () => {
    const id = await aSchedule(daily);
    const { projectId, token } = await cloud.newClient();
    const reader = { token: await cloud.newToken(1, 'reader') };
    expect((await cloud.get(`${schedules}/${id}`, reader)).status).toBe(200);
    expect((await cloud.patch(`${schedules}/${id}`, { hour: '4' }, reader)).status).toBe(403);
    await cloud.post(`${policies}/${policy}/remove_schedules`, { schedule_ids: [id] });
    for (const send of [
      (path: string, options = {}) => cloud.get(path, options),
      (path: string, options = {}) => cloud.patch(path, { hour: '4' }, options),
    ]) {
      expect((await send(`${schedules}/x`)).status).toBe(400);
      expect((await send(`${schedules}/${unknownId}`)).status).toBe(404);
      expect((await send(`/cloud/v1/schedule/${projectId}/1/${id}`, { token })).status).toBe(404);
      expect((await send(`${schedules}/${id}`)).status).toBe(404);
    }
  });
});
