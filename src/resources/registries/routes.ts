/** The HTTP operations of registries (docs/interface.md, "Registries"). */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import { registryContentsRoutes } from './contents/routes.ts';
import {
  CheckRegistryLimits,
  CreateRegistry,
  Registry,
  RegistryCollection,
  RegistryPath,
  RegistryRequiredQuota,
  ResizeRegistry,
} from './schema.ts';
import type { Registries } from './service.ts';
import { registryHostRoutes } from './token-server/routes.ts';
import { registryUserRoutes } from './users/routes.ts';

const tags = ['Registries'];
const all = '/cloud/v1/registries/:project_id/:region_id';
const one = `${all}/:registry_id`;

export function registryRoutes(registries: Registries): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags });

    app.post(
      all,
      {
        schema: {
          ...summarize('createRegistry', 'Create a registry'),
          params: ProjectRegion,
          body: CreateRegistry,
          response: { 201: Registry },
        },
      },
      async (request, reply) => {
        const made = await registries.create(request.by, request.scope, request.body);
        return reply.code(201).send(made);
      },
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listRegistries', 'List registries, oldest first'),
          params: ProjectRegion,
          response: { 200: RegistryCollection },
        },
      },
      (request) => registries.list(request.scope),
    );

    app.get(
      one,
      {
        schema: {
          ...summarize('getRegistry', 'Get a registry'),
          params: RegistryPath,
          response: { 200: Registry },
        },
      },
      (request) => registries.get(request.scope, request.params.registry_id),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteRegistry', 'Delete a registry with all that it holds'),
          params: RegistryPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await registries.delete(request.by, request.scope, request.params.registry_id);
        return reply.code(204).send(null);
      },
    );

    app.patch(
      `${one}/resize`,
      {
        schema: {
          ...summarize('resizeRegistry', 'Change how much a registry may hold'),
          params: RegistryPath,
          body: ResizeRegistry,
          response: { 200: Registry },
        },
      },
      (request) => registries.resize(request.by, request.scope, request.params.registry_id, request.body.storage_limit),
    );

    app.post(
      `${all}/check_limits`,
      {
        schema: {
          ...summarize('checkRegistryLimits', 'Tell which quotas a new registry of a size would exceed'),
          params: ProjectRegion,
          body: CheckRegistryLimits,
          response: { 200: RegistryRequiredQuota },
        },
      },
      (request) => registries.checkLimits(request.scope, request.body.storage_limit ?? 0),
    );

    registryUserRoutes(registries.users)(app);
    registryContentsRoutes(registries.contents)(app);
    registryHostRoutes(registries.tokenServer, registries.events)(app);
  };
}
