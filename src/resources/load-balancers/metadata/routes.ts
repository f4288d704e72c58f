/** The older operations on the tags of a load balancer. v2 answers with a task, v1 without a body. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { operationsOf } from '../../../http/operations.ts';
import type { OperationTag } from '../../../http/operations.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { TaskIds } from '../../../http/shapes.ts';
import {
  deleting,
  faultsOfTagMap,
  ListTags,
  merging,
  pageOfTags,
  replacingBy,
  Tag,
  TagCollection,
} from '../../../tags/tags.ts';
import { AddTags, MetadataKey, OptionalMetadataKey, ReplaceTags } from './schema.ts';
import type { LoadBalancerMetadata } from './service.ts';

const v1 = '/cloud/v1/loadbalancers/:project_id/:region_id/:load_balancer_id';
const v2 = '/cloud/v2/loadbalancers/:project_id/:region_id/:load_balancer_id';
const shared = { description: 'Use the `tags` of the load balancer instead.', deprecated: true };

/** `tag` is the tag of the operations of load balancers. */
export function loadBalancerMetadataOperations({ metadata }: { metadata: LoadBalancerMetadata }, tag: OperationTag) {
  const operation = operationsOf(tag, { load_balancer_id: IdOf('the load balancer') });
  return [
    operation('POST', `${v2}/metadata`, {
      ...shared,
      id: 'createLoadBalancerMetadata',
      summary: 'Add or change tags of a load balancer',
      access: projectMember,
      body: AddTags,
      faults: faultsOfTagMap,
      answer: TaskIds,
      handle: ({ by, scope, params, body }) => metadata.change(by, scope, params.load_balancer_id, merging(body)),
    }),
    operation('PUT', `${v2}/metadata`, {
      ...shared,
      id: 'replaceLoadBalancerMetadata',
      summary: 'Replace the tags of a load balancer',
      access: projectMember,
      body: AddTags,
      faults: faultsOfTagMap,
      answer: TaskIds,
      handle: ({ by, scope, params, body }) => metadata.change(by, scope, params.load_balancer_id, replacingBy(body)),
    }),
    operation('DELETE', `${v2}/metadata_item`, {
      ...shared,
      id: 'deleteLoadBalancerMetadataItem',
      summary: 'Delete a tag of a load balancer',
      access: projectMember,
      query: OptionalMetadataKey,
      answer: TaskIds,
      handle: ({ by, scope, params, query }) =>
        metadata.change(by, scope, params.load_balancer_id, deleting(query.key)),
    }),
    operation('POST', `${v1}/metadata`, {
      ...shared,
      id: 'createLoadBalancerMetadataV1',
      summary: 'Add or change tags of a load balancer (v1)',
      access: projectMember,
      body: AddTags,
      faults: faultsOfTagMap,
      handle: ({ by, scope, params, body }) => metadata.changeV1(by, scope, params.load_balancer_id, merging(body)),
    }),
    operation('GET', `${v1}/metadata`, {
      ...shared,
      id: 'listLoadBalancerMetadata',
      summary: 'List the tags of a load balancer',
      access: projectReader,
      query: ListTags,
      answer: TagCollection,
      handle: async ({ scope, params, query }) =>
        pageOfTags(await metadata.tags(scope, params.load_balancer_id), query),
    }),
    operation('PUT', `${v1}/metadata`, {
      ...shared,
      id: 'replaceLoadBalancerMetadataV1',
      summary: 'Replace the tags of a load balancer (v1)',
      access: projectMember,
      body: ReplaceTags,
      faults: faultsOfTagMap,
      handle: ({ by, scope, params, body }) => metadata.changeV1(by, scope, params.load_balancer_id, replacingBy(body)),
    }),
    operation('GET', `${v1}/metadata_item`, {
      ...shared,
      id: 'getLoadBalancerMetadataItem',
      summary: 'Get a tag of a load balancer',
      access: projectReader,
      query: MetadataKey,
      answer: Tag,
      handle: ({ scope, params, query }) => metadata.get(scope, params.load_balancer_id, query.key),
    }),
    operation('DELETE', `${v1}/metadata_item`, {
      ...shared,
      id: 'deleteLoadBalancerMetadataItemV1',
      summary: 'Delete a tag of a load balancer (v1)',
      access: projectMember,
      query: MetadataKey,
      handle: ({ by, scope, params, query }) =>
        metadata.changeV1(by, scope, params.load_balancer_id, deleting(query.key)),
    }),
  ];
}
