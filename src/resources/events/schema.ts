/** Requests and events of the event stream. */
import { type Static, Type } from 'typebox';
import { Component, IntegerId, OrNull } from '../../http/shapes.ts';

const maxProjects = 1000;
const maxIdLength = 100;

export const StreamEvents = (kinds: string[]) =>
  Type.Object({
    project_id: Type.Optional(
      Type.Array(IntegerId, {
        maxItems: maxProjects,
        description: 'Only projects, and resources of these projects or of none',
      }),
    ),
    kinds: Type.Optional(Type.Array(Type.Enum(kinds), { maxItems: 100, description: 'Only resources of these kinds' })),
    last_event_id: Type.Optional(
      Type.String({ maxLength: maxIdLength, description: 'As the header `Last-Event-ID`, which takes precedence' }),
    ),
  });
export type StreamEvents = Static<ReturnType<typeof StreamEvents>>;

export const ResourceEvent = Component('ResourceEvent', {
  id: Type.String({ description: 'Opaque ID of the event, the same on all servers' }),
  kind: Type.String({ description: 'Kind of the resource, such as `file_share`' }),
  resource_id: Type.String({ description: 'ID of the resource' }),
  change: Type.Enum(['created', 'updated', 'deleted'], { description: 'What happened to it' }),
  client_id: OrNull.integer('ID of the client; null if the resource belongs to none'),
  project_id: OrNull.integer('ID of the project; null if the resource belongs to none'),
  region_id: OrNull.integer('ID of the region; null if the resource belongs to none'),
  task_id: OrNull.text('ID of the task that the change belongs to'),
  at: Type.String({ format: 'date-time', description: 'When the change was made' }),
});
