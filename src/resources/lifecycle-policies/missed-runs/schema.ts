/** Requests and responses of missed runs. */
import { type Static, Type } from 'typebox';
import { Collection, Component, DateTime, Described, Nullable, Paging, Uuid } from '../../../http/shapes.ts';

export const ListMissedRuns = Type.Object(Paging(100));
export type ListMissedRuns = Static<typeof ListMissedRuns>;

export const MissedRun = Component('MissedLifecyclePolicyRun', {
  schedule_id: Described(Uuid, 'ID of the schedule'),
  due_at: Described(DateTime, 'When the run was due'),
  started_at: Described(Nullable(DateTime), 'When it started after all; null: it has not started'),
  skipped: Type.Integer({ description: 'Number of later runs that it replaced; counted up to 1,000' }),
  skipped_at: Type.Array(DateTime, {
    description: 'When the first 100 of them were due; empty if the schedule has changed since',
  }),
});
export type MissedRun = Static<typeof MissedRun>;
export const MissedRunCollection = Collection(MissedRun);
