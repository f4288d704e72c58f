/** The operations of networks. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { TaskIds } from '../../http/shapes.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { errorsOfNewTags, errorsOfTagPatch } from '../../tags/tags.ts';
import { CreateNetwork, ListNetworks, Network, NetworkCollection, UpdateNetwork } from './schema.ts';
import type { Networks } from './service.ts';

export const networkTag = {
  name: 'Networks',
  description: 'Networks that other resources refer to. Cloudyard keeps their addresses; it does not route packets.',
};
const network_id = IdOf('the network');
const operation = operationsOf(networkTag, { network_id });
const all = '/cloud/v1/networks/:project_id/:region_id';
const one = `${all}/:network_id`;

export const networkOperations = ({ networks }: { networks: Networks }) => [
  operation('POST', all, {
    id: 'createNetwork',
    summary: 'Create a network',
    access: projectMember,
    body: CreateNetwork,
    bodyErrors: errorsOfNewTags,
    response: TaskIds,
    handle: ({ by, scope, body }) => networks.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listNetworks',
    summary: 'List networks',
    description: 'The newest network comes first by default.',
    access: projectReader,
    query: ListNetworks,
    response: NetworkCollection,
    handle: ({ scope, query }) => networks.list(scope, query),
  }),
  operation('GET', one, {
    id: 'getNetwork',
    summary: 'Get a network',
    access: projectReader,
    response: Network,
    handle: ({ scope, params }) => networks.get(scope, params.network_id),
  }),
  operation('PATCH', '/cloud/v2/networks/:project_id/:region_id/:network_id', {
    id: 'updateNetwork',
    summary: 'Update a network',
    description: 'Changes the name and tags that the body contains.',
    access: projectMember,
    body: UpdateNetwork,
    bodyErrors: errorsOfTagPatch,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => networks.update(by, scope, params.network_id, body),
  }),
  operation('PATCH', one, {
    id: 'updateNetworkV1',
    summary: 'Update a network (v1)',
    description: 'Returns the network instead of a task.',
    access: projectMember,
    body: UpdateNetwork,
    bodyErrors: errorsOfTagPatch,
    response: Network,
    handle: ({ by, scope, params, body }) => networks.updateV1(by, scope, params.network_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteNetwork',
    summary: 'Delete a network',
    description: 'No resource may use the network; the error names those that do.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => networks.delete(by, scope, params.network_id),
  }),
  ...metadataOperations(networks, one, {
    tag: networkTag,
    parameter: { network_id },
    name: 'Network',
    noun: 'network',
  }),
];
