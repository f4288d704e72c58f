/** Requests and responses of runs. */
import { type Static, Type } from 'typebox';
import { Collection, Component, DateTime, Described, Nullable, Paging, Uuid } from '../../../http/shapes.ts';

export const ListRuns = Type.Object({
  ...Paging(100),
  schedule_id: Type.Optional(Described(Uuid, 'Only runs of this schedule')),
});
export type ListRuns = Static<typeof ListRuns>;

const volume_id = Described(Uuid, 'ID of the volume');
const SnapshotOfVolume = Component('RunSnapshot', { volume_id, snapshot_id: Described(Uuid, 'ID of the snapshot') });
const FailedVolume = Component('RunFailure', {
  volume_id,
  message: Type.String({ description: 'Why the volume has no snapshot' }),
});
const PendingVolume = Component('PendingRunSnapshot', {
  volume_id,
  snapshot_id: Described(Nullable(Uuid), 'ID of the snapshot; null until it is requested'),
});
export const Run = Component('LifecyclePolicyRun', {
  id: Described(Uuid, 'ID of the run'),
  schedule_id: Described(Uuid, 'ID of the schedule'),
  due_at: Described(DateTime, 'When the run was due'),
  started_at: Described(DateTime, 'When the run started'),
  done_at: Described(Nullable(DateTime), 'When the last snapshot was done; null before that'),
  task_id: Described(Nullable(Uuid), 'ID of the task of the client that requested the run; null: the run was due'),
  snapshots: Type.Array(SnapshotOfVolume, { description: 'Snapshots that were created' }),
  expired: Type.Array(SnapshotOfVolume, {
    description: 'Older snapshots that expired because of this run and are gone',
  }),
  failed: Type.Array(FailedVolume, { description: 'Volumes whose snapshot failed' }),
  pending: Type.Array(PendingVolume, { description: 'Volumes whose snapshot is not done' }),
});
export type Run = Static<typeof Run>;
export const RunCollection = Collection(Run);
