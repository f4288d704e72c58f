/** SQL of retention: expiring snapshots, and failed deletions. */
import {
  columnsOf,
  type Db,
  deferred,
  type DeferredWrite,
  prepared,
  preparedColumn,
  preparedExists,
  type Tx,
} from '../../../platform/db.ts';
import { lastInstant } from '../fire-times.ts';
import type { PendingRunVolume, RunVolume } from '../runs/store.ts';
import { defaultQuantity } from '../schedule/schema.ts';

/** Locks the volumes, as every change of one of their snapshots does. */
export const lockVolumes = prepared<object, [volumeIds: string[]], Tx>(
  'lifecycle_policy_hold_volumes',
  'select from volumes where id = any($1::uuid[]) order by id for update',
);

/** Volumes of runs whose snapshots may have expired, in the order of locking volumes. */
export const findExpiring = preparedColumn<string, [regionIds: number[], now: Date, limit: number], Db>(
  'lifecycle_policy_expiring',
  `select id from (
     select id, volume_id from lifecycle_policy_run_volumes
     where region_id = any($1::int[]) and expire_at <= $2 order by expire_at limit $3) as rv
   order by volume_id, id`,
);

/** Whether the creation of the snapshot is not yet recorded. */
export const isUnsettled = preparedExists<[snapshotId: string], Tx>(
  'lifecycle_policy_snapshot_unsettled',
  `select from lifecycle_policy_run_volumes where snapshot_id = $1 and state = 'running'`,
);

/** A snapshot that its policy no longer retains. `newest`: the newest available one of its schedule and volume. */
interface SurplusSnapshot {
  id: string;
  scheduleId: string;
  volumeId: string;
  newest: string;
}

/** $6: see `lastInstant`. A snapshot whose creation is not yet recorded is handled again when it is. */
const readSurplus = prepared<SurplusSnapshot>(
  'lifecycle_policy_surplus',
  `select s.id, g.schedule_id as "scheduleId", g.volume_id as "volumeId", s.newest
   from unnest($1::uuid[], $2::uuid[], $3::int[], $4::int8[]) as g (schedule_id, volume_id, quantity, retention_seconds)
     cross join lateral (
       select n.id, n.created_at, row_number() over newest_first as position, first_value(n.id) over newest_first as newest
       from snapshots n
       where n.schedule_id = g.schedule_id and n.volume_id = g.volume_id and n.deleted_at is null
         and n.status = 'available'
       window newest_first as (order by n.scheduled_at > $6::timestamptz, n.scheduled_at desc, n.id desc)) s
   where s.position > 1
     and (s.position > coalesce(g.quantity, ${defaultQuantity}) or s.created_at + g.retention_seconds * interval '1 second' <= $5::timestamptz)
     and not exists (
       select from lifecycle_policy_run_volumes rv where rv.snapshot_id = s.id and rv.state = 'running')
   order by g.volume_id, g.schedule_id, s.position`,
);

/** The available snapshots of the pairs of schedule and volume that are too many or too old. Never the newest. */
export function findSurplus(
  tx: Tx,
  pairs: Pick<RunVolume, 'scheduleId' | 'volumeId' | 'maxQuantity' | 'retentionSeconds'>[],
  now: Date,
): Promise<SurplusSnapshot[]> {
  const columns = columnsOf(pairs, 'scheduleId', 'volumeId', 'maxQuantity', 'retentionSeconds');
  return readSurplus(tx, ...columns, now, lastInstant(now));
}

const addExpired = deferred('lifecycle_policy_note_expired', {
  parameters: 'uuid[], uuid[]',
  body: `update lifecycle_policy_run_volumes rv set expired = rv.expired || e.ids
    from (select newest, jsonb_agg(id order by n) as ids
          from unnest($1, $2) with ordinality as one (newest, id, n) group by newest) as e
    where rv.snapshot_id = e.newest;`,
});

/** Records expired snapshots with the newest one of their schedule and volume. */
export const recordExpired: DeferredWrite<[expired: SurplusSnapshot[]]> = async (tx, expired) => {
  if (expired.length > 0) await addExpired(tx, ...columnsOf(expired, 'newest', 'id'));
};

const writeExpireAt = deferred('lifecycle_policy_expire_at', {
  parameters: 'uuid[], timestamptz',
  body: 'update lifecycle_policy_run_volumes set expire_at = $2 where snapshot_id = any($1);',
});

