/** The HTTP operations of load balancers (docs/interface.md, "Load balancers"). Those of tags are in metadata/. */
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { loadBalancerMetadataRoutes } from './metadata/routes.ts';
import {
  CheckLoadBalancerLimits,
  CreateLoadBalancer,
  FailoverLoadBalancer,
  GetLoadBalancer,
  ListLoadBalancers,
  LoadBalancer,
  LoadBalancerCollection,
  LoadBalancerMetricsCollection,
  LoadBalancerPath,
  LoadBalancerQuota,
  LoadBalancerStatus,
  LoadBalancerStatusCollection,
  RequestMetrics,
  ResizeLoadBalancer,
  UpdateLoadBalancer,
  UpdateLoadBalancerV1,
} from './schema.ts';
import type { LoadBalancers } from './service.ts';

const tags = ['Load balancers'];
const all = '/cloud/v1/loadbalancers/:project_id/:region_id';
const one = `${all}/:load_balancer_id`;

export function loadBalancerRoutes(loadBalancers: LoadBalancers): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string, deprecated = false) => ({
      operationId,
      summary,
      tags,
      ...(deprecated && { deprecated }),
    });

    app.post(
      all,
      {
        schema: {
          ...summarize('createLoadBalancer', 'Create a load balancer, optionally with listeners and pools'),
          params: ProjectRegion,
          body: CreateLoadBalancer,
          response: { 200: TaskIds },
        },
      },
      (request) => loadBalancers.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listLoadBalancers', 'List load balancers'),
          params: ProjectRegion,
          querystring: ListLoadBalancers,
          response: { 200: LoadBalancerCollection },
        },
      },
      async (request, reply) => sendInGroups(reply, await loadBalancers.list(request.scope, request.query)),
    );

    app.get(
      `${all}/status`,
      {
        schema: {
          ...summarize('listLoadBalancerStatuses', 'List the statuses of load balancers and their parts'),
          params: ProjectRegion,
          response: { 200: LoadBalancerStatusCollection },
        },
      },
      async (request, reply) => sendInGroups(reply, await loadBalancers.status.list(request.scope)),
    );

    app.post(
      `${all}/check_limits`,
      {
        schema: {
          ...summarize('checkLoadBalancerLimits', 'List the quotas that a new load balancer would exceed'),
          params: ProjectRegion,
          body: CheckLoadBalancerLimits,
          response: { 200: LoadBalancerQuota },
        },
      },
      (request) => loadBalancers.checkLimits(request.scope, request.body),
    );

    app.post(
      `${one}/check_limits`,
      {
        schema: {
          ...summarize('checkLoadBalancerLimitsBesides', 'List the quotas that another load balancer would exceed'),
          params: LoadBalancerPath,
          body: CheckLoadBalancerLimits,
          response: { 200: LoadBalancerQuota },
        },
      },
      (request) => loadBalancers.checkLimits(request.scope, request.body, request.params.load_balancer_id),
    );

    app.get(
      one,
      {
        schema: {
          ...summarize('getLoadBalancer', 'Get a load balancer'),
          params: LoadBalancerPath,
          querystring: GetLoadBalancer,
          response: { 200: LoadBalancer },
        },
      },
      (request) => loadBalancers.get(request.scope, request.params.load_balancer_id, request.query.show_stats),
    );

    app.patch(
      one.replace('/v1/', '/v2/'),
      {
        schema: {
          ...summarize('updateLoadBalancer', 'Update a load balancer'),
          params: LoadBalancerPath,
          body: UpdateLoadBalancer,
          response: { 200: TaskIds },
        },
      },
      (request) => loadBalancers.update(request.by, request.scope, request.params.load_balancer_id, request.body),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateLoadBalancerV1', 'Update a load balancer and return it', true),
          params: LoadBalancerPath,
          body: UpdateLoadBalancerV1,
          response: { 200: LoadBalancer },
        },
      },
      (request, reply) => {
        reply.header('deprecation', 'true');
        return loadBalancers.updateV1(request.by, request.scope, request.params.load_balancer_id, request.body);
      },
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteLoadBalancer', 'Delete a load balancer with its listeners and pools'),
          params: LoadBalancerPath,
          response: { 200: TaskIds },
        },
      },
      (request) => loadBalancers.delete(request.by, request.scope, request.params.load_balancer_id),
    );

    app.post(
      `${one}/resize`,
      {
        schema: {
          ...summarize('resizeLoadBalancer', 'Change the flavor of a load balancer'),
          params: LoadBalancerPath,
          body: ResizeLoadBalancer,
          response: { 200: TaskIds },
        },
      },
      (request) =>
        loadBalancers.resize(request.by, request.scope, request.params.load_balancer_id, request.body.flavor),
    );

    app.post(
      `${one}/failover`,
      {
        schema: {
          ...summarize('failoverLoadBalancer', 'Reconcile a load balancer with its host'),
          params: LoadBalancerPath,
          body: FailoverLoadBalancer,
          response: { 200: TaskIds },
        },
      },
      (request) => loadBalancers.failover(request.by, request.scope, request.params.load_balancer_id),
    );

    app.post(
      `${one}/metrics`,
      {
        schema: {
          ...summarize('getLoadBalancerMetrics', 'Get the traffic of a load balancer over time'),
          params: LoadBalancerPath,
          body: RequestMetrics,
          response: { 200: LoadBalancerMetricsCollection },
        },
      },
      (request) => loadBalancers.traffic.metrics(request.scope, request.params.load_balancer_id, request.body),
    );

    app.get(
      `${one}/status`,
      {
        schema: {
          ...summarize('getLoadBalancerStatus', 'Get the statuses of a load balancer and its parts'),
          params: LoadBalancerPath,
          response: { 200: LoadBalancerStatus },
        },
      },
      async (request, reply) =>
        sendInGroups(reply, await loadBalancers.status.get(request.scope, request.params.load_balancer_id)),
    );

    loadBalancerMetadataRoutes(loadBalancers)(app);
  };
}
