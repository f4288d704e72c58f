/** SQL of the forecast: which existing snapshots of a policy expire, and when. */
import { type Db, prepared } from '../../../platform/db.ts';

/** How long a schedule retains snapshots, and its next runs in ascending order. */
interface Retention {
  id: string;
  quantity: number;
  retention: number | null;
  runs: Date[];
}

interface ExpiringRow {
  id: string;
  name: string;
  volumeId: string;
  scheduleId: string;
  size: number;
  expiresAt: Date;
}

/**
 * A snapshot with `newer` newer ones exceeds the number to retain after `quantity - newer` runs. It exceeds the age to retain
 * by itself, but the newest one expires only when a run replaces it.
 */
const readExpiring = prepared<ExpiringRow>(
  'lifecycle_policy_forecast',
  `with schedule as (
     select * from jsonb_to_recordset($2::jsonb) as (id uuid, quantity int, retention bigint, runs timestamptz[])),
   kept as (
     select n.*, row_number() over (partition by n.schedule_id, n.volume_id order by n.scheduled_at desc, n.id desc) - 1 as newer
     from snapshots n join lifecycle_policy_volumes pv on pv.policy_id = $1 and pv.volume_id = n.volume_id
     where n.lifecycle_policy_id = $1 and n.status = 'available' and n.deleted_at is null),
   expiring as (
     select k.id, k.name, k.volume_id, k.schedule_id, k.size, s.runs[cardinality(s.runs)] as until, least(
         s.runs[greatest(s.quantity - k.newer, 1)],
         case when s.retention is not null
           then greatest(k.created_at + s.retention * interval '1 second', case when k.newer = 0 then s.runs[1] end) end
       ) as at
     from kept k join schedule s on s.id = k.schedule_id)
   select id, name, volume_id as "volumeId", schedule_id as "scheduleId", size, at as "expiresAt"
   from expiring
   where at <= until order by at, schedule_id, volume_id, id limit $3`,
);

/** Available snapshots of the policy's volumes that expire until the last of these runs of their schedule, soonest first. */
export function findExpiring(db: Db, policyId: number, schedules: Retention[], limit: number): Promise<ExpiringRow[]> {
  return readExpiring(db, policyId, JSON.stringify(schedules), limit);
}
