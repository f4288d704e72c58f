/** The HTTP operations of projects. */
import type { Routes } from '../../http/app.ts';
import { TaskIds } from '../../http/shapes.ts';
import {
  CreateProject,
  ListProjects,
  Project,
  ProjectCollection,
  ProjectPath,
  ReplaceProject,
  UpdateProject,
} from './schema.ts';
import type { Projects } from './service.ts';

const tags = ['Projects'];
const all = '/cloud/v1/projects';
const one = `${all}/:project_id`;

export function projectRoutes(projects: Projects): Routes {
  return (app) => {
    app.post(
      all,
      {
        schema: {
          operationId: 'createProject',
          summary: 'Create a project',
          tags,
          body: CreateProject,
          response: { 201: Project },
        },
      },
      async (request, reply) => {
        const project = await projects.create(request.by, request.scope, request.body);
        return reply.code(201).send(project);
      },
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listProjects',
          summary: 'List the projects that the token may see, oldest first',
          tags,
          querystring: ListProjects,
          response: { 200: ProjectCollection },
        },
      },
      (request) => projects.list(request.by, request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getProject',
          summary: 'Get a project',
          tags,
          params: ProjectPath,
          response: { 200: Project },
        },
      },
      (request) => projects.get(request.scope),
    );

    app.patch(
      one,
      {
        schema: {
          operationId: 'updateProject',
          summary: 'Update a project: name, description',
          tags,
          params: ProjectPath,
          body: UpdateProject,
          response: { 200: Project },
        },
      },
      (request) => projects.update(request.by, request.scope, request.body),
    );

    app.put(
      one,
      {
        schema: {
          operationId: 'replaceProject',
          summary: 'Replace the name and description of a project',
          tags,
          deprecated: true,
          params: ProjectPath,
          body: ReplaceProject,
          response: { 200: Project },
        },
      },
      (request) => projects.replace(request.by, request.scope, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteProject',
          summary: 'Delete a project that nothing uses',
          tags,
          params: ProjectPath,
          response: { 200: TaskIds },
        },
      },
      (request) => projects.delete(request.by, request.scope),
    );
  };
}
