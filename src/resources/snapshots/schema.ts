/** Requests and responses of snapshots (docs/interface.md, "Volumes and snapshots"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging, ShortText, SizeGib, Uuid } from '../../http/shapes.ts';
import { CreateTags, Tag, UpdateTags } from '../../tags/tags.ts';

export const SnapshotPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, snapshot_id: Uuid });

export const snapshotStatuses = [
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

const Description = Type.String({ maxLength: 1024 });

export const CreateSnapshot = Type.Object(
  {
    name: Name,
    volume_id: Uuid,
    description: Type.Optional(Nullable(Description)),
    tags: Type.Optional(CreateTags),
    /** The Terraform provider writes tags under this name. */
    metadata: Type.Optional(CreateTags),
  },
  { additionalProperties: false },
);
export type CreateSnapshot = Static<typeof CreateSnapshot>;

export const UpdateSnapshot = Type.Object(
  { name: Type.Optional(Name), tags: Type.Optional(UpdateTags) },
  { additionalProperties: false },
);
export type UpdateSnapshot = Static<typeof UpdateSnapshot>;

export const ListSnapshots = Type.Object({
  ...Paging(1000),
  instance_id: Type.Optional(ShortText),
  lifecycle_policy_id: Type.Optional(IntegerId),
  schedule_id: Type.Optional(Uuid),
  volume_id: Type.Optional(Uuid),
});
export type ListSnapshots = Static<typeof ListSnapshots>;

export const Snapshot = Type.Object({
  id: Uuid,
  name: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  creator_task_id: Uuid,
  description: Nullable(Type.String()),
  project_id: Type.Integer(),
  region: Type.String(),
  region_id: Type.Integer(),
  size: SizeGib,
  status: Type.Enum([...snapshotStatuses]),
  tags: Type.Array(Tag),
  task_id: Nullable(Uuid),
  updated_at: Type.String({ format: 'date-time' }),
  volume_id: Uuid,
});
export type Snapshot = Static<typeof Snapshot>;
export const SnapshotCollection = Collection(Snapshot);
export type SnapshotCollection = Static<typeof SnapshotCollection>;