export const setExpireAt: DeferredWrite<[snapshotIds: string[], at: Date | null]> = async (tx, snapshotIds, at) => {
  if (snapshotIds.length > 0) await writeExpireAt(tx, snapshotIds, at);
};

/** Recalculates when the snapshots of a policy expire, after its status, schedules or volumes changed. */
export const scheduleExpiry = prepared<object, [policyId: number], Tx>(
  'lifecycle_policy_schedule_expiry',
  `with wanted as (
     select rv.id, case when p.status = 'active' and pv.volume_id is not null
                        then n.created_at + s.retention_seconds * interval '1 second' end as at
     from lifecycle_policies p
       join lifecycle_policy_runs r on r.policy_id = p.id
       join lifecycle_policy_run_volumes rv on rv.run_id = r.id and rv.state = 'made'
       join snapshots n on n.id = rv.snapshot_id and n.deleted_at is null
       left join lifecycle_policy_schedules s on s.id = r.schedule_id
       left join lifecycle_policy_volumes pv on pv.policy_id = p.id and pv.volume_id = rv.volume_id
     where p.id = $1)
   update lifecycle_policy_run_volumes rv set expire_at = wanted.at
   from wanted where rv.id = wanted.id and rv.expire_at is distinct from wanted.at`,
);

/** Whether a snapshot that a schedule made of a volume is being deleted. */
export const isAnyDeleting = preparedExists<[scheduleId: string, volumeId: string], Tx>(
  'lifecycle_policy_snapshot_going',
  `select from snapshots where schedule_id = $1 and volume_id = $2 and status = 'deleting' limit 1`,
);

const maxWait = `interval '10 minutes'`;

/**
 * Whether a snapshot of the client is about to be deleted: one in deletion, or the oldest of a volume whose next snapshot
 * is in creation. It may release the quota that this volume of a run needs. Only for some time after the run began.
 */
export const isRoomComing = preparedExists<[runVolumeId: string, now: Date], Tx>(
  'lifecycle_policy_room_coming',
  `select from lifecycle_policy_run_volumes own
     join lifecycle_policy_runs of_own on of_own.id = own.run_id and of_own.started_at > $2::timestamptz - ${maxWait}
     join lifecycle_policies p on p.id = of_own.policy_id
   where own.id = $1 and (
     exists (select from snapshots n where n.client_id = p.client_id and n.region_id = own.region_id
               and n.observed_generation < n.generation and n.status = 'deleting')
     or exists (select from lifecycle_policy_run_volumes rv
                  join lifecycle_policy_runs r on r.id = rv.run_id and r.started_at > $2::timestamptz - ${maxWait}
                  join lifecycle_policies other on other.id = r.policy_id and other.client_id = p.client_id
                  join lifecycle_policy_schedules s on s.id = r.schedule_id
                where rv.region_id = own.region_id and rv.state = 'running'
                  and (s.given->>'max_quantity')::int <= (
                    select count(*) from snapshots n
                    where n.schedule_id = s.id and n.volume_id = rv.volume_id and n.status = 'available')))`,
);

/** A snapshot whose deletion failed, and the actor of its run. */
export type FailedExpiry = Pick<PendingRunVolume, 'runId' | 'clientId' | 'userId'> & { snapshotId: string };

/**
 * Snapshots whose deletion failed and that their policy still expires, in the order of locking volumes. Each retry is a task
 * that clients see, so retries back off: after one minute, two, … an hour.
 */
export const findFailed = prepared<FailedExpiry, [regionIds: number[], now: Date, limit: number], Db>(
  'lifecycle_policy_failed_expiries',
  `select n.id as "snapshotId", r.id as "runId", p.client_id as "clientId", p.user_id as "userId"
   from snapshots n
     join lifecycle_policy_runs r on r.schedule_id = n.schedule_id and r.scheduled_at = n.scheduled_at
     join lifecycle_policy_schedules s on s.id = n.schedule_id
     join lifecycle_policies p on p.id = s.policy_id and p.status = 'active'
     join lifecycle_policy_volumes pv on pv.policy_id = p.id and pv.volume_id = n.volume_id
   where n.region_id = any($1::int[]) and n.status = 'error_deleting'
     and n.updated_at <= $2::timestamptz - least(n.generation - 1, 60) * interval '1 minute'
   order by n.volume_id, n.id limit $3`,
);
