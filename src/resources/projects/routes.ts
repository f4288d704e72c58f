/** The operations of projects. */
import { projectAdmin, projectReader, tokenAdmin, tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { TaskIds } from '../../http/shapes.ts';
import { CreateProject, ListProjects, Project, ProjectCollection, UpdateProject } from './schema.ts';
import type { Projects } from './service.ts';

const operation = operationsOf({
  name: 'Projects',
  description: 'A project groups the resources of a client. Quotas belong to the client, not to its projects.',
});
const all = '/cloud/v1/projects';
const one = `${all}/:project_id`;

export const projectOperations = ({ projects }: { projects: Projects }) => [
  operation('POST', all, {
    id: 'createProject',
    summary: 'Create a project',
    access: tokenAdmin,
    body: CreateProject,
    response: Project,
    status: 201,
    handle: ({ by, scope, body }) => projects.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listProjects',
    summary: 'List projects',
    description: 'Lists the projects that the token may see.',
    access: tokenReader,
    query: ListProjects,
    response: ProjectCollection,
    handle: ({ by, scope, query }) => projects.list(by, scope, query),
  }),
  operation('GET', one, {
    id: 'getProject',
    summary: 'Get a project',
    access: projectReader,
    response: Project,
    handle: ({ scope }) => projects.get(scope),
  }),
  operation('PATCH', one, {
    id: 'updateProject',
    summary: 'Update a project',
    description: 'Changes the name and description that the body contains.',
    access: projectAdmin,
    body: UpdateProject,
    response: Project,
    handle: ({ by, scope, body }) => projects.update(by, scope, body),
  }),
  operation('PUT', one, {
    id: 'replaceProject',
    summary: 'Replace the name and description of a project',
    description: 'Use PATCH.',
    deprecated: true,
    access: projectAdmin,
    body: CreateProject,
    response: Project,
    handle: ({ by, scope, body }) => projects.replace(by, scope, body),
  }),
  operation('DELETE', one, {
    id: 'deleteProject',
    summary: 'Delete a project',
    description: 'The project must not contain resources; the error names those that are left.',
    access: projectAdmin,
    response: TaskIds,
    handle: ({ by, scope }) => projects.delete(by, scope),
  }),
];
