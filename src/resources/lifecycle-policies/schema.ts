/** Requests and responses of lifecycle policies (docs/interface.md, "Lifecycle policies"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging, Uuid } from '../../http/shapes.ts';
import { Price } from '../pricing/schema.ts';
import { VolumeTypeName } from '../volumes/schema.ts';

export const LifecyclePolicyPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, policy_id: IntegerId });
/** `need_volumes` is what the real clients send. */
export const NeedVolumes = Type.Object({
  need_volumes: Type.Optional(Type.Boolean({ description: 'show `volumes`', default: false })),
});
export const ListLifecyclePolicies = Type.Object({ ...NeedVolumes.properties, ...Paging(1000) });
export type ListLifecyclePolicies = Static<typeof ListLifecyclePolicies>;

export const lifecyclePolicyStatuses = ['active', 'paused'] as const;
export const LifecyclePolicyStatus = Type.Enum([...lifecyclePolicyStatuses]);
export type LifecyclePolicyStatus = Static<typeof LifecyclePolicyStatus>;
const Action = Type.Enum(['volume_snapshot']);

export const maxSchedules = 10;
const maxVolumes = 10_000;
export const defaultTemplate = 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}';
/** What a name template may refer to. */
export const placeholders = ['volume_id', 'lifecycle_policy_id', 'schedule_id', 'scheduled_at'] as const;

/** Null is what an absent one is read as, so it may be written back. */
const Maybe = <T extends Parameters<typeof Nullable>[0]>(schema: T) => Type.Optional(Nullable(schema));
const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const CronField = Type.String({ maxLength: 1000 });

const Durations = { weeks: Maybe(Count), days: Maybe(Count), hours: Maybe(Count), minutes: Maybe(Count) };
const CreateRetentionTime = Type.Object(Durations, { additionalProperties: false });

/** One shape for both types, so that a fault names its field; the service refuses fields of the other type. */
export const CreateSchedule = Type.Object(
  {
    type: Type.Enum(['cron', 'interval']),
    max_quantity: Type.Optional(Type.Integer({ exclusiveMinimum: 0, maximum: 10_000, default: 2 })),
    resource_name_template: Maybe(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: `may hold ${placeholders.map((name) => `{${name}}`).join(', ')}; by default "${defaultTemplate}"`,
      }),
    ),
    retention_time: Maybe(CreateRetentionTime),
    month: Maybe(CronField),
    day: Maybe(CronField),
    week: Maybe(CronField),
    day_of_week: Maybe(CronField),
    hour: Maybe(CronField),
    minute: Maybe(CronField),
    timezone: Maybe(Type.String({ maxLength: 100, description: 'IANA name; UTC by default' })),
    ...Durations,
  },
  {
    additionalProperties: false,
    description:
      'cron: month, day, week, day_of_week, hour, minute as APScheduler has them, and timezone. interval: weeks, days, ' +
      'hours, minutes, measured from creation.',
    examples: [{ type: 'cron', day_of_week: 'mon-fri', hour: '3', timezone: 'Europe/Luxembourg', max_quantity: 7 }],
  },
);
export type CreateSchedule = Static<typeof CreateSchedule>;

const Schedules = Type.Array(CreateSchedule, { maxItems: maxSchedules });
const VolumeIdList = Type.Array(Uuid, { maxItems: maxVolumes });

export const CreateLifecyclePolicy = Type.Object(
  {
    action: Action,
    name: Name,
    schedules: Type.Optional(Schedules),
    status: Type.Optional(LifecyclePolicyStatus),
    volume_ids: Type.Optional(VolumeIdList),
  },
  { additionalProperties: false },
);
export type CreateLifecyclePolicy = Static<typeof CreateLifecyclePolicy>;

export const UpdateLifecyclePolicy = Type.Object(
  { name: Type.Optional(Name), status: Type.Optional(LifecyclePolicyStatus) },
  { additionalProperties: false },
);
export type UpdateLifecyclePolicy = Static<typeof UpdateLifecyclePolicy>;

export const AddSchedules = Type.Object({ schedules: Schedules }, { additionalProperties: false });
export const RemoveSchedules = Type.Object(
  { schedule_ids: Type.Array(Uuid, { maxItems: 1000 }) },
  { additionalProperties: false },
);
export const VolumeIds = Type.Object({ volume_ids: VolumeIdList }, { additionalProperties: false });

export const PreviewSchedule = Type.Object(
  {
    schedule: CreateSchedule,
    from: Type.Optional(Type.String({ format: 'date-time', description: 'now by default' })),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10 })),
  },
  { additionalProperties: false },
);
export type PreviewSchedule = Static<typeof PreviewSchedule>;
export const SchedulePreview = Type.Object({
  runs: Type.Array(Type.Object({ utc: Type.String(), local: Type.String() })),
});
export type SchedulePreview = Static<typeof SchedulePreview>;

