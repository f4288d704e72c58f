/** The HTTP operations of networks. */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { CreateTags } from '../../tags/tags.ts';
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
      one.replace('/v1/', '/v2/'),
      {
        schema: {
          operationId: 'updateNetwork',
          summary: 'Update a network: name, tags',
          tags,
          params: NetworkPath,
          body: UpdateNetwork,
          response: { 200: TaskIds },
        },
      },
      (request) => networks.update(request.by, request.scope, request.params.network_id, request.body),
    );

    app.patch(
      one,
      {
        schema: {
          operationId: 'updateNetworkV1',
          summary: 'Update a network, answering the network',
          tags,
          params: NetworkPath,
          body: UpdateNetwork,
          response: { 200: Network },
        },
      },
      (request) => networks.updateV1(request.by, request.scope, request.params.network_id, request.body),
    );

    app.put(
      `${one}/metadata`,
      {
        schema: {
          operationId: 'replaceNetworkMetadata',
          summary: 'Replace the user-managed tags of a network',
          tags,
          deprecated: true,
          params: NetworkPath,
          body: CreateTags,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await networks.replaceTags(request.by, request.scope, request.params.network_id, request.body);
        return reply.code(204).send(null);
      },
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
