/** Requests and responses of volumes. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  CurrentSizeGib,
  DateTime,
  Described,
  exampleUuid,
  ExtendBody,
  Input,
  IntegerId,
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
import { selectBranch } from '../../http/validation.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';

export const VolumeTypeName = Type.Enum(['cold', 'ssd_hiiops', 'ssd_local', 'ssd_lowlatency', 'standard', 'ultra'], {
  title: 'VolumeTypeName',
  description: 'Type of the volume',
});
export type VolumeTypeName = Static<typeof VolumeTypeName>;

const volumeStatuses = [
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
  attachment_tag: Type.Optional(
    Type.String({
      pattern: pattern('^[^,/]{1,60}$', '1 to 60 characters without `,` and `/`'),
      maxLength: 60,
      description: 'Accepted and ignored',
    }),
  ),
  instance_id_to_attach_to: Type.Optional(
    Type.String({ maxLength: 255, description: 'Rejected with 400: instances are not supported' }),
  ),
  lifecycle_policy_ids: Type.Optional(
    Type.Array(IntegerId, {
      maxItems: 100,
      description: 'IDs of lifecycle policies that take snapshots of the volume',
    }),
  ),
  ...newTagFields,
  type_name: Type.Optional(
    Described(
      VolumeTypeName,
      'Type of the volume, one that the region offers; by default `standard`, or the type of the snapshot',
    ),
  ),
};

const CreateNewVolume = Input('CreateNewVolume', {
  ...common,
  size: SizeGib,
  source: Type.Literal('new-volume', { description: 'An empty volume' }),
});

const CreateVolumeFromSnapshot = Input('CreateVolumeFromSnapshot', {
  ...common,
  size: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Size in GiB; the size of the snapshot, which is also the default' }),
  ),
  snapshot_id: Described(Uuid, 'ID of the snapshot to copy'),
  source: Type.Literal('snapshot', { description: 'A volume with the data of a snapshot' }),
});

const CreateVolumeFromImage = Input(
  'CreateVolumeFromImage',
  {
    ...common,
    image_id: Described(Uuid, 'ID of the image'),
    size: SizeGib,
    source: Type.Literal('image', { description: 'A volume with the data of an image' }),
  },
  'Rejected with 400: images are not supported',
);

const sources = ['new-volume', 'snapshot'] as const;
const CreateVolumeFromUnknown = Type.Object(
  { ...common, size: SizeGib, source: Type.Enum([...sources]) },
  { additionalProperties: false },
);

export const CreateVolume = selectBranch(
  Type.Union([CreateNewVolume, CreateVolumeFromSnapshot, CreateVolumeFromImage], {
    title: 'CreateVolume',
    examples: [
      { source: 'new-volume', name: 'my-volume', size: 1, type_name: 'standard', tags: { team: 'web' } },
      { source: 'snapshot', name: 'my-copy', snapshot_id: exampleUuid },
    ],
  }),
  // A body with an unknown source is validated by the last shape, whose error lists the valid sources.
  (body) => [...sources, 'image', body.source].indexOf(body.source as string),
  CreateVolumeFromUnknown,
);
export type CreateVolume = Static<typeof CreateVolume>;

export const UpdateVolume = Body('UpdateVolume', [{ name: 'renamed-volume', tags: { team: null, stage: 'test' } }], {
  name: Type.Optional(Name),
  size: CurrentSizeGib,
  tags: Type.Optional(UpdateTags),
});
export type UpdateVolume = Static<typeof UpdateVolume>;

export const ExtendVolume = ExtendBody('ExtendVolume');

export const RetypeVolume = Body('RetypeVolume', [{ volume_type: 'standard' }], {
  volume_type: Type.Enum(['ssd_hiiops', 'standard'], { description: 'New type, one that the region offers' }),
});

export const AttachVolume = Body('AttachVolume', [{ instance_id: exampleUuid }], {
  instance_id: Described(Uuid, 'Rejected with 400: instances are not supported'),
  attachment_tag: common.attachment_tag,
});

export const DetachVolume = Body('DetachVolume', [{ instance_id: exampleUuid }], {
  instance_id: AttachVolume.properties.instance_id,
});

export const DeleteVolume = Type.Object({
  snapshots: Type.Optional(
    Type.String({ maxLength: 4096, description: 'Accepted and ignored: all snapshots of the volume are deleted' }),
  ),
});

export const ListVolumes = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  bootable: Type.Optional(Type.Boolean({ description: 'No volume is bootable: `true` returns an empty list' })),
  cluster_id: Type.Optional(Described(ShortText, 'Clusters are not supported: any value returns an empty list')),
  has_attachments: Type.Optional(Type.Boolean({ description: 'No volume is attached: `true` returns an empty list' })),
  id_part: Type.Optional(Described(ShortText, 'Only volumes whose ID contains this text')),
  instance_id: Type.Optional(Described(Uuid, 'Instances are not supported: any ID returns an empty list')),
  name_part: Type.Optional(Described(ShortText, 'Only volumes whose name contains this text')),
});
export type ListVolumes = Static<typeof ListVolumes>;

const VolumeAttachment = Component('VolumeAttachment', {
  attached_at: Described(Nullable(DateTime), 'When the volume was attached'),
  attachment_id: Type.String({ description: 'ID of the attachment' }),
  device: OrNull.text('Device of the instance'),
  flavor_id: OrNull.text('ID of the flavor of the instance'),
  instance_name: OrNull.text('Name of the instance'),
  server_id: OrNull.text('ID of the instance'),
  volume_id: Described(Uuid, 'ID of the volume'),
});

export const Volume = Component('Volume', {
  id: Described(Uuid, 'ID of the volume'),
  name: Type.String({ description: 'Name of the volume' }),
  attachments: Type.Array(VolumeAttachment, { description: 'Always empty: instances are not supported' }),
  bootable: Type.Boolean({ description: 'Always false' }),
  created_at: Described(DateTime, 'When the volume was requested'),
  is_root_volume: Type.Boolean({ description: 'Always false' }),
  limiter_stats: Type.Null({ description: 'Always null' }),
  metadata: Type.Record(Type.String(), Type.String(), { deprecated: true, description: 'Use `tags`' }),
  // The Terraform provider reads tags under this name.
  metadata_detailed: Type.Array(Tag, { deprecated: true, description: 'Use `tags`' }),
  ...PlaceFields,
  ...TaskFields,
  size: Described(SizeGib, 'Size in GiB; during an extension the old size'),
  snapshot_ids: Type.Array(Uuid, { description: 'IDs of the snapshots of the volume, oldest first' }),
  status: Type.Enum([...volumeStatuses], {
    description:
      'State of the volume; `available` volumes are ready, `error` volumes failed or lost their data and can be ' +
      'deleted, or reverted if they have a snapshot',
  }),
  tags: Type.Array(Tag, { description: 'Tags, by key' }),
  updated_at: Described(DateTime, 'When the volume last changed'),
  volume_image_metadata: Type.Null({ description: 'Always null: images are not supported' }),
  volume_type: VolumeTypeName,
});
export type Volume = Static<typeof Volume>;
export const VolumeCollection = Collection(Volume);
