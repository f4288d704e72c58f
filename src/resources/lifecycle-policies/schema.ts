/** Requests and responses of lifecycle policies. */
import { type Static, type TSchema, Type } from 'typebox';
import {
  Collection,
  DateTime,
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

/** The official clients send `need_volumes` with every operation on one policy. */
export const NeedVolumes = Type.Object({
  need_volumes: Type.Optional(Type.Boolean({ description: 'Whether the response contains `volumes`', default: false })),
});
export const ListLifecyclePolicies = Type.Object({ ...NeedVolumes.properties, ...Paging(1000) });
export type ListLifecyclePolicies = Static<typeof ListLifecyclePolicies>;

const lifecyclePolicyStatuses = ['active', 'paused'] as const;
export const LifecyclePolicyStatus = Type.Enum([...lifecyclePolicyStatuses], {
  description: '`active`, or `paused`: no schedule runs and no snapshot expires',
});
export type LifecyclePolicyStatus = Static<typeof LifecyclePolicyStatus>;
const Action = Type.Enum(['volume_snapshot'], { description: 'Always `volume_snapshot`' });

export const maxSchedules = 10;
const maxVolumes = 10_000;
export const defaultTemplate = 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}';
/** Placeholders of a name template. */
export const placeholders = ['volume_id', 'lifecycle_policy_id', 'schedule_id', 'scheduled_at'] as const;

/** Null means the same as absent, so that clients can send back what they read. */
const Maybe = <T extends TSchema>(schema: T, description: string) =>
  Type.Optional(Described(Nullable(schema), description));
const Count = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const CronField = Type.String({ maxLength: 1000 });

const cronDescriptions = {
  month: 'cron: months, 1 to 12 or names such as `jan-mar`',
  day: 'cron: days of the month, 1 to 31, `last`, or weekdays such as `2nd mon` and `last fri`',
  week: 'cron: ISO weeks, 1 to 53',
  day_of_week: 'cron: weekdays, 0 (Monday) to 6 or names such as `mon-fri`',
  hour: 'cron: hours, 0 to 23',
  minute: 'cron: minutes, 0 to 59',
};
const timezoneDescription = 'cron: IANA name of the time zone of the other fields';
const intervalDescriptions = {
  weeks: 'interval: weeks between runs',
  days: 'interval: days between runs',
  hours: 'interval: hours between runs',
  minutes: 'interval: minutes between runs',
};
const retentionDescriptions = {
  weeks: 'Weeks of the retention time',
  days: 'Days of the retention time',
  hours: 'Hours of the retention time',
  minutes: 'Minutes of the retention time',
};

const durationInput = (descriptions: typeof intervalDescriptions) => ({
  weeks: Maybe(Count, descriptions.weeks),
  days: Maybe(Count, descriptions.days),
  hours: Maybe(Count, descriptions.hours),
  minutes: Maybe(Count, descriptions.minutes),
});
const retention = 'Age at which snapshots are deleted, the sum of the fields; null: no limit';
const CreateRetentionTime = Type.Object(durationInput(retentionDescriptions), {
  title: 'CreateRetentionTime',
  additionalProperties: false,
});

const schedule = { type: 'cron', day_of_week: 'mon-fri', hour: '3', timezone: 'Europe/Luxembourg', max_quantity: 7 };

const maxQuantity = {
  exclusiveMinimum: 0,
  maximum: 10_000,
  description: 'Number of snapshots of each volume that the schedule keeps',
};

/** One shape for both types, so that errors name their field. The service rejects fields of the other type. */
export const CreateSchedule = Type.Object(
  {
    type: Type.Enum(['cron', 'interval'], {
      description: '`cron`: at certain local times; `interval`: at a fixed distance from the creation of the schedule',
    }),
    max_quantity: Type.Optional(Type.Integer({ ...maxQuantity, default: 2 })),
    resource_name_template: Maybe(
      Type.String({ minLength: 1, maxLength: 255, pattern: noControlCharacters }),
      `Name of the snapshots; ${placeholders.map((name) => `\`{${name}}\``).join(', ')} are replaced; by default ` +
        `"${defaultTemplate}"`,
    ),
    retention_time: Maybe(CreateRetentionTime, retention),
    month: Maybe(CronField, cronDescriptions.month),
    day: Maybe(CronField, cronDescriptions.day),
    week: Maybe(CronField, cronDescriptions.week),
    day_of_week: Maybe(CronField, cronDescriptions.day_of_week),
    hour: Maybe(CronField, cronDescriptions.hour),
    minute: Maybe(CronField, cronDescriptions.minute),
    timezone: Maybe(Type.String({ maxLength: 100 }), `${timezoneDescription}; \`UTC\` by default`),
    ...durationInput(intervalDescriptions),
  },
  {
    title: 'CreateLifecyclePolicySchedule',
    additionalProperties: false,
    description:
      'A cron schedule needs at least one of `month`, `day`, `week`, `day_of_week`, `hour` and `minute`, an interval at ' +
      'least one of `weeks`, `days`, `hours` and `minutes`. Fields of the other type are rejected.',
    examples: [schedule, { type: 'interval', hours: 6, retention_time: { weeks: 2 }, max_quantity: 100 }],
  },
);
export type CreateSchedule = Static<typeof CreateSchedule>;

