import { expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { silentLogger } from '../../../platform/log.ts';
import { createReschedule } from './reschedule.ts';

const cloud = useCloudyard({ driver: null });
const path = '/cloud/v1/lifecycle_policy/1/1';

async function newPolicy(schedules: object[], status = 'active'): Promise<string[]> {
  const { body } = await cloud.post(path, { action: 'volume_snapshot', name: 'policy', schedules, status });
  return body.schedules.map(({ id }: { id: string }) => id);
}

async function nextRuns(ids: string[]): Promise<(string | null)[]> {
  const { rows } = await cloud.db.$client.query<{ id: string; at: Date | null }>(
    'select id, next_run_at as at from lifecycle_policy_schedules where id = any($1::uuid[])',
    [ids],
  );
  return ids.map((id) => rows.find((row) => row.id === id)?.at?.toISOString() ?? null);
}

it('moves the next runs that older time zone rules computed, and no others', async () => {
  cloud.clock.set(new Date('2027-06-01T00:00:00Z'));
  const noon = { type: 'cron', hour: '12', timezone: 'Africa/Casablanca' };
  const ids = await newPolicy([
    noon,
    { ...noon, hour: '18' },
    { type: 'cron', hour: '12' },
    { type: 'interval', hours: 7 },
  ]);
  const paused = await newPolicy([noon], 'paused');
  const right = await nextRuns(ids);
  expect(right[0]).toBe('2027-06-01T12:00:00.000Z');
  // By the rules of 2025, Casablanca is an hour ahead of UTC in summer.
  await cloud.db.$client.query(
    `update lifecycle_policy_schedules set next_run_at = next_run_at - interval '1 hour' where id = any($1::uuid[])`,
    [ids],
  );
  const wrong = await nextRuns(ids);

  const deps = { db: cloud.db, clock: cloud.clock, log: silentLogger, regionIds: [1] };
  const reschedule = createReschedule(deps);
  await reschedule();
  expect(await nextRuns(ids)).toEqual([right[0], right[1], wrong[2], wrong[3]]);
  expect(await nextRuns(paused)).toEqual([null]);

  // The rules have not changed since, so nothing is read again.
  await cloud.db.$client.query('update lifecycle_policy_schedules set next_run_at = $2 where id = $1', [
    ids[0],
    wrong[0],
  ]);
  await reschedule();
  expect(await nextRuns(ids.slice(0, 1))).toEqual([wrong[0]]);
  await createReschedule(deps)();
  expect(await nextRuns(ids.slice(0, 1))).toEqual([right[0]]);
});

it('moves next runs back when the clock is set back, so that no schedule waits for a time that has passed before', async () => {
  const now = new Date('2027-06-01T00:00:00Z');
  cloud.clock.set(now);
  const ids = await newPolicy([
    { type: 'cron', hour: '12', timezone: 'Africa/Casablanca' },
    { type: 'cron', hour: '12' },
    { type: 'interval', hours: 7 },
  ]);
  const right = await nextRuns(ids);
  const reschedule = createReschedule({ db: cloud.db, clock: cloud.clock, log: silentLogger, regionIds: [1] });
  cloud.clock.set(new Date('2027-07-01T00:00:00Z'));
  await reschedule();
  await cloud.db.$client.query(
    `update lifecycle_policy_schedules set next_run_at = next_run_at + interval '30 days' where id = any($1::uuid[])`,
    [ids],
  );
  await reschedule();
  expect(await nextRuns(ids)).not.toEqual(right);
  cloud.clock.set(now);
  await reschedule();
  expect(await nextRuns(ids)).toEqual(right);
});
