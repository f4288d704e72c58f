/** Requests and responses of lifecycle policies. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  Name,
  noControlCharacters,
  Nullable,
  OrNull,
  Paging,
  PlaceFields,
  Uuid,
} from '../../http/shapes.ts';
import { Price } from '../pricing/schema.ts';
import { VolumeTypeName } from '../volumes/schema.ts';
import { CreateSchedule, exampleSchedule, Schedule } from './schedule/schema.ts';

/** The official clients send `need_volumes` with every operation on one policy. */
export const NeedVolumes = Type.Object({
  need_volumes: Type.Optional(Type.Boolean({ description: 'Whether the response contains `volumes`', default: false })),
});
export const ListLifecyclePolicies = Type.Object({ ...NeedVolumes.properties, ...Paging(1000) });
export type ListLifecyclePolicies = Static<typeof ListLifecyclePolicies>;

export const LifecyclePolicyStatus = Type.Enum(['active', 'paused'], {
  description: '`active`, or `paused`: no schedule runs and no snapshot expires',
});
export type LifecyclePolicyStatus = Static<typeof LifecyclePolicyStatus>;
const Action = Type.Enum(['volume_snapshot'], { description: 'Always `volume_snapshot`' });

export const maxSchedules = 10;
const maxVolumes = 10_000;
const Schedules = Type.Array(CreateSchedule, { maxItems: maxSchedules, description: 'Schedules, at most 10' });
const VolumeIdList = Type.Array(Uuid, { maxItems: maxVolumes, description: 'IDs of volumes, at most 10,000' });

export const CreateLifecyclePolicy = Body(
  'CreateLifecyclePolicy',
  [{ action: 'volume_snapshot', name: 'nightly', schedules: [exampleSchedule], volume_ids: [exampleUuid] }],
  {
    action: Action,
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: noControlCharacters,
      description: '1 to 255 characters without control characters',
    }),
    schedules: Type.Optional(Schedules),
    status: Type.Optional(
      Described(LifecyclePolicyStatus, '`active` (default), or `paused`: no schedule runs and no snapshot expires'),
    ),
    volume_ids: Type.Optional(VolumeIdList),
  },
);
export type CreateLifecyclePolicy = Static<typeof CreateLifecyclePolicy>;

export const UpdateLifecyclePolicy = Body('UpdateLifecyclePolicy', [{ status: 'paused' }], {
  name: Type.Optional(Name),
  status: Type.Optional(LifecyclePolicyStatus),
});
export type UpdateLifecyclePolicy = Static<typeof UpdateLifecyclePolicy>;

export const AddSchedules = Body('AddLifecyclePolicySchedules', [{ schedules: [exampleSchedule] }], {
  schedules: Schedules,
});
export const RemoveSchedules = Body('RemoveLifecyclePolicySchedules', [{ schedule_ids: [exampleUuid] }], {
  schedule_ids: Type.Array(Uuid, { maxItems: 1000, description: 'IDs of schedules of the policy' }),
});
export const RunLifecyclePolicy = Body('RunLifecyclePolicy', [{}], {
  schedule_ids: Type.Optional(
    Type.Array(Uuid, { minItems: 1, maxItems: maxSchedules, description: 'Only these schedules; by default all' }),
  ),
});
export type RunLifecyclePolicy = Static<typeof RunLifecyclePolicy>;
export const VolumeIds = Body('LifecyclePolicyVolumeIds', [{ volume_ids: [exampleUuid] }], {
  volume_ids: VolumeIdList,
});

export const PriceLifecyclePolicy = Body(
  'PriceLifecyclePolicy',
  [{ schedules: [exampleSchedule], volume_ids: [exampleUuid] }],
  {
    schedules: Type.Optional(Schedules),
    volume_ids: Type.Array(Uuid, { minItems: 1, maxItems: 100, description: 'IDs of volumes, at most 100' }),
  },
);
export type PriceLifecyclePolicy = Static<typeof PriceLifecyclePolicy>;

const LifecyclePolicyVolume = Component('LifecyclePolicyVolume', {
  volume_id: Described(Uuid, 'ID of the volume'),
  volume_name: Type.String({ description: 'Name of the volume' }),
});

const { project_id, region_id } = PlaceFields;
export const LifecyclePolicy = Component('LifecyclePolicy', {
  action: Action,
  id: Type.Integer({ description: 'ID of the policy' }),
  name: Type.String({ description: 'Name of the policy' }),
  project_id,
  region_id,
  schedules: Type.Array(Schedule, { description: 'Schedules, in the order of their creation' }),
  status: LifecyclePolicyStatus,
  user_id: Type.Integer({ description: 'ID of the token that created the policy' }),
  volumes: Type.Optional(
    Type.Array(LifecyclePolicyVolume, { description: 'Volumes of the policy; only with `need_volumes=true`' }),
  ),
});
export type LifecyclePolicy = Static<typeof LifecyclePolicy>;
export const LifecyclePolicyCollection = Collection(LifecyclePolicy);

export const LifecyclePolicyUsage = Component('LifecyclePolicyUsage', {
  max_cost: Described(Price, 'Price of the largest size of all snapshots'),
  max_volume_snapshot_count_usage: Type.Integer({ description: 'Largest number of snapshots of all volumes' }),
  max_volume_snapshot_sequence_length: Type.Integer({ description: 'Largest number of snapshots of one volume' }),
  max_volume_snapshot_size_usage: Type.Integer({ description: 'Largest size of all snapshots in GiB' }),
});
export type LifecyclePolicyUsage = Static<typeof LifecyclePolicyUsage>;

const VolumePrice = Component('LifecyclePolicyVolumePrice', {
  discount: Nullable(Type.Number({ description: 'Discount of the client in percent' })),
  price: Type.Number({ description: 'Price of the snapshots of the volume with tax' }),
  type: VolumeTypeName,
});
const VolumePrices = Component('LifecyclePolicyVolumePrices', {
  volumes: Type.Array(Nullable(VolumePrice), {
    description: 'Prices of the volumes, in the order of the request without duplicates; null: no price',
  }),
});
const { currency_code, price_status, price_without_discount_per_month, tax_percent } = Price.properties;
export const LifecyclePolicyPrice = Component('LifecyclePolicyPrice', {
  currency_code,
  discount: OrNull.number('Discount of the client in percent'),
  per_hour: Described(VolumePrices, 'Prices of an hour, by volume'),
  per_month: Described(VolumePrices, 'Prices of a month (730 hours), by volume'),
  price_status,
  price_without_discount_per_month,
  tax_percent,
  total_price_per_hour: OrNull.number('Price of an hour with tax'),
  total_price_per_month: OrNull.number('Price of a month (730 hours) with tax'),
});
export type LifecyclePolicyPrice = Static<typeof LifecyclePolicyPrice>;
