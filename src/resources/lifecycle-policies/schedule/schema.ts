/** Requests and responses of schedules. */
import { type Static, type TSchema, Type } from 'typebox';
import {
  Body,
  Component,
  Described,
  FieldsOf,
  Input,
  Instant,
  noControlCharacters,
  Nullable,
  OrNull,
  Uuid,
} from '../../../http/shapes.ts';

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

const MaybeCount = (description: string) => Maybe(Count, description);
const retention = 'Age at which snapshots are deleted, the sum of the fields; null: no limit';
const CreateRetentionTime = Input('CreateRetentionTime', FieldsOf(retentionDescriptions, MaybeCount));

export const exampleSchedule = {
  type: 'cron',
  day_of_week: 'mon-fri',
  hour: '3',
  timezone: 'Europe/Luxembourg',
  max_quantity: 7,
};

export const defaultQuantity = 2;
const maxQuantity = {
  exclusiveMinimum: 0,
  maximum: 10_000,
  description: 'Number of snapshots of each volume that the schedule keeps',
};

/** One shape for both types, so that errors name their field. The service rejects fields of the other type. */
export const CreateSchedule = Body(
  'CreateLifecyclePolicySchedule',
  [exampleSchedule, { type: 'interval', hours: 6, retention_time: { weeks: 2 }, max_quantity: 100 }],
  {
    type: Type.Enum(['cron', 'interval'], {
      description: '`cron`: at certain local times; `interval`: at a fixed distance from the creation of the schedule',
    }),
    max_quantity: Type.Optional(Type.Integer({ ...maxQuantity, default: defaultQuantity })),
    resource_name_template: Maybe(
      Type.String({ minLength: 1, maxLength: 255, pattern: noControlCharacters }),
      `Name of the snapshots; ${placeholders.map((name) => `\`{${name}}\``).join(', ')} are replaced; by default ` +
        `"${defaultTemplate}"`,
    ),
    retention_time: Maybe(CreateRetentionTime, retention),
    ...FieldsOf(cronDescriptions, (description) => Maybe(CronField, description)),
    timezone: Maybe(Type.String({ maxLength: 100 }), `${timezoneDescription}; \`UTC\` by default`),
    ...FieldsOf(intervalDescriptions, MaybeCount),
  },
  'A cron schedule needs at least one of `month`, `day`, `week`, `day_of_week`, `hour` and `minute`, an interval at ' +
    'least one of `weeks`, `days`, `hours` and `minutes`. Fields of the other type are rejected.',
);
export type CreateSchedule = Static<typeof CreateSchedule>;

export const UpdateSchedule = Body(
  'UpdateLifecyclePolicySchedule',
  [{ hour: '4', max_quantity: 14 }],
  {
    ...CreateSchedule.properties,
    type: Type.Optional(CreateSchedule.properties.type),
    max_quantity: Type.Optional(Type.Integer(maxQuantity)),
  },
  'Omitted fields and an empty `retention_time` are unchanged, null removes. With another `type` the fields of the old one are dropped. A changed ' +
    'interval starts at the change.',
);
export type UpdateSchedule = Static<typeof UpdateSchedule>;

export const PreviewSchedule = Body('PreviewSchedule', [{ schedule: exampleSchedule, count: 5 }], {
  schedule: CreateSchedule,
  from: Type.Optional(Described(Instant, 'Only later run times are returned; by default the current time')),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 10, description: 'Number of run times' })),
});
export type PreviewSchedule = Static<typeof PreviewSchedule>;
export const RunTime = Component('ScheduleRunTime', {
  utc: Type.String({ description: 'Time of the run in UTC' }),
  local: Type.String({ description: 'The same time with the offset of the time zone of the schedule' }),
});
export const SchedulePreview = Component('SchedulePreview', {
  runs: Type.Array(RunTime, { description: 'The next run times; fewer than `count` if the schedule ends' }),
});
export type SchedulePreview = Static<typeof SchedulePreview>;

const RetentionTime = Component('RetentionTime', FieldsOf(retentionDescriptions, OrNull.integer));
const CommonSchedule = {
  id: Described(Uuid, 'ID of the schedule'),
  max_quantity: Type.Integer({ description: 'Number of snapshots of each volume that the schedule keeps' }),
  owner: Type.String({ description: 'Always `lifecycle_policy`' }),
  owner_id: Type.Integer({ description: 'ID of the lifecycle policy' }),
  resource_name_template: Type.String({ description: 'Name of the snapshots, with placeholders' }),
  retention_time: Described(Nullable(RetentionTime), retention),
  user_id: Type.Integer({ description: 'ID of the token that created the schedule' }),
};
const CronSchedule = Component('CronSchedule', {
  ...CommonSchedule,
  type: Type.Literal('cron', { description: 'Always `cron`' }),
  ...FieldsOf(cronDescriptions, OrNull.text),
  timezone: Type.String({ description: timezoneDescription }),
});
const IntervalSchedule = Component('IntervalSchedule', {
  ...CommonSchedule,
  type: Type.Literal('interval', { description: 'Always `interval`' }),
  ...FieldsOf(intervalDescriptions, OrNull.integer),
});
export const Schedule = Type.Union([CronSchedule, IntervalSchedule], {
  title: 'LifecyclePolicySchedule',
  description: 'Omitted fields of the request are null or have their defaults',
});
export type Schedule = Static<typeof Schedule>;
