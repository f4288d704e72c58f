/** Requests and responses of lifecycle policies. */
import { type Static, Type } from 'typebox';
import {
  Collection,
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

export const CreateLifecyclePolicy = Type.Object(
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
  {
    title: 'CreateLifecyclePolicy',
    additionalProperties: false,
    examples: [{ action: 'volume_snapshot', name: 'nightly', schedules: [exampleSchedule], volume_ids: [exampleUuid] }],
  },
);
export type CreateLifecyclePolicy = Static<typeof CreateLifecyclePolicy>;

export const UpdateLifecyclePolicy = Type.Object(
  { name: Type.Optional(Name), status: Type.Optional(LifecyclePolicyStatus) },
  { title: 'UpdateLifecyclePolicy', additionalProperties: false, examples: [{ status: 'paused' }] },
);
export type UpdateLifecyclePolicy = Static<typeof UpdateLifecyclePolicy>;

export const AddSchedules = Type.Object(
  { schedules: Schedules },
  { title: 'AddLifecyclePolicySchedules', additionalProperties: false, examples: [{ schedules: [exampleSchedule] }] },
);
export const RemoveSchedules = Type.Object(
  { schedule_ids: Type.Array(Uuid, { maxItems: 1000, description: 'IDs of schedules of the policy' }) },
  {
    title: 'RemoveLifecyclePolicySchedules',
    additionalProperties: false,
    examples: [{ schedule_ids: [exampleUuid] }],
  },
);
export const RunLifecyclePolicy = Type.Object(
  {
    schedule_ids: Type.Optional(
      Type.Array(Uuid, { minItems: 1, maxItems: maxSchedules, description: 'Only these schedules; by default all' }),
    ),
  },
  { title: 'RunLifecyclePolicy', additionalProperties: false, examples: [{}] },
);
export type RunLifecyclePolicy = Static<typeof RunLifecyclePolicy>;
export const VolumeIds = Type.Object(
  { volume_ids: VolumeIdList },
  { title: 'LifecyclePolicyVolumeIds', additionalProperties: false, examples: [{ volume_ids: [exampleUuid] }] },
);

export const PriceLifecyclePolicy = Type.Object(
  {
    schedules: Type.Optional(Schedules),
    volume_ids: Type.Array(Uuid, { minItems: 1, maxItems: 100, description: 'IDs of volumes, at most 100' }),
  },
  {
    title: 'PriceLifecyclePolicy',
    additionalProperties: false,
    examples: [{ schedules: [exampleSchedule], volume_ids: [exampleUuid] }],
  },
);
export type PriceLifecyclePolicy = Static<typeof PriceLifecyclePolicy>;

const LifecyclePolicyVolume = Type.Object(
  {
    volume_id: Described(Uuid, 'ID of the volume'),
    volume_name: Type.String({ description: 'Name of the volume' }),
  },
  { title: 'LifecyclePolicyVolume' },
);

const { project_id, region_id } = PlaceFields;
export const LifecyclePolicy = Type.Object(
  {
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
  },
  { title: 'LifecyclePolicy' },
);
export type LifecyclePolicy = Static<typeof LifecyclePolicy>;
export const LifecyclePolicyCollection = Collection(LifecyclePolicy);

export const LifecyclePolicyUsage = Type.Object(
  {
    max_cost: Described(Price, 'Price of the largest size of all snapshots'),
    max_volume_snapshot_count_usage: Type.Integer({ description: 'Largest number of snapshots of all volumes' }),
    max_volume_snapshot_sequence_length: Type.Integer({ description: 'Largest number of snapshots of one volume' }),
    max_volume_snapshot_size_usage: Type.Integer({ description: 'Largest size of all snapshots in GiB' }),
  },
  { title: 'LifecyclePolicyUsage' },
);
export type LifecyclePolicyUsage = Static<typeof LifecyclePolicyUsage>;

const VolumePrice = Type.Object(
  {
    discount: Nullable(Type.Number({ description: 'Discount of the client in percent' })),
    price: Type.Number({ description: 'Price of the snapshots of the volume with tax' }),
    type: VolumeTypeName,
  },
  { title: 'LifecyclePolicyVolumePrice' },
);
const VolumePrices = Type.Object(
  {
    volumes: Type.Array(Nullable(VolumePrice), {
      description: 'Prices of the volumes, in the order of the request without duplicates; null: no price',
    }),
  },
  { title: 'LifecyclePolicyVolumePrices' },
);
const { currency_code, price_status, price_without_discount_per_month, tax_percent } = Price.properties;
export const LifecyclePolicyPrice = Type.Object(
  {
    currency_code,
    discount: OrNull.number('Discount of the client in percent'),
    per_hour: Described(VolumePrices, 'Prices of an hour, by volume'),
    per_month: Described(VolumePrices, 'Prices of a month (730 hours), by volume'),
    price_status,
    price_without_discount_per_month,
    tax_percent,
    total_price_per_hour: OrNull.number('Price of an hour with tax'),
    total_price_per_month: OrNull.number('Price of a month (730 hours) with tax'),
  },
  { title: 'LifecyclePolicyPrice' },
);
export type LifecyclePolicyPrice = Static<typeof LifecyclePolicyPrice>;