export const PriceLifecyclePolicy = Type.Object(
  {
    schedules: Type.Optional(Schedules),
    volume_ids: Type.Array(Uuid, { minItems: 1, maxItems: 100 }),
  },
  { additionalProperties: false },
);
export type PriceLifecyclePolicy = Static<typeof PriceLifecyclePolicy>;

const MaybeText = Nullable(Type.String());
const MaybeCount = Nullable(Type.Integer());
const RetentionTime = Type.Object({ weeks: MaybeCount, days: MaybeCount, hours: MaybeCount, minutes: MaybeCount });
const CommonSchedule = {
  id: Uuid,
  max_quantity: Type.Integer(),
  owner: Type.String(),
  owner_id: Type.Integer(),
  resource_name_template: Type.String(),
  retention_time: Nullable(RetentionTime),
  user_id: Type.Integer(),
};
const CronSchedule = Type.Object({
  ...CommonSchedule,
  type: Type.Literal('cron'),
  month: MaybeText,
  day: MaybeText,
  week: MaybeText,
  day_of_week: MaybeText,
  hour: MaybeText,
  minute: MaybeText,
  timezone: Type.String(),
});
const IntervalSchedule = Type.Object({
  ...CommonSchedule,
  type: Type.Literal('interval'),
  weeks: MaybeCount,
  days: MaybeCount,
  hours: MaybeCount,
  minutes: MaybeCount,
});
export const Schedule = Type.Union([CronSchedule, IntervalSchedule]);
export type Schedule = Static<typeof Schedule>;

export const LifecyclePolicy = Type.Object({
  action: Action,
  id: Type.Integer(),
  name: Type.String(),
  project_id: Type.Integer(),
  region_id: Type.Integer(),
  schedules: Type.Array(Schedule, { description: 'in the order given' }),
  status: LifecyclePolicyStatus,
  user_id: Type.Integer(),
  volumes: Type.Optional(
    Type.Array(Type.Object({ volume_id: Uuid, volume_name: Type.String() }), {
      description: 'with `?need_volumes=true` only',
    }),
  ),
});
export type LifecyclePolicy = Static<typeof LifecyclePolicy>;
export const LifecyclePolicyCollection = Collection(LifecyclePolicy);
export type LifecyclePolicyCollection = Static<typeof LifecyclePolicyCollection>;

export const LifecyclePolicyUsage = Type.Object({
  max_cost: Price,
  max_volume_snapshot_count_usage: Type.Integer({ description: 'snapshots of all volumes together' }),
  max_volume_snapshot_sequence_length: Type.Integer({ description: 'snapshots of one volume' }),
  max_volume_snapshot_size_usage: Type.Integer({ description: 'GiB' }),
});
export type LifecyclePolicyUsage = Static<typeof LifecyclePolicyUsage>;

const MaybeNumber = Nullable(Type.Number());
const VolumePrices = Type.Object({
  volumes: Type.Array(
    Nullable(
      Type.Object({
        discount: Nullable(Type.Number({ description: 'percent' })),
        price: Type.Number(),
        type: VolumeTypeName,
      }),
    ),
  ),
});
export const LifecyclePolicyPrice = Type.Object({
  currency_code: Price.properties.currency_code,
  discount: Nullable(Type.Number({ description: 'percent' })),
  per_hour: VolumePrices,
  per_month: VolumePrices,
  price_status: Price.properties.price_status,
  price_without_discount_per_month: MaybeNumber,
  tax_percent: Type.Number(),
  total_price_per_hour: MaybeNumber,
  total_price_per_month: MaybeNumber,
});
export type LifecyclePolicyPrice = Static<typeof LifecyclePolicyPrice>;

export const ListRuns = Type.Object({ ...Paging(100), schedule_id: Type.Optional(Uuid) });
export type ListRuns = Static<typeof ListRuns>;

const SnapshotOfVolume = Type.Object({ volume_id: Uuid, snapshot_id: Uuid });
const Time = Type.String({ format: 'date-time' });
export const Run = Type.Object({
  id: Uuid,
  schedule_id: Uuid,
  due_at: Time,
  started_at: Time,
  done_at: Nullable(Time),
  snapshots: Type.Array(SnapshotOfVolume, { description: 'made and good' }),
  expired: Type.Array(SnapshotOfVolume, {
    description: 'older ones that went by retention on account of it; one that is still there is not among them',
  }),
  failed: Type.Array(Type.Object({ volume_id: Uuid, message: Type.String() })),
  pending: Type.Array(Type.Object({ volume_id: Uuid, snapshot_id: Nullable(Uuid) }), {
    description: 'not done yet',
  }),
});
export type Run = Static<typeof Run>;
export const RunCollection = Collection(Run);
export type RunCollection = Static<typeof RunCollection>;
