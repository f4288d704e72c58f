/** Requests and responses of snapshots. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  exampleUuid,
  FilterId,
  Name,
  Nullable,
  OrNull,
  Paging,
  PlaceFields,
  ShortText,
  SizeGib,
  TaskFields,
  Uuid,
} from '../../http/shapes.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';

const snapshotStatuses = [
  'available',
  'backing-up',
  'creating',
  'deleted',
  'deleting',
  'error',
  'error_deleting',
  'restoring',
  'unmanaging',
] as const;
export type SnapshotStatus = (typeof snapshotStatuses)[number];

export const CreateSnapshot = Body(
  'CreateSnapshot',
  [{ name: 'my-snapshot', volume_id: exampleUuid, tags: { team: 'web' } }],
  {
    name: Name,
    volume_id: Described(Uuid, 'ID of the volume'),
    description: Type.Optional(Described(Nullable(Type.String({ maxLength: 1024 })), 'Any text')),
    ...newTagFields,
  },
);
export type CreateSnapshot = Static<typeof CreateSnapshot>;

export const UpdateSnapshot = Body(
  'UpdateSnapshot',
  [{ name: 'renamed-snapshot', tags: { team: null, stage: 'test' } }],
  { name: Type.Optional(Name), tags: Type.Optional(UpdateTags) },
);
export type UpdateSnapshot = Static<typeof UpdateSnapshot>;

export const ReplaceSnapshotTags = Described(
  UpdateTags,
  'The new tags; null removes all user-managed tags, and a tag with the value null is ignored',
  { team: 'web' },
);

export const ListSnapshots = Type.Object({
  ...Paging(1000),
  instance_id: Type.Optional(Described(ShortText, 'Instances are not supported: any value returns an empty list')),
  lifecycle_policy_id: Type.Optional(Described(FilterId, 'Only snapshots that this lifecycle policy created')),
  schedule_id: Type.Optional(Described(Uuid, 'Only snapshots that this schedule of a lifecycle policy created')),
  volume_id: Type.Optional(Described(Uuid, 'Only snapshots of this volume')),
});
export type ListSnapshots = Static<typeof ListSnapshots>;

export const Snapshot = Component('Snapshot', {
  id: Described(Uuid, 'ID of the snapshot'),
  name: Type.String({ description: 'Name of the snapshot' }),
  created_at: Described(DateTime, 'When the snapshot was requested'),
  description: OrNull.text('Text of the request that created the snapshot'),
  metadata: Type.Record(Type.String(), Type.String(), {
    deprecated: true,
    description: 'Use `tags`; the Terraform provider reads this name',
  }),
  ...PlaceFields,
  ...TaskFields,
  size: Described(SizeGib, 'Size in GiB: that of the volume when the snapshot was requested'),
  status: Type.Enum([...snapshotStatuses], {
    description: 'State of the snapshot; only `available` snapshots can be copied or restored',
  }),
  tags: Type.Array(Tag, {
    description: 'Tags, by key; snapshots of a lifecycle policy have the read-only tag `created_by_policy`',
  }),
  updated_at: Described(DateTime, 'When the snapshot last changed'),
  volume_id: Described(Uuid, 'ID of the volume'),
});
export type Snapshot = Static<typeof Snapshot>;
export const SnapshotCollection = Collection(Snapshot);
