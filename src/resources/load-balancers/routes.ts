/** The operations of load balancers. Those of tags are in metadata/. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { TaskIds } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { errorsOfTagPatch } from '../../tags/tags.ts';
import { loadBalancerMetadataOperations } from './metadata/routes.ts';
import {
  CheckLoadBalancerLimits,
  CreateLoadBalancer,
  FailoverLoadBalancer,
  GetLoadBalancer,
  ListLoadBalancers,
  LoadBalancer,
  LoadBalancerCollection,
  LoadBalancerRequiredQuota,
  ResizeLoadBalancer,
  UpdateLoadBalancer,
  UpdateLoadBalancerV1,
} from './schema.ts';
import type { LoadBalancers } from './service.ts';
import { LoadBalancerStatus, LoadBalancerStatusCollection } from './status/schema.ts';
import {
  LoadBalancerMetricsCollection,
  LoadBalancerTrafficHistory,
  RequestMetrics,
  TrafficQuery,
} from './traffic/schema.ts';

const tag = {
  name: 'Load balancers',
  description:
    'An address (`vip_address`) with listeners, which are its ports, and pools, which are groups of members that get ' +
    'the traffic. The address is IPv4, or IPv6 in a region that has an IPv6 range; `vip_ip_family` selects it. The load balancer and its parts each have two statuses:\n\n' +
    '| Field | Meaning | Values |\n|---|---|---|\n' +
    '| `provisioning_status` | whether the host has the configuration | `PENDING_CREATE`, `PENDING_UPDATE`, ' +
    '`PENDING_DELETE`, then `ACTIVE` or `ERROR` |\n' +
    '| `operating_status` | state that the proxy reports | `ONLINE`, `DEGRADED`, `ERROR`, `NO_MONITOR`, `DRAINING`, `OFFLINE` |\n\n' +
    'The load balancer and its parts lock together: while a task changes one of them, `task_id` names the task, and ' +
    'other changes fail with 409; only updates of pools and changes of members, health monitors, L7 policies and rules ' +
    'wait for each other instead. Flavors differ in price only. Floating IPs are not supported. Quota: `loadbalancer_count`.',
};
const operation = operationsOf(tag, { load_balancer_id: IdOf('the load balancer') });
const all = '/cloud/v1/loadbalancers/:project_id/:region_id';
const one = `${all}/:load_balancer_id`;

export const loadBalancerOperations = (loadBalancers: LoadBalancers) => [
  operation('POST', all, {
    id: 'createLoadBalancer',
    summary: 'Create a load balancer',
    description: 'Listeners and their pools can be created with it: one task creates everything or nothing.',
    access: projectMember,
    body: CreateLoadBalancer,
    bodyErrors: loadBalancers.bodyErrors,
    response: TaskIds,
    handle: ({ by, scope, body }) => loadBalancers.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listLoadBalancers',
    summary: 'List load balancers',
    access: projectReader,
    query: ListLoadBalancers,
    response: LoadBalancerCollection,
    handle: async ({ scope, query }, reply) => sendInGroups(reply, await loadBalancers.list(scope, query)),
  }),
  operation('GET', `${all}/status`, {
    id: 'listLoadBalancerStatuses',
    summary: 'List the statuses of load balancers and their parts',
    description: 'The oldest load balancer comes first. The list is not paged.',
    access: projectReader,
    response: LoadBalancerStatusCollection,
    handle: async ({ scope }, reply) => sendInGroups(reply, await loadBalancers.status.list(scope)),
  }),
  operation('POST', `${all}/check_limits`, {
    id: 'checkLoadBalancerLimits',
    summary: 'Check the quota for a new load balancer',
    description: 'Lists the quotas that a new load balancer would exceed; the response is empty if there are none.',
    access: projectReader,
    body: CheckLoadBalancerLimits,
    response: LoadBalancerRequiredQuota,
    handle: ({ scope, body }) => loadBalancers.checkLimits(scope, body),
  }),
  operation('POST', `${one}/check_limits`, {
    id: 'checkLoadBalancerLimitsBesides',
    summary: 'Check the quota for another load balancer',
    description: 'The response is that of `checkLoadBalancerLimits`; 404 when the load balancer does not exist.',
    access: projectReader,
    body: CheckLoadBalancerLimits,
    response: LoadBalancerRequiredQuota,
    handle: ({ scope, params, body }) => loadBalancers.checkLimits(scope, body, params.load_balancer_id),
  }),
  operation('GET', one, {
    id: 'getLoadBalancer',
    summary: 'Get a load balancer',
    access: projectReader,
    query: GetLoadBalancer,
    response: LoadBalancer,
    handle: ({ scope, params, query }) => loadBalancers.get(scope, params.load_balancer_id, query.show_stats),
  }),
  operation('PATCH', '/cloud/v2/loadbalancers/:project_id/:region_id/:load_balancer_id', {
    id: 'updateLoadBalancer',
    summary: 'Update a load balancer',
    description: 'Changes the name, tags and settings that the body contains. Without a change no task starts.',
    access: projectMember,
    body: UpdateLoadBalancer,
    bodyErrors: errorsOfTagPatch,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => loadBalancers.update(by, scope, params.load_balancer_id, body),
  }),
  operation('PATCH', one, {
    id: 'updateLoadBalancerV1',
    summary: 'Update a load balancer (v1)',
    description: 'Returns the load balancer instead of a task. Use v2.',
    deprecated: true,
    access: projectMember,
    body: UpdateLoadBalancerV1,
    bodyErrors: errorsOfTagPatch,
    response: LoadBalancer,
    handle: ({ by, scope, params, body }) => loadBalancers.updateV1(by, scope, params.load_balancer_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteLoadBalancer',
    summary: 'Delete a load balancer',
    description: 'Deletes the load balancer with its listeners and pools. A failed deletion can be repeated.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => loadBalancers.delete(by, scope, params.load_balancer_id),
  }),
  operation('POST', `${one}/resize`, {
    id: 'resizeLoadBalancer',
    summary: 'Change the flavor of a load balancer',
    access: projectMember,
    body: ResizeLoadBalancer,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => loadBalancers.resize(by, scope, params.load_balancer_id, body.flavor),
  }),
  operation('POST', `${one}/failover`, {
    id: 'failoverLoadBalancer',
    summary: 'Fail over a load balancer',
    description:
      'Compares the hosts with the requested configuration and repairs them. No instance changes. Use it to retry a failed ' +
      'task.',
    access: projectMember,
    body: FailoverLoadBalancer,
    response: TaskIds,
    handle: ({ by, scope, params }) => loadBalancers.failover(by, scope, params.load_balancer_id),
  }),
  operation('POST', `${one}/metrics`, {
    id: 'getLoadBalancerMetrics',
    summary: 'Get the traffic of a load balancer over time',
    description:
      'The oldest point comes first. A point is a minute for periods of up to 5 hours, ten minutes for up to 48 hours, ' +
      'and otherwise an hour.',
    access: projectReader,
    body: RequestMetrics,
    response: LoadBalancerMetricsCollection,
    handle: ({ scope, params, body }) => loadBalancers.traffic.metrics(scope, params.load_balancer_id, body),
  }),
  operation('GET', '/cloudyard/v1/loadbalancers/:project_id/:region_id/:load_balancer_id/traffic', {
    id: 'getLoadBalancerTraffic',
    summary: 'Get requests, connections, bytes and errors of a load balancer over time',
    description:
      'The proxy is read every 10 seconds, and the history is retained for a week. A simulated driver has no traffic: ' +
      'all values are 0.',
    access: projectReader,
    route: { config: { readsManyRows: true } },
    query: TrafficQuery,
    response: LoadBalancerTrafficHistory,
    handle: ({ scope, params, query }) => loadBalancers.traffic.history(scope, params.load_balancer_id, query),
  }),
  operation('GET', `${one}/status`, {
    id: 'getLoadBalancerStatus',
    summary: 'Get the statuses of a load balancer and its parts',
    access: projectReader,
    route: { config: { readsManyRows: true } },
    response: LoadBalancerStatus,
    handle: async ({ scope, params }, reply) =>
      sendInGroups(reply, await loadBalancers.status.get(scope, params.load_balancer_id)),
  }),
  ...loadBalancerMetadataOperations(loadBalancers, tag),
];
