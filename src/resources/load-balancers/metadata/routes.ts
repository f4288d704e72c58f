/** The HTTP operations of a load balancer's tags (docs/interface.md, "Load balancers"). */
import { Type } from 'typebox';
import type { Routes } from '../../../http/app.ts';
import { TaskIds } from '../../../http/shapes.ts';
import { CreateTags, deleting, merging, replacingBy, Tag, TagCollection } from '../../../tags/tags.ts';
import { LoadBalancerPath, MetadataKey, OptionalMetadataKey, ReplaceTags } from '../schema.ts';
import type { LoadBalancerMetadata } from './service.ts';

const tags = ['Load balancers'];
const v1 = '/cloud/v1/loadbalancers/:project_id/:region_id/:load_balancer_id';
const v2 = v1.replace('/v1/', '/v2/');
const noContent = { 204: Type.Null({ description: 'Done' }) };

export function loadBalancerMetadataRoutes(loadBalancers: { metadata: LoadBalancerMetadata }): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags, deprecated: true });

    app.post(
      `${v2}/metadata`,
      {
        schema: {
          ...summarize('createLoadBalancerMetadata', 'Add or update tags of a load balancer'),
          params: LoadBalancerPath,
          body: CreateTags,
          response: { 200: TaskIds },
        },
      },
      ({ by, scope, params, body }) => loadBalancers.metadata.change(by, scope, params.load_balancer_id, merging(body)),
    );

    app.put(
      `${v2}/metadata`,
      {
        schema: {
          ...summarize('replaceLoadBalancerMetadata', 'Replace the user-managed tags of a load balancer'),
          params: LoadBalancerPath,
          body: CreateTags,
          response: { 200: TaskIds },
        },
      },
      ({ by, scope, params, body }) =>
        loadBalancers.metadata.change(by, scope, params.load_balancer_id, replacingBy(body)),
    );

    app.delete(
      `${v2}/metadata_item`,
      {
        schema: {
          ...summarize('deleteLoadBalancerMetadataItem', 'Delete a tag of a load balancer'),
          params: LoadBalancerPath,
          querystring: OptionalMetadataKey,
          response: { 200: TaskIds },
        },
      },
      ({ by, scope, params, query }) =>
        loadBalancers.metadata.change(by, scope, params.load_balancer_id, deleting(query.key)),
    );

    app.post(
      `${v1}/metadata`,
      {
        schema: {
          ...summarize('createLoadBalancerMetadataV1', 'Add or update tags of a load balancer without a task'),
          params: LoadBalancerPath,
          body: CreateTags,
          response: noContent,
        },
      },
      async ({ by, scope, params, body }, reply) => {
        await loadBalancers.metadata.changeV1(by, scope, params.load_balancer_id, merging(body));
        return reply.code(204).send(null);
      },
    );

    app.get(
      `${v1}/metadata`,
      {
        schema: {
          ...summarize('listLoadBalancerMetadata', 'List the tags of a load balancer'),
          params: LoadBalancerPath,
          response: { 200: TagCollection },
        },
      },
      ({ scope, params }) => loadBalancers.metadata.list(scope, params.load_balancer_id),
    );

    app.put(
      `${v1}/metadata`,
      {
        schema: {
          ...summarize(
            'replaceLoadBalancerMetadataV1',
            'Replace the user-managed tags of a load balancer without a task',
          ),
          params: LoadBalancerPath,
          body: ReplaceTags,
          response: noContent,
        },
      },
      async ({ by, scope, params, body }, reply) => {
        await loadBalancers.metadata.changeV1(by, scope, params.load_balancer_id, replacingBy(body));
        return reply.code(204).send(null);
      },
    );

    app.get(
      `${v1}/metadata_item`,
      {
        schema: {
          ...summarize('getLoadBalancerMetadataItem', 'Get a tag of a load balancer'),
          params: LoadBalancerPath,
          querystring: MetadataKey,
          response: { 200: Tag },
        },
      },
      ({ scope, params, query }) => loadBalancers.metadata.get(scope, params.load_balancer_id, query.key),
    );

    app.delete(
      `${v1}/metadata_item`,
      {
        schema: {
          ...summarize('deleteLoadBalancerMetadataItemV1', 'Delete a tag of a load balancer without a task'),
          params: LoadBalancerPath,
          querystring: MetadataKey,
          response: noContent,
        },
      },
      async ({ by, scope, params, query }, reply) => {
        await loadBalancers.metadata.changeV1(by, scope, params.load_balancer_id, deleting(query.key));
        return reply.code(204).send(null);
      },
    );
  };
}
