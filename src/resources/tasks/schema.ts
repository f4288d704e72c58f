/** Requests and responses of tasks (docs/interface.md, "Tasks"). */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  FilterId,
  Instant,
  maxFilterValues,
  Nullable,
  OrNull,
  Paging,
  ShortText,
  Uuid,
} from '../../http/shapes.ts';
import { taskStates } from '../../tasks/table.ts';

const Order = Type.Enum(['asc', 'desc'], { description: 'Order by the creation date; `desc` by default' });
const State = Type.Enum([...taskStates], { description: 'State of the task' });
const filter = (noun: string) => ({ maxItems: maxFilterValues, description: `Only tasks of these ${noun}` });

export const GetTask = Type.Object({
  wait: Type.Optional(
    Type.Number({ minimum: 0, maximum: 60, description: 'Maximum time to wait for the end of the task, in seconds' }),
  ),
});

export const ListTasks = Type.Object({
  ...Paging(10),
  from_timestamp: Type.Optional(Described(Instant, 'Only tasks created at or after this ISO 8601 date')),
  to_timestamp: Type.Optional(Described(Instant, 'Only tasks created at or before this ISO 8601 date')),
  is_acknowledged: Type.Optional(Type.Boolean({ description: 'Only tasks that are, or are not, acknowledged' })),
  order_by: Type.Optional(Order),
  sorting: Type.Optional(Type.Unsafe<'asc' | 'desc'>({ ...Order, deprecated: true, description: 'Use `order_by`' })),
  project_id: Type.Optional(Type.Array(FilterId, filter('projects'))),
  region_id: Type.Optional(Type.Array(FilterId, filter('regions'))),
  state: Type.Optional(Type.Array(State, { ...filter('states') })),
  task_type: Type.Optional(Described(ShortText, 'Only tasks of this type, such as `create_volume`')),
  resource_id: Type.Optional(Described(ShortText, 'Only tasks of this resource')),
});
export type ListTasks = Static<typeof ListTasks>;

export const ListActiveTasks = Type.Object({
  ...Paging(10),
  task_type: Type.Optional(Type.Array(ShortText, filter('types'))),
});
export type ListActiveTasks = Static<typeof ListActiveTasks>;

export const AcknowledgeAll = Type.Object({
  project_id: Type.Optional(Described(FilterId, 'Only tasks of this project')),
  region_id: Type.Optional(Described(FilterId, 'Only tasks of this region')),
});
export type AcknowledgeAll = Static<typeof AcknowledgeAll>;

export const AcknowledgeTasks = Body('AcknowledgeTasks', [{ task_ids: [exampleUuid] }], {
  task_ids: Type.Optional(
    Described(Nullable(Type.Array(Uuid, { maxItems: 1000 })), 'IDs of the tasks; null or absent: all tasks'),
  ),
});
export type AcknowledgeTasks = Static<typeof AcknowledgeTasks>;

export const Task = Component('Task', {
  id: Described(Uuid, 'ID of the task'),
  state: State,
  task_type: Type.String({ description: 'What the task does, such as `create_volume`' }),
  resource_kind: Type.String({ description: 'Kind of the resource, such as `volume`' }),
  resource_id: Type.String({ description: 'ID of the resource' }),
  error: OrNull.text('Why the task failed, for people; null otherwise'),
  created_resources: Described(
    Nullable(Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Integer()])))),
    'IDs of the resources that the task creates, by kind, such as `{"volumes": ["<id>"]}`',
  ),
  data: Described(
    Nullable(Type.Record(Type.String(), Type.Any())),
    'Parameters of the task, such as the ID of its resource (`volume_id`); they depend on its type',
  ),
  detailed_state: Described(Nullable(Type.Enum(['FINISHED', 'ERROR'])), 'The final state; null until the task ends'),
  created_on: OrNull.text('When the task was created'),
  updated_on: OrNull.text('When the task last changed'),
  finished_on: OrNull.text('When the task ended; null until then'),
  acknowledged_at: OrNull.text('When the task was acknowledged; null until then'),
  acknowledged_by: OrNull.integer('ID of the token that acknowledged the task'),
  client_id: OrNull.integer('ID of the client whose resource the task changes'),
  user_client_id: OrNull.integer('ID of the client of the token'),
  user_id: Type.Integer({ description: 'ID of the token that started the task' }),
  project_id: OrNull.integer('ID of the project'),
  region_id: OrNull.integer('ID of the region'),
  request_id: OrNull.text('ID of the request that started the task'),
  job_id: OrNull.text('ID of the job, for the operator'),
  lifecycle_policy_id: OrNull.integer('ID of the lifecycle policy that started the task'),
  schedule_id: OrNull.text('ID of the schedule that started the task'),
});
export type Task = Static<typeof Task>;
export const TaskCollection = Collection(Task);
