/** Requests and responses of projects (docs/interface.md, "Projects and regions"). */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  FilterId,
  Name,
  Nullable,
  OrderBy,
  OrNull,
  OwnClient,
  Paging,
} from '../../http/shapes.ts';

const Description = Described(Nullable(Type.String({ maxLength: 255 })), 'Free text, up to 255 characters');

export const CreateProject = Body(
  'CreateProject',
  [{ name: 'my-project', description: 'The project of the web team' }],
  {
    name: Name,
    description: Type.Optional(Description),
    client_id: OwnClient,
    state: Type.Optional(
      Described(Nullable(Type.Enum(['ACTIVE'])), 'The state, which is always `ACTIVE`; older official clients send it'),
    ),
  },
);
export type CreateProject = Static<typeof CreateProject>;

export const UpdateProject = Body('UpdateProject', [{ name: 'renamed-project' }], {
  name: Type.Optional(Name),
  description: Type.Optional(Description),
});
export type UpdateProject = Static<typeof UpdateProject>;

export const ListProjects = Type.Object({
  ...Paging(100),
  client_id: Type.Optional(Described(FilterId, 'Only projects of this client; those of other clients are not visible')),
  include_deleted: Type.Optional(Type.Boolean({ default: false, description: 'Whether to list deleted projects too' })),
  name: Type.Optional(Type.String({ maxLength: 255, description: 'Only projects whose name contains this text' })),
  order_by: OrderBy(['created_at', 'name'], 'created_at.desc'),
});
export type ListProjects = Static<typeof ListProjects>;

export const Project = Component('Project', {
  id: Type.Integer({ description: 'ID of the project' }),
  client_id: Type.Integer({ description: 'ID of the client that owns the project' }),
  created_at: Described(DateTime, 'When the project was created'),
  deleted_at: Described(Nullable(DateTime), 'When the project was deleted; null for an existing project'),
  description: OrNull.text('Free text'),
  is_default: Type.Boolean({ description: "Whether this is the client's default project, which cannot be deleted" }),
  name: Type.String({ description: 'Name of the project' }),
  state: Type.Enum(['ACTIVE', 'DELETED'], { description: '`ACTIVE`, or `DELETED` once it is deleted' }),
  task_id: OrNull.text('Always null: changes of a project are done at once'),
});
export type Project = Static<typeof Project>;
export const ProjectCollection = Collection(Project);
