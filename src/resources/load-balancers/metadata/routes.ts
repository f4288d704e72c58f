/** The older operations on the tags of a load balancer. v2 answers with a task, v1 without a body. */
import { projectMember } from '../../../authz/access.ts';
import { operationsOf, type OperationTag } from '../../../http/operations.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { TaskIds } from '../../../http/shapes.ts';
import { metadataOperations } from '../../../tags/routes.ts';
import { deleting, errorsOfTagMap, merging, replacingBy } from '../../../tags/tags.ts';
import { AddTags, OptionalMetadataKey, ReplaceTags } from './schema.ts';
import type { LoadBalancers } from '../service.ts';

const v1 = '/cloud/v1/loadbalancers/:project_id/:region_id/:load_balancer_id';
const v2 = '/cloud/v2/loadbalancers/:project_id/:region_id/:load_balancer_id';
const shared = { description: 'Use the `tags` of the load balancer instead.', deprecated: true };

/** `tag` is the tag of the operations of load balancers. */
export function loadBalancerMetadataOperations(loadBalancers: LoadBalancers, tag: OperationTag) {
  const parameter = { load_balancer_id: IdOf('the load balancer') };
  const operation = operationsOf(tag, parameter);
  return [
    operation('POST', `${v2}/metadata`, {
      ...shared,
      id: 'createLoadBalancerMetadata',
      summary: 'Add or change tags of a load balancer',
      access: projectMember,
      body: AddTags,
      bodyErrors: errorsOfTagMap,
      response: TaskIds,
      handle: ({ by, scope, params, body }) =>
        loadBalancers.changeTags(by, scope, params.load_balancer_id, merging(body)),
    }),
    operation('PUT', `${v2}/metadata`, {
      ...shared,
      id: 'replaceLoadBalancerMetadata',
      summary: 'Replace the tags of a load balancer',
      access: projectMember,
      body: AddTags,
      bodyErrors: errorsOfTagMap,
      response: TaskIds,
      handle: ({ by, scope, params, body }) =>
        loadBalancers.changeTags(by, scope, params.load_balancer_id, replacingBy(body), 'replace_lbmetadata'),
    }),
    operation('DELETE', `${v2}/metadata_item`, {
      ...shared,
      id: 'deleteLoadBalancerMetadataItem',
      summary: 'Delete a tag of a load balancer',
      access: projectMember,
      query: OptionalMetadataKey,
      response: TaskIds,
      handle: ({ by, scope, params, query }) =>
        loadBalancers.changeTags(by, scope, params.load_balancer_id, deleting(query.key), 'delete_lbmetadata'),
    }),
    ...metadataOperations({ ...loadBalancers, changeTags: loadBalancers.changeTagsV1 }, v1, {
      ...{ tag, parameter, name: 'LoadBalancer', noun: 'load balancer' },
      v1Bodies: { create: AddTags, replace: ReplaceTags },
    }),
  ];
}
