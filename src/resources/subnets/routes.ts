/** The operations of subnets. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { TaskIds } from '../../http/shapes.ts';
import { CreateTags } from '../../tags/tags.ts';
import { CreateSubnet, ListSubnets, Subnet, SubnetCollection, UpdateSubnet } from './schema.ts';
import type { Subnets } from './service.ts';

const operation = operationsOf(
  { name: 'Subnets', description: 'A subnet is an address range of a network.' },
  { subnet_id: IdOf('the subnet') },
);
const all = '/cloud/v1/subnets/:project_id/:region_id';
const one = `${all}/:subnet_id`;

export const subnetOperations = (subnets: Subnets) => [
  operation('POST', all, {
    id: 'createSubnet',
    summary: 'Create a subnet',
    access: projectMember,
    body: CreateSubnet,
    answer: TaskIds,
    handle: ({ by, scope, body }) => subnets.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listSubnets',
    summary: 'List subnets',
    description: 'Sorted by address range by default.',
    access: projectReader,
    query: ListSubnets,
    answer: SubnetCollection,
    handle: ({ scope, query }) => subnets.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getSubnet',
    summary: 'Get a subnet',
    access: projectReader,
    answer: Subnet,
    handle: ({ scope, params }) => subnets.get(scope, params.subnet_id),
  }),
  operation('PATCH', one, {
    id: 'updateSubnet',
    summary: 'Update a subnet',
    description: 'Changes the name, tags, gateway, DHCP, DNS servers and routes that the body contains.',
    access: projectMember,
    body: UpdateSubnet,
    answer: Subnet,
    handle: ({ by, scope, params, body }) => subnets.update(by, scope, params.subnet_id, body),
  }),
  operation('PUT', `${one}/metadata`, {
    id: 'replaceSubnetMetadata',
    summary: 'Replace the tags of a subnet',
    description: 'Use the `tags` of the subnet instead.',
    deprecated: true,
    access: projectMember,
    body: CreateTags,
    handle: ({ by, scope, params, body }) => subnets.replaceTags(by, scope, params.subnet_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteSubnet',
    summary: 'Delete a subnet',
    description: 'No resource may use the subnet; the error names those that do.',
    access: projectMember,
    answer: TaskIds,
    handle: ({ by, scope, params }) => subnets.delete(by, scope, params.subnet_id),
  }),
];
