/** Tasks as clients see them (docs/interface.md, "Tasks"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging, ShortText, Uuid } from '../../http/shapes.ts';
import { taskStates } from '../../tasks/table.ts';

/** Of one query parameter that may be repeated. */
const maxFilterValues = 1000;
const Order = Type.Enum(['asc', 'desc']);
const State = Type.Enum([...taskStates]);
const Instant = Type.String({ format: 'iso-date-time' });

export const TaskPath = Type.Object({ task_id: Uuid });

export const GetTask = Type.Object({
  wait: Type.Optional(
    Type.Number({ minimum: 0, maximum: 60, description: 'Seconds to wait for the end of the task before answering' }),
  ),
});

export const ListTasks = Type.Object({
  ...Paging(10),
  from_timestamp: Type.Optional(Instant),
  to_timestamp: Type.Optional(Instant),
  is_acknowledged: Type.Optional(Type.Boolean()),
  order_by: Type.Optional(Order),
  sorting: Type.Optional(Type.Unsafe<'asc' | 'desc'>({ ...Order, deprecated: true })),
  project_id: Type.Optional(Type.Array(IntegerId, { maxItems: maxFilterValues })),
  region_id: Type.Optional(Type.Array(IntegerId, { maxItems: maxFilterValues })),
  state: Type.Optional(Type.Array(State, { maxItems: maxFilterValues })),
  task_type: Type.Optional(ShortText),
});
export type ListTasks = Static<typeof ListTasks>;

export const ListActiveTasks = Type.Object({
  ...Paging(10),
  task_type: Type.Optional(Type.Array(ShortText, { maxItems: maxFilterValues })),
});
export type ListActiveTasks = Static<typeof ListActiveTasks>;

export const AcknowledgeAll = Type.Object({
  project_id: Type.Optional(IntegerId),
  region_id: Type.Optional(IntegerId),
});
export type AcknowledgeAll = Static<typeof AcknowledgeAll>;

/** Null: no body at all. */
export const AcknowledgeTasks = Nullable(
  Type.Object(
    { task_ids: Type.Optional(Nullable(Type.Array(Uuid, { maxItems: 1000 }))) },
    { additionalProperties: false },
  ),
);
export type AcknowledgeTasks = Static<typeof AcknowledgeTasks>;

const NullableText = Nullable(Type.String());
const NullableId = Nullable(Type.Integer());

export const Task = Type.Object({
  id: Uuid,
  state: State,
  task_type: Type.String(),
  error: NullableText,
  created_resources: Nullable(Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Integer()])))),
  data: Nullable(Type.Record(Type.String(), Type.Any())),
  detailed_state: Nullable(Type.Enum(['FINISHED', 'ERROR'])),
  created_on: NullableText,
  updated_on: NullableText,
  finished_on: NullableText,
  acknowledged_at: NullableText,
  acknowledged_by: NullableId,
  client_id: NullableId,
  user_client_id: NullableId,
  user_id: Type.Integer(),
  project_id: NullableId,
  region_id: NullableId,
  request_id: NullableText,
  job_id: NullableText,
  lifecycle_policy_id: NullableId,
  schedule_id: NullableText,
});
export type Task = Static<typeof Task>;
export const TaskCollection = Collection(Task);
export type TaskCollection = Static<typeof TaskCollection>;
