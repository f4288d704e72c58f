import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard();
const policies = '/cloud/v1/lifecycle_policy/1/1';
const nowhere = '11111111-1111-4111-8111-111111111111';
const daily = { type: 'cron', hour: '3' };
let volume: string;
let other: string;

async function newVolume(name = 'data', projectId = 1, options = {}): Promise<string> {
  const body = { name, size: 3, source: 'new-volume' };
  const task = await cloud.ended(await cloud.post(`/cloud/v1/volumes/${projectId}/1`, body, options), options);
  return task.body.created_resources.volumes[0];
}

beforeAll(async () => {
  volume = await newVolume('first');
  other = await newVolume('second');
});

const create = (body: object = {}) => cloud.post(policies, { action: 'volume_snapshot', name: 'nightly', ...body });
const put = (path: string, body: unknown) => cloud.request('PUT', path, body);
const errorPaths = ({ status, body }: Answer) => [status, ...(body.errors ?? []).map((e: { path: string }) => e.path)];
const usageOfSchedules = async () => {
  const answer = await cloud.get('/cloud/v2/client_quotas');
  const regional = answer.body.regional_quotas?.[0] ?? answer.body.results?.[0].regional_quotas[0];
  return regional.snapshot_schedule_count_usage as number;
};

describe('a lifecycle policy', () => {
  it('is created with schedules and volumes, and read back unchanged', async () => {
    const before = (await cloud.get(policies)).body.count;
    const created = await create({
      schedules: [
        { type: 'cron', month: '*', week: '*', day: '*', day_of_week: '*', hour: '*', minute: '0', timezone: 'UTC' },
        { type: 'interval', weeks: 0, days: 1, hours: 0, minutes: 0, max_quantity: 4, retention_time: { days: 7 } },
        { type: 'cron', hour: '3,15', timezone: 'Europe/Luxembourg', resource_name_template: 'of {volume_id}' },
      ],
      volume_ids: [volume, volume],
    });
    expect(created.status).toBe(200);
    const { id, user_id } = created.body;
    const common = { id: expect.any(String), owner: 'lifecycle_policy', owner_id: id, user_id };
    const template = 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}';
    expect(created.body).toEqual({
      id: expect.any(Number),
      action: 'volume_snapshot',
      name: 'nightly',
      project_id: 1,
      region_id: 1,
      status: 'active',
      user_id: expect.any(Number),
      schedules: [
        {
          ...common,
          type: 'cron',
          month: '*',
          week: '*',
          day: '*',
          day_of_week: '*',
          hour: '*',
          minute: '0',
          timezone: 'UTC',
          max_quantity: 2,
          resource_name_template: template,
          retention_time: null,
        },
        {
          ...common,
          type: 'interval',
          weeks: 0,
          days: 1,
          hours: 0,
          minutes: 0,
          max_quantity: 4,
          resource_name_template: template,
          retention_time: { weeks: null, days: 7, hours: null, minutes: null },
        },
        {
          ...common,
          type: 'cron',
          month: null,
          week: null,
          day: null,
          day_of_week: null,
          hour: '3,15',
          minute: null,
          timezone: 'Europe/Luxembourg',
          max_quantity: 2,
          resource_name_template: 'of {volume_id}',
          retention_time: null,
        },
      ],
    });
    expect((await cloud.get(`${policies}/${id}`)).body).toEqual(created.body);
    const withVolumes = { ...created.body, volumes: [{ volume_id: volume, volume_name: 'first' }] };
    expect((await cloud.get(`${policies}/${id}?need_volumes=true`)).body).toEqual(withVolumes);
    const listed = (await cloud.get(`${policies}?need_volumes=true`)).body;
    expect(listed.count).toBe(before + 1);
    expect(listed.results.at(-1)).toEqual(withVolumes);
    expect((await cloud.get(`${policies}?limit=1&offset=${before}`)).body.results).toEqual([created.body]);
  });

  it('needs neither schedules nor volumes', async () => {
    expect((await create({ status: 'paused' })).body).toMatchObject({ schedules: [], status: 'paused' });
  });

  it('is renamed, paused and resumed; an empty update changes nothing', async () => {
    const { body: policy } = await create({ schedules: [daily] });
    const path = `${policies}/${policy.id}`;
    expect((await cloud.patch(path, {})).body).toEqual(policy);
    const bare = await cloud.app.inject({
      method: 'PATCH',
      url: path,
      headers: { authorization: `apikey ${cloud.admin}` },
    });
    expect(bare.json()).toEqual(policy);
    expect((await cloud.patch(path, { name: 'renamed' })).body).toEqual({ ...policy, name: 'renamed' });
    expect((await cloud.patch(path, { status: 'paused' })).body).toEqual({
      ...policy,
      name: 'renamed',
      status: 'paused',
    });
    expect((await cloud.patch(`${path}?need_volumes=true`, { status: 'active' })).body.volumes).toEqual([]);
  });

  it('adds and removes volumes idempotently, and accepts empty lists', async () => {
    const path = `${policies}/${(await create({ volume_ids: [volume] })).body.id}`;
    const shown = async () =>
      (await cloud.get(`${path}?need_volumes=true`)).body.volumes.map((v: any) => v.volume_name);
    for (const volume_ids of [[], [other], [other, volume], [other.toUpperCase()]]) {
      expect((await put(`${path}/add_volumes_to_policy`, { volume_ids })).status).toBe(200);
    }
    expect(await shown()).toEqual(['first', 'second']);
    for (const volume_ids of [[], [volume], [volume, nowhere]]) {
      expect((await put(`${path}/remove_volumes_from_policy`, { volume_ids })).status).toBe(200);
    }
    expect(await shown()).toEqual(['second']);
  });

  it('adds and removes schedules, keeps their order, and counts them against the quota', async () => {
    const before = await usageOfSchedules();
    const { body: policy } = await create({ schedules: [daily] });
    const path = `${policies}/${policy.id}`;
    const add = (...schedules: object[]) => cloud.post(`${path}/add_schedules`, { schedules });
    const added = await add({ type: 'interval', hours: 2 }, { type: 'cron', hour: '1' });
    expect(added.body.schedules.map((s: any) => s.hour ?? s.hours)).toEqual(['3', 2, '1']);
    expect((await add({ type: 'interval', hours: 2 })).body).toEqual(added.body);
    expect((await add()).body).toEqual(added.body);
    expect(await usageOfSchedules()).toBe(before + 3);
    const remove = (...schedule_ids: string[]) => cloud.post(`${path}/remove_schedules`, { schedule_ids });
    const left = await remove(policy.schedules[0].id, nowhere);
    expect(left.body.schedules).toEqual(added.body.schedules.slice(1));
    expect((await remove(policy.schedules[0].id)).body).toEqual(left.body);
    expect((await remove()).body).toEqual(left.body);
    expect(await usageOfSchedules()).toBe(before + 2);
    expect((await cloud.delete(path)).status).toBe(204);
    expect((await cloud.delete(path)).status).toBe(404);
    expect(await usageOfSchedules()).toBe(before);
  });

  it('includes a volume that names the policy when it is created', async () => {
    const { body: policy } = await create();
    const body = {
      name: 'created with a policy',
      size: 1,
      source: 'new-volume',
      lifecycle_policy_ids: [policy.id, policy.id],
    };
    await cloud.ended(await cloud.post('/cloud/v1/volumes/1/1', body));
    const shown = await cloud.get(`${policies}/${policy.id}?need_volumes=true`);
    expect(shown.body.volumes).toEqual([{ volume_id: expect.any(String), volume_name: 'created with a policy' }]);
    const unknown = await cloud.post('/cloud/v1/volumes/1/1', { ...body, lifecycle_policy_ids: [policy.id, 999_999] });
    expect(errorPaths(unknown)).toEqual([400, 'lifecycle_policy_ids.1']);
  });

  it('is created once per Idempotency-Key', async () => {
    const key = { headers: { 'idempotency-key': 'one policy' } };
    const body = { action: 'volume_snapshot', name: 'nightly' };
    const [first, second] = [await cloud.post(policies, body, key), await cloud.post(policies, body, key)];
    expect(second.body).toEqual(first.body);
  });

  it('refuses schedules above the quota', async () => {
    const client = await cloud.newClient();
    const limits = { region_id: 1, snapshot_schedule_count_limit: 2 };
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, limits);
    const path = `/cloud/v1/lifecycle_policy/${client.projectId}/1`;
    const body = { action: 'volume_snapshot', name: 'nightly', schedules: [daily, daily] };
    const created = await cloud.post(path, body, client);
    expect(created.status).toBe(200);
    const more = { schedules: [{ type: 'interval', days: 1 }] };
    const refused = await cloud.post(`${path}/${created.body.id}/add_schedules`, more, client);
    expect(refused.body.exception_class).toBe('QuotaExceeded');
    expect((await cloud.get(`/cloud/v1/lifecycle_policy/${client.projectId}/1`, client)).body.count).toBe(1);
  });
});

