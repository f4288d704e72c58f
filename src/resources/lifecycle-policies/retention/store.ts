/** SQL of retention: expiring snapshots, and failed deletions. */
import { prepared } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';

const lockVolumeRow = prepared('lifecycle_policy_hold_volume', 'select from volumes where id = $1 for update');

/** Locks the volume, as every change of one of its snapshots does. */
export async function lockVolume(tx: Tx, volumeId: string): Promise<void> {
  await lockVolumeRow(tx, volumeId);
}

const readExpiring = prepared<{ id: string }>(
  'lifecycle_policy_expiring',
  `select id from (
     select id, volume_id from lifecycle_policy_run_volumes
     where region_id = any($1::int[]) and expire_at <= $2 order by expire_at limit $3) as rv
   order by volume_id, id`,
);

/** Volumes of runs whose snapshots may have expired, in the order of locking volumes. */
export async function findExpiring(db: Db, regionIds: number[], now: Date, limit: number): Promise<string[]> {
  return (await readExpiring(db, regionIds, now, limit)).map((row) => row.id);
}

const readUnsettled = prepared(
  'lifecycle_policy_snapshot_unsettled',
  `select from lifecycle_policy_run_volumes where snapshot_id = $1 and state = 'running'`,
);

/** Whether the creation of the snapshot is not yet recorded. */
export async function isUnsettled(tx: Tx, snapshotId: string): Promise<boolean> {
  return (await readUnsettled(tx, snapshotId)).length > 0;
}

const addExpired = prepared(
  'lifecycle_policy_note_expired',
  `update lifecycle_policy_run_volumes set expired = expired || $2::jsonb where snapshot_id = $1`,
);

/** Records the expired snapshots with the newest one. */
export async function recordExpired(tx: Tx, newest: string, expired: string[]): Promise<void> {
  if (expired.length > 0) await addExpired(tx, newest, JSON.stringify(expired));
}

const writeExpireAt = prepared(
  'lifecycle_policy_expire_at',
  'update lifecycle_policy_run_volumes set expire_at = $2 where snapshot_id = any($1::uuid[])',
);

export async function setExpireAt(tx: Tx, snapshotIds: string[], at: Date): Promise<void> {
  if (snapshotIds.length > 0) await writeExpireAt(tx, snapshotIds, at);
}

const writeExpiry = prepared(
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

/** Recalculates when the snapshots of a policy expire, after its status, schedules or volumes changed. */
export async function scheduleExpiry(tx: Tx, policyId: number): Promise<void> {
  await writeExpiry(tx, policyId);
}

const readDeleting = prepared(
  'lifecycle_policy_snapshot_going',
  `select from snapshots where schedule_id = $1 and volume_id = $2 and status = 'deleting' limit 1`,
);

/** Whether a snapshot that a schedule made of a volume is being deleted. */
export async function isAnyDeleting(tx: Tx, scheduleId: string, volumeId: string): Promise<boolean> {
  return (await readDeleting(tx, scheduleId, volumeId)).length > 0;
}

const maxWait = `interval '10 minutes'`;

const readRoomComing = prepared(
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

/**
 * Whether a snapshot of the client is about to be deleted: one in deletion, or the oldest of a volume whose next snapshot
 * is in creation. It may release the quota that this volume of a run needs. Only for some time after the run began.
 */
export async function isRoomComing(tx: Tx, runVolumeId: string, now: Date): Promise<boolean> {
  return (await readRoomComing(tx, runVolumeId, now)).length > 0;
}

/** A snapshot whose deletion failed, and the actor of its run. */
export interface FailedExpiry {
  snapshotId: string;
  runId: string;
  clientId: number;
  userId: number;
}

/** Tasks are kept forever, so retries back off: after one minute, two, … an hour. */
const readFailed = prepared<FailedExpiry>(
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

/** Snapshots whose deletion failed and that their policy still expires, in the order of locking volumes. */
export function findFailed(db: Db, regionIds: number[], now: Date, limit: number): Promise<FailedExpiry[]> {
  return readFailed(db, regionIds, now, limit);
}
