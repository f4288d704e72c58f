/** The operations of subnets. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { TaskIds } from '../../http/shapes.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { errorsOfTagPatch } from '../../tags/tags.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { networkTag } from '../networks/routes.ts';
import {
  AvailableNetworkCollection,
  CreateSubnet,
  ListAvailableNetworks,
  ListSubnets,
  Subnet,
  SubnetCollection,
  UpdateSubnet,
} from './schema.ts';
import type { Subnets } from './service.ts';

const tag = { name: 'Subnets', description: 'A subnet is an address range of a network.' };
const subnet_id = IdOf('the subnet');
const operation = operationsOf(tag, { subnet_id });
const all = '/cloud/v1/subnets/:project_id/:region_id';
const one = `${all}/:subnet_id`;

export const subnetOperations = ({ subnets }: { subnets: Subnets }) => [
  operation('POST', all, {
    id: 'createSubnet',
    summary: 'Create a subnet',
    access: projectMember,
    body: CreateSubnet,
    bodyErrors: subnets.bodyErrors,
    response: TaskIds,
    handle: ({ by, scope, body }) => subnets.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listSubnets',
    summary: 'List subnets',
    description: 'Sorted by address range by default.',
    access: projectReader,
    query: ListSubnets,
    response: SubnetCollection,
    handle: ({ scope, query }) => subnets.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getSubnet',
    summary: 'Get a subnet',
    access: projectReader,
    response: Subnet,
    handle: ({ scope, params }) => subnets.get(scope, params.subnet_id),
  }),
  operation('PATCH', one, {
    id: 'updateSubnet',
    summary: 'Update a subnet',
    description: 'Changes the name, tags, gateway, DHCP, DNS servers and routes that the body contains.',
    access: projectMember,
    body: UpdateSubnet,
    bodyErrors: errorsOfTagPatch,
    response: Subnet,
    handle: ({ by, scope, params, body }) => subnets.update(by, scope, params.subnet_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteSubnet',
    summary: 'Delete a subnet',
    description: 'No resource may use the subnet; the error names those that do.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => subnets.delete(by, scope, params.subnet_id),
  }),
  ...metadataOperations(subnets, one, { tag, parameter: { subnet_id }, name: 'Subnet', noun: 'subnet' }),
  operationsOf(networkTag)('GET', '/cloud/v1/availablenetworks/:project_id/:region_id', {
    id: 'listAvailableNetworks',
    summary: 'List networks with their subnets',
    description: 'The newest network comes first by default; subnets are sorted by address range.',
    deprecated: true,
    access: projectReader,
    query: ListAvailableNetworks,
    response: AvailableNetworkCollection,
    handle: async ({ scope, query }, reply) => sendInGroups(reply, await subnets.listByNetwork(scope, query)),
  }),
];
