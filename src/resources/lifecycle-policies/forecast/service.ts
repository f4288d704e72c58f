/** What a policy will do: its next runs, and which existing snapshots it will delete. */
import type { Scope } from '../../../authz/actor.ts';
import { withZone } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { createPause } from '../../../platform/event-loop.ts';
import { requireFound } from '../../service-kit.ts';
import type { FireTimes } from '../fire-times.ts';
import { defaultQuantity } from '../schedule/schema.ts';
import { localTime, timesOf } from '../schedule-rules.ts';
import * as policies from '../store.ts';
import type { ScheduleRow } from '../store.ts';
import type { Forecast, ForecastQuery } from './schema.ts';
import * as store from './store.ts';

/** @throws ClientError 404 when the policy does not exist in the project and region */
export async function forecast(
  db: Db,
  scope: Scope,
  policyId: number,
  { count = 10, limit = 100 }: ForecastQuery,
): Promise<Forecast> {
  const policy = requireFound(await policies.find(db, scope, policyId), 'lifecycle policy', policyId);
  if (policy.status === 'paused') return { runs: [], expiring: [] };
  const { schedules } = policy;
  const pause = createPause();
  const coming: { schedule: ScheduleRow; times: FireTimes; at: Date }[] = [];
  for (const schedule of schedules) {
    const times = timesOf(schedule);
    let at = schedule.nextRunAt;
    for (let i = 0; at && i < count; i++, at = times.next(at)) {
      coming.push({ schedule, times, at });
      await pause();
    }
  }
  coming.sort((a, b) => a.at.getTime() - b.at.getTime());
  const runsOf = Map.groupBy(coming, ({ schedule }) => schedule.id);
  const retentions = schedules.map(({ id, given, retentionSeconds }) => ({
    id,
    quantity: given.max_quantity ?? defaultQuantity,
    retention: retentionSeconds,
    runs: (runsOf.get(id) ?? []).map(({ at }) => at),
  }));
  const expiring = await store.findExpiring(db, policyId, retentions, limit);
  return {
    runs: coming.map(({ schedule, times, at }) => ({
      schedule_id: schedule.id,
      utc: withZone(at),
      local: localTime(at, times),
    })),
    expiring: expiring.map(({ id, volumeId, scheduleId, expiresAt, ...row }) => ({
      snapshot_id: id,
      ...row,
      volume_id: volumeId,
      schedule_id: scheduleId,
      expires_at: withZone(expiresAt),
    })),
  };
}
