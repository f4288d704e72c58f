/** Request and response of the forecast of a lifecycle policy. */
import { type Static, Type } from 'typebox';
import { Component, DateTime, Described, Uuid } from '../../../http/shapes.ts';
import { RunTime } from '../schedule/schema.ts';

export const ForecastQuery = Type.Object({
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 10, description: 'Number of runs of each schedule' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'Maximum number of snapshots' }),
  ),
});
export type ForecastQuery = Static<typeof ForecastQuery>;

const schedule_id = Described(Uuid, 'ID of the schedule');
const ComingRun = Component('ComingRun', { schedule_id, ...RunTime.properties });
const ExpiringSnapshot = Component('ExpiringSnapshot', {
  snapshot_id: Described(Uuid, 'ID of the snapshot'),
  name: Type.String({ description: 'Name of the snapshot' }),
  volume_id: Described(Uuid, 'ID of the volume'),
  schedule_id,
  size: Type.Integer({ description: 'Size in GiB' }),
  expires_at: Described(DateTime, 'When the policy deletes it, if the runs before succeed'),
});
export const Forecast = Component('LifecyclePolicyForecast', {
  runs: Type.Array(ComingRun, { description: 'The next runs, soonest first; empty while the policy is paused' }),
  expiring: Type.Array(ExpiringSnapshot, {
    description: 'Existing snapshots that expire until the last of these runs of their schedule, soonest first',
  }),
});
export type Forecast = Static<typeof Forecast>;
