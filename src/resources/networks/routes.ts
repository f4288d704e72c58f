/** The HTTP operations of networks. */
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { CreateNetwork, ListNetworks, Network, NetworkCollection, NetworkPath, UpdateNetwork } from './schema.ts';
import type { Networks } from './service.ts';

const tags = ['Networks'];
const all = '/cloud/v1/networks/:project_id/:region_id';
const one = `${all}/:network_id`;

export function networkRoutes(networks: Networks): Routes {
  return (app) => {
    app.post(
      all,
      {
        schema: {
          operationId: 'createNetwork',
          summary: 'Create a network',
          tags,
          params: ProjectRegion,
          body: CreateNetwork,
          response: { 200: TaskIds },
        },
      },
      (request) => networks.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listNetworks',
          summary: 'List networks, newest first',
          tags,
          params: ProjectRegion,
          querystring: ListNetworks,
          response: { 200: NetworkCollection },
        },
      },
      (request) => networks.list(request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getNetwork',
          summary: 'Get a network',
          tags,
          params: NetworkPath,
          response: { 200: Network },
        },
      },
      (request) => networks.get(request.scope, request.params.network_id),
    );

    app.patch(
      one,
      {
        schema: {
          operationId: 'updateNetwork',
          summary: 'Update a network: name, tags',
          tags,
          params: NetworkPath,
          body: UpdateNetwork,
          response: { 200: Network },
        },
      },
      (request) => networks.update(request.by, request.scope, request.params.network_id, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteNetwork',
          summary: 'Delete a network that nothing uses',
          tags,
          params: NetworkPath,
          response: { 200: TaskIds },
        },
      },
      (request) => networks.delete(request.by, request.scope, request.params.network_id),
    );
  };
}
