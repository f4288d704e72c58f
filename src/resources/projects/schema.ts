/** Requests and responses of projects (docs/interface.md, "Projects and regions"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging } from '../../http/shapes.ts';

export const ProjectPath = Type.Object({ project_id: IntegerId });

const Description = Nullable(Type.String({ maxLength: 255 }));

export const CreateProject = Type.Object(
  { name: Name, description: Type.Optional(Description) },
  { additionalProperties: false },
);
export type CreateProject = Static<typeof CreateProject>;

export const UpdateProject = Type.Object(
  { name: Type.Optional(Name), description: Type.Optional(Description) },
  { additionalProperties: false },
);
export type UpdateProject = Static<typeof UpdateProject>;

export const ReplaceProject = CreateProject;
export type ReplaceProject = CreateProject;

export const ListProjects = Type.Object({
  ...Paging(100),
  include_deleted: Type.Optional(Type.Boolean({ default: false })),
  name: Type.Optional(Type.String({ maxLength: 255, description: 'a part of the name' })),
  order_by: Type.Optional(
    Type.Enum(['created_at.asc', 'created_at.desc', 'name.asc', 'name.desc'], { default: 'created_at.asc' }),
  ),
});
export type ListProjects = Static<typeof ListProjects>;

export const Project = Type.Object({
  id: Type.Integer(),
  client_id: Type.Integer(),
  created_at: Type.String(),
  deleted_at: Nullable(Type.String()),
  description: Nullable(Type.String()),
  is_default: Type.Boolean(),
  name: Type.String(),
  state: Type.Enum(['ACTIVE', 'DELETED']),
  task_id: Nullable(Type.String()),
});
export type Project = Static<typeof Project>;
export const ProjectCollection = Collection(Project);
export type ProjectCollection = Static<typeof ProjectCollection>;
