/** The HTTP operations of subnets. */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { CreateTags } from '../../tags/tags.ts';
import { CreateSubnet, ListSubnets, Subnet, SubnetCollection, SubnetPath, UpdateSubnet } from './schema.ts';
import type { Subnets } from './service.ts';

const tags = ['Subnets'];
const all = '/cloud/v1/subnets/:project_id/:region_id';
const one = `${all}/:subnet_id`;

export function subnetRoutes(subnets: Subnets): Routes {
  return (app) => {
    app.post(
      all,
      {
        schema: {
          operationId: 'createSubnet',
          summary: 'Create a subnet',
          tags,
          params: ProjectRegion,
          body: CreateSubnet,
          response: { 200: TaskIds },
        },
      },
      (request) => subnets.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          operationId: 'listSubnets',
          summary: 'List subnets, oldest first',
          tags,
          params: ProjectRegion,
          querystring: ListSubnets,
          response: { 200: SubnetCollection },
        },
      },
      (request) => subnets.list(request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          operationId: 'getSubnet',
          summary: 'Get a subnet',
          tags,
          params: SubnetPath,
          response: { 200: Subnet },
        },
      },
      (request) => subnets.get(request.scope, request.params.subnet_id),
    );

    app.patch(
      one,
      {
        schema: {
          operationId: 'updateSubnet',
          summary: 'Update a subnet: name, tags, gateway, DHCP, DNS servers, routes',
          tags,
          params: SubnetPath,
          body: UpdateSubnet,
          response: { 200: Subnet },
        },
      },
      (request) => subnets.update(request.by, request.scope, request.params.subnet_id, request.body),
    );

    app.put(
      `${one}/metadata`,
      {
        schema: {
          operationId: 'replaceSubnetMetadata',
          summary: 'Replace the user-managed tags of a subnet',
          tags,
          deprecated: true,
          params: SubnetPath,
          body: CreateTags,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await subnets.replaceTags(request.by, request.scope, request.params.subnet_id, request.body);
        return reply.code(204).send(null);
      },
    );

    app.delete(
      one,
      {
        schema: {
          operationId: 'deleteSubnet',
          summary: 'Delete a subnet that nothing uses',
          tags,
          params: SubnetPath,
          response: { 200: TaskIds },
        },
      },
      (request) => subnets.delete(request.by, request.scope, request.params.subnet_id),
    );
  };
}