describe('schedule preview and cost estimate', () => {
  it('returns the next runs of a schedule in UTC and in local time', async () => {
    const schedule = { type: 'cron', hour: '3', timezone: 'Europe/Berlin' };
    const preview = await cloud.post(`${policies}/preview_schedule`, {
      schedule,
      from: '2026-03-28T02:00:00',
      count: 2,
    });
    expect(preview.body).toEqual({
      runs: [
        { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00' },
        { utc: '2026-03-30T01:00:00Z', local: '2026-03-30T03:00:00+02:00' },
      ],
    });
    const interval = { schedule: { type: 'interval', hours: 36 }, from: '2026-01-01T01:00:00+01:00' };
    const { runs } = (await cloud.post(`${policies}/preview_schedule`, interval)).body;
    expect(runs).toHaveLength(10);
    expect(runs[0]).toEqual({ utc: '2026-01-02T12:00:00Z', local: '2026-01-02T12:00:00+00:00' });
    const many = { schedule: { type: 'cron', month: '2', day: '29' }, count: 1000 };
    expect((await cloud.post(`${policies}/preview_schedule`, many)).body.runs).toHaveLength(1000);
  });

  it.each<[object, string[]]>([
    [{ schedule: daily, count: 0 }, ['count']],
    [{ schedule: daily, count: 1001 }, ['count']],
    [{ schedule: daily, from: 'tomorrow' }, ['from']],
    [{ schedule: daily, from: '2026-12-31T23:59:60Z' }, ['from']],
    [{ schedule: daily, from: '1969-01-01T00:00:00Z' }, ['from']],
    [{ schedule: { type: 'cron', hour: '25', timezone: 'Mars/Olympus' } }, ['schedule.hour', 'schedule.timezone']],
    [{ schedule: { type: 'cron', day: '31', month: '2' } }, ['schedule']],
    [{ schedule: { type: 'cron', hour: '25' }, from: '1969-01-01T00:00:00Z' }, ['schedule.hour', 'from']],
    [{ schedule: daily, from: '1969-01-01T00:00:00Z', count: 0 }, ['count', 'from']],
    [{}, ['schedule']],
  ])('refuses %j', async (body, paths) => {
    expect(errorPaths(await cloud.post(`${policies}/preview_schedule`, body))).toEqual([400, ...paths]);
  });

  const body = {
    action: 'volume_snapshot',
    name: 'nightly',
    schedules: [
      { type: 'cron', hour: '3', max_quantity: 7 },
      // The retention time limits this schedule to five snapshots at its densest hours.
      { type: 'cron', hour: '8-12', max_quantity: 100, retention_time: { hours: 6 } },
      { type: 'interval', hours: 12, max_quantity: 100, retention_time: { days: 2 } },
    ],
  };

  it('returns the maximum snapshot count, size and cost of a policy', async () => {
    const estimate = await cloud.post(`${policies}/estimate_max_policy_usage`, {
      ...body,
      volume_ids: [volume, other],
    });
    const price = await cloud.post('/cloud/v1/pricing/1/1/lifecycle_policy', { ...body, volume_ids: [volume, other] });
    expect(estimate.body).toEqual({
      max_cost: price.body,
      max_volume_snapshot_sequence_length: 16,
      max_volume_snapshot_count_usage: 32,
      max_volume_snapshot_size_usage: 96,
    });
    expect(price.body).toMatchObject({ currency_code: 'EUR', price_status: 'show', tax_percent: 17 });
    const { schedules } = body;
    const byVolume = await cloud.post('/cloud/v2/pricing/1/1/lifecycle_policy', {
      schedules,
      volume_ids: [volume, other],
    });
    const each = { type: 'standard', discount: 0, price: expect.any(Number) };
    expect(byVolume.body).toEqual({
      currency_code: 'EUR',
      discount: 0,
      per_hour: { volumes: [each, each] },
      per_month: { volumes: [each, each] },
      price_status: 'show',
      price_without_discount_per_month: price.body.price_without_discount_per_month,
      tax_percent: 17,
      total_price_per_hour: price.body.price_per_hour,
      total_price_per_month: price.body.price_per_month,
    });
    const parts = byVolume.body.per_month.volumes.map((v: any) => v.price);
    expect(parts[0] + parts[1]).toBeCloseTo(price.body.price_per_month, 1);
  });

  it('names the fields that cannot be priced', async () => {
    const price = (given: object) => cloud.post('/cloud/v2/pricing/1/1/lifecycle_policy', given);
    expect(errorPaths(await price({ volume_ids: [] }))).toEqual([400, 'volume_ids']);
    expect(errorPaths(await price({ volume_ids: [volume, nowhere] }))).toEqual([400, 'volume_ids.1']);
    expect(errorPaths(await price({ volume_ids: Array(101).fill(volume) }))).toEqual([400, 'volume_ids']);
    const estimate = await cloud.post(`${policies}/estimate_max_policy_usage`, { ...body, volume_ids: [nowhere] });
    expect(errorPaths(estimate)).toEqual([400, 'volume_ids.0']);
  });
});

describe('bad input', () => {
  const schedule = (given: object) => ({ schedules: [{ type: 'cron', hour: '3', ...given }] });
  it.each<[object, string[]]>([
    [schedule({ timezone: 'Mars/Olympus' }), ['schedules.0.timezone']],
    [schedule({ day: '31', month: '2' }), ['schedules.0']],
    [schedule({ max_quantity: 0 }), ['schedules.0.max_quantity']],
    [schedule({ max_quantity: 10_001 }), ['schedules.0.max_quantity']],
    [schedule({ max_quantity: 1.5 }), ['schedules.0.max_quantity']],
    [schedule({ retention_time: {} }), ['schedules.0.retention_time']],
    [schedule({ retention_time: { weeks: 0, days: 0, hours: 0, minutes: 0 } }), ['schedules.0.retention_time']],
    [schedule({ retention_time: { hours: -1 } }), ['schedules.0.retention_time.hours']],
    [schedule({ retention_time: { years: 1 } }), ['schedules.0.retention_time.years']],
    [schedule({ retention_time: { weeks: 420_000 } }), ['schedules.0.retention_time']],
    [schedule({ resource_name_template: '{volume}' }), ['schedules.0.resource_name_template']],
    [schedule({ resource_name_template: '{volume_id' }), ['schedules.0.resource_name_template']],
    [schedule({ resource_name_template: '' }), ['schedules.0.resource_name_template']],
    [schedule({ resource_name_template: 'a\nb' }), ['schedules.0.resource_name_template']],
    [schedule({ days: 1 }), ['schedules.0.days']],
    [schedule({ second: '1' }), ['schedules.0.second']],
    [schedule({ hour: 3 }), ['schedules.0.hour']],
    [schedule({ type: 'daily' }), ['schedules.0.type']],
    [{ schedules: [{ hour: '3' }] }, ['schedules.0.type']],
    [{ schedules: [{ type: 'cron' }] }, ['schedules.0']],
    [{ schedules: [{ type: 'interval' }] }, ['schedules.0']],
    [{ schedules: [{ type: 'interval', weeks: 0, days: 0, hours: 0, minutes: 0 }] }, ['schedules.0']],
    [{ schedules: [{ type: 'interval', days: 1, hour: '3' }] }, ['schedules.0.hour']],
    [{ schedules: [{ type: 'interval', weeks: 1_000_000 }] }, ['schedules.0']],
    [{ schedules: Array.from({ length: 11 }, () => ({ type: 'cron', hour: '3' })) }, ['schedules']],
    [
      {
        schedules: [
          { type: 'cron', hour: '99' },
          { type: 'cron', minute: 'x', week: '54' },
        ],
      },
      ['schedules.0.hour', 'schedules.1.week', 'schedules.1.minute'],
    ],
    [{ volume_ids: [nowhere] }, ['volume_ids.0']],
    [{ volume_ids: ['x'] }, ['volume_ids.0']],
    [{ name: '' }, ['name']],
    [{ name: 'two\nlines' }, ['name']],
    [{ name: 'x'.repeat(256) }, ['name']],
    [{ status: 'deleted' }, ['status']],
    [{ action: 'volume_backup' }, ['action']],
    [{ color: 'red' }, ['color']],
  ])('refuses %j and names the fields', async (body, paths) => {
    expect(errorPaths(await create(body))).toEqual([400, ...paths]);
  });

  it('an error message states the actual cause', async () => {
    const errorsOf = async (given: object, from = '2026-01-01T00:00:00Z') => {
      const body = { schedule: { type: 'cron', ...given }, from };
      return (await cloud.post(`${policies}/preview_schedule`, body)).body.errors;
    };
    const large = [{ path: 'schedule.hour', message: 'a number is too large' }];
    expect(await errorsOf({ hour: '1'.repeat(500) })).toEqual(large);
    expect(await errorsOf({ hour: `*/${'1'.repeat(500)}` })).toEqual(large);
    expect(await errorsOf({ hour: '24' })).toMatchObject([{ message: expect.stringContaining('24 is more than 23') }]);
    expect(await errorsOf({ day: '30', month: '2' })).toMatchObject([{ message: expect.stringContaining('no date') }]);
    const none = [{ path: 'schedule', message: 'never fires again before the year 10000' }];
    expect(await errorsOf({ hour: '3' }, '9999-12-31T23:59:59Z')).toEqual(none);
    expect(await errorsOf({ type: 'interval', days: 1 }, '9999-12-31T23:59:59Z')).toEqual(none);
    expect(await errorsOf({ hour: '3' }, '1969-12-31T23:59:59')).toMatchObject([{ path: 'from' }]);
  });

  it('refuses to add an eleventh schedule', async () => {
    const schedules = Array.from({ length: 10 }, (_, hour) => ({ type: 'cron', hour: `${hour}` }));
    const path = `${policies}/${(await create({ schedules })).body.id}`;
    const one = { schedules: [{ type: 'cron', hour: '10' }] };
    expect(errorPaths(await cloud.post(`${path}/add_schedules`, one))).toEqual([400, 'schedules']);
  });

  it('returns the same error for a volume of another project as for an unknown volume', async () => {
    const client = await cloud.newClient();
    const theirs = await newVolume('theirs', client.projectId, client);
    expect(errorPaths(await create({ volume_ids: [theirs] }))).toEqual([400, 'volume_ids.0']);
    const path = `${policies}/${(await create()).body.id}`;
    expect(errorPaths(await put(`${path}/add_volumes_to_policy`, { volume_ids: [volume, theirs] }))).toEqual([
      400,
      'volume_ids.1',
    ]);
    expect((await cloud.get(`${path}?need_volumes=true`)).body.volumes).toEqual([]);
  });

  it('validates updates', async () => {
    const path = `${policies}/${(await create()).body.id}`;
    expect(errorPaths(await cloud.patch(path, { status: 'deleted', name: '-' }))).toEqual([400, 'name', 'status']);
    expect(errorPaths(await cloud.patch(path, { action: 'volume_snapshot' }))).toEqual([400, 'action']);
    expect((await cloud.patch(path, [])).status).toBe(400);
    expect((await cloud.get(`${policies}/x`)).status).toBe(400);
    expect((await cloud.get(`${policies}/99999999999`)).status).toBe(400);
    expect((await cloud.get(`${policies}/2000000000`)).status).toBe(404);
    expect((await cloud.patch(`${policies}/2000000000`, {})).status).toBe(404);
  });
});
