/** Requests and responses of volumes (docs/interface.md, "Volumes and snapshots"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging, ShortText, SizeGib, Uuid } from '../../http/shapes.ts';
import { selectBranch } from '../../http/validation.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { CreateTags, Tag, UpdateTags } from '../../tags/tags.ts';

export const VolumePath = Type.Object({ project_id: IntegerId, region_id: IntegerId, volume_id: Uuid });

export const volumeTypeNames = ['cold', 'ssd_hiiops', 'ssd_local', 'ssd_lowlatency', 'standard', 'ultra'] as const;
export const VolumeTypeName = Type.Enum([...volumeTypeNames]);
export type VolumeTypeName = (typeof volumeTypeNames)[number];

export const volumeStatuses = [
  'attaching',
  'available',
  'awaiting-transfer',
  'backing-up',
  'creating',
  'deleting',
  'detaching',
  'downloading',
  'error',
  'error_backing-up',
  'error_deleting',
  'error_extending',
  'error_restoring',
  'extending',
  'in-use',
  'maintenance',
  'reserved',
  'restoring-backup',
  'retyping',
  'reverting',
  'uploading',
] as const;
export type VolumeStatus = (typeof volumeStatuses)[number];

const common = {
  name: Name,
  attachment_tag: Type.Optional(Type.String({ pattern: '^[^,/]{1,60}$', maxLength: 60 })),
  instance_id_to_attach_to: Type.Optional(
    Type.String({ maxLength: 255, description: 'refused: there are no instances here' }),
  ),
  lifecycle_policy_ids: Type.Optional(Type.Array(IntegerId, { maxItems: 100, uniqueItems: true })),
  tags: Type.Optional(CreateTags),
  /** The Terraform provider writes tags under this name. */
  metadata: Type.Optional(CreateTags),
  type_name: Type.Optional(VolumeTypeName),
};

const CreateNewVolume = Type.Object(
  { ...common, size: SizeGib, source: Type.Literal('new-volume') },
  { additionalProperties: false },
);

const CreateVolumeFromSnapshot = Type.Object(
  {
    ...common,
    size: Type.Optional(Type.Integer({ minimum: 1, description: 'GiB; the size of the snapshot, if given' })),
    snapshot_id: Uuid,
    source: Type.Literal('snapshot'),
  },
  { additionalProperties: false },
);

const CreateVolumeFromImage = Type.Object(
  { ...common, image_id: Uuid, size: SizeGib, source: Type.Literal('image') },
  { additionalProperties: false, description: 'refused: there are no images here' },
);

const sources = ['new-volume', 'snapshot'] as const;
const CreateVolumeFromUnknown = Type.Object(
  { ...common, size: SizeGib, source: Type.Enum([...sources]) },
  { additionalProperties: false },
);

export const CreateVolume = selectBranch(
  Type.Union([CreateNewVolume, CreateVolumeFromSnapshot, CreateVolumeFromImage]),
  // One that is none of them is checked by what names them all.
  (body) => [...sources, 'image', body.source].indexOf(body.source as string),
  CreateVolumeFromUnknown,
);
export type CreateVolume = Static<typeof CreateVolume>;

export const UpdateVolume = Type.Object(
  { name: Type.Optional(Name), tags: Type.Optional(UpdateTags) },
  { additionalProperties: false },
);
export type UpdateVolume = Static<typeof UpdateVolume>;

export const ExtendVolume = Type.Object({ size: SizeGib }, { additionalProperties: false });

export const DeleteVolume = Type.Object({
  snapshots: Type.Optional(
    Type.String({
      maxLength: 16_384,
      description:
        'ids of its snapshots to delete with it, separated by commas; those of other volumes of the project are left alone',
    }),
  ),
});

export const ListVolumes = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  bootable: Type.Optional(Type.Boolean()),
  cluster_id: Type.Optional(ShortText),
  has_attachments: Type.Optional(Type.Boolean()),
  id_part: Type.Optional(ShortText),
  instance_id: Type.Optional(ShortText),
  name_part: Type.Optional(ShortText),
});
export type ListVolumes = Static<typeof ListVolumes>;

/** Nothing is ever attached; the shape is for clients that read it. */
const VolumeAttachment = Type.Object({
  attached_at: Nullable(Type.String()),
  attachment_id: Type.String(),
  device: Nullable(Type.String()),
  flavor_id: Nullable(Type.String()),
  instance_name: Nullable(Type.String()),
  server_id: Nullable(Type.String()),
  volume_id: Uuid,
});

export const Volume = Type.Object({
  id: Uuid,
  name: Type.String(),
  attachments: Type.Array(VolumeAttachment),
  bootable: Type.Boolean(),
  created_at: Type.String({ format: 'date-time' }),
  creator_task_id: Uuid,
  is_root_volume: Type.Boolean(),
  limiter_stats: Type.Null(),
  metadata: Type.Record(Type.String(), Type.String(), { deprecated: true, description: '`tags`, as a map' }),
  /** The Terraform provider reads tags under this name. */
  metadata_detailed: Type.Array(Tag, { deprecated: true, description: '`tags`' }),
  project_id: Type.Integer(),
  region: Type.String(),
  region_id: Type.Integer(),
  size: SizeGib,
  snapshot_ids: Type.Array(Uuid, { description: 'oldest first' }),
  status: Type.Enum([...volumeStatuses]),
  tags: Type.Array(Tag),
  task_id: Nullable(Uuid),
  updated_at: Type.String({ format: 'date-time' }),
  volume_image_metadata: Type.Null(),
  volume_type: VolumeTypeName,
});
export type Volume = Static<typeof Volume>;
export const VolumeCollection = Collection(Volume);
export type VolumeCollection = Static<typeof VolumeCollection>;