export const UpdateSchedule = Type.Object(
  {
    ...CreateSchedule.properties,
    type: Type.Optional(CreateSchedule.properties.type),
    max_quantity: Type.Optional(Type.Integer(maxQuantity)),
  },
  {
    title: 'UpdateLifecyclePolicySchedule',
    additionalProperties: false,
    description:
      'Omitted fields and an empty `retention_time` are unchanged, null removes. With another `type` the fields of the old one are dropped. A changed ' +
      'interval starts at the change.',
    examples: [{ hour: '4', max_quantity: 14 }],
  },
);
export type UpdateSchedule = Static<typeof UpdateSchedule>;

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
    examples: [{ action: 'volume_snapshot', name: 'nightly', schedules: [schedule], volume_ids: [exampleUuid] }],
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
  { title: 'AddLifecyclePolicySchedules', additionalProperties: false, examples: [{ schedules: [schedule] }] },
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

export const PreviewSchedule = Type.Object(
  {
    schedule: CreateSchedule,
    from: Type.Optional(
      Type.String({
        format: 'iso-date-time',
        description: 'Only later run times are returned; by default the current time',
      }),
    ),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10, description: 'Number of run times' })),
  },
  { title: 'PreviewSchedule', additionalProperties: false, examples: [{ schedule, count: 5 }] },
);
export type PreviewSchedule = Static<typeof PreviewSchedule>;
export const RunTime = Type.Object(
  {
    utc: Type.String({ description: 'Time of the run in UTC' }),
    local: Type.String({ description: 'The same time with the offset of the time zone of the schedule' }),
  },
  { title: 'ScheduleRunTime' },
);
export const SchedulePreview = Type.Object(
  { runs: Type.Array(RunTime, { description: 'The next run times; fewer than `count` if the schedule ends' }) },
  { title: 'SchedulePreview' },
);
export type SchedulePreview = Static<typeof SchedulePreview>;

export const PriceLifecyclePolicy = Type.Object(
  {
    schedules: Type.Optional(Schedules),
    volume_ids: Type.Array(Uuid, { minItems: 1, maxItems: 100, description: 'IDs of volumes, at most 100' }),
  },
  {
    title: 'PriceLifecyclePolicy',
    additionalProperties: false,
    examples: [{ schedules: [schedule], volume_ids: [exampleUuid] }],
  },
);
export type PriceLifecyclePolicy = Static<typeof PriceLifecyclePolicy>;

const duration = (descriptions: typeof intervalDescriptions) => ({
  weeks: OrNull.integer(descriptions.weeks),
  days: OrNull.integer(descriptions.days),
  hours: OrNull.integer(descriptions.hours),
  minutes: OrNull.integer(descriptions.minutes),
});
const RetentionTime = Type.Object(duration(retentionDescriptions), { title: 'RetentionTime' });
const CommonSchedule = {
  id: Described(Uuid, 'ID of the schedule'),
  max_quantity: Type.Integer({ description: 'Number of snapshots of each volume that the schedule keeps' }),
  owner: Type.String({ description: 'Always `lifecycle_policy`' }),
  owner_id: Type.Integer({ description: 'ID of the lifecycle policy' }),
  resource_name_template: Type.String({ description: 'Name of the snapshots, with placeholders' }),
  retention_time: Described(Nullable(RetentionTime), retention),
  user_id: Type.Integer({ description: 'ID of the token that created the schedule' }),
};
const CronSchedule = Type.Object(
  {
    ...CommonSchedule,
    type: Type.Literal('cron', { description: 'Always `cron`' }),
    month: OrNull.text(cronDescriptions.month),
    day: OrNull.text(cronDescriptions.day),
    week: OrNull.text(cronDescriptions.week),
    day_of_week: OrNull.text(cronDescriptions.day_of_week),
    hour: OrNull.text(cronDescriptions.hour),
    minute: OrNull.text(cronDescriptions.minute),
    timezone: Type.String({ description: timezoneDescription }),
  },
  { title: 'CronSchedule' },
);
const IntervalSchedule = Type.Object(
  {
    ...CommonSchedule,
    type: Type.Literal('interval', { description: 'Always `interval`' }),
    ...duration(intervalDescriptions),
  },
  { title: 'IntervalSchedule' },
);
export const Schedule = Type.Union([CronSchedule, IntervalSchedule], {
  title: 'LifecyclePolicySchedule',
  description: 'Omitted fields of the request are null or have their defaults',
});
export type Schedule = Static<typeof Schedule>;

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
export type LifecyclePolicyCollection = Static<typeof LifecyclePolicyCollection>;

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

export const ListRuns = Type.Object({
  ...Paging(100),
  schedule_id: Type.Optional(Described(Uuid, 'Only runs of this schedule')),
});
export type ListRuns = Static<typeof ListRuns>;

const volume_id = Described(Uuid, 'ID of the volume');
const SnapshotOfVolume = Type.Object(
  { volume_id, snapshot_id: Described(Uuid, 'ID of the snapshot') },
  { title: 'RunSnapshot' },
);
const FailedVolume = Type.Object(
  { volume_id, message: Type.String({ description: 'Why the volume has no snapshot' }) },
  { title: 'RunFailure' },
);
const PendingVolume = Type.Object(
  {
    volume_id,
    snapshot_id: Described(Nullable(Uuid), 'ID of the snapshot; null until it is requested'),
  },
  { title: 'PendingRunSnapshot' },
);
export const Run = Type.Object(
  {
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
  },
  { title: 'LifecyclePolicyRun' },
);
export type Run = Static<typeof Run>;
export const RunCollection = Collection(Run);
export type RunCollection = Static<typeof RunCollection>;
