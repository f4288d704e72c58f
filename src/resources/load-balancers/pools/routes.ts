/** The operations of pools and health monitors, and the older operations of members. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { operationsOf } from '../../../http/operations.ts';
import { TaskIds } from '../../../http/shapes.ts';
import { sendInGroups } from '../../../http/streamed-list.ts';
import { errorsOfHealthMonitor } from '../body-errors.ts';
import { CreateMember } from '../members/schema.ts';
import {
  CreateHealthMonitor,
  CreatePool,
  HealthMonitorView,
  LbPool,
  LbPoolCollection,
  ListPools,
  PatchHealthMonitor,
  UpdatePool,
} from './schema.ts';
import type { Pools } from './service.ts';

const tag = {
  name: 'Load balancer pools',
  description:
    'The members of a load balancer, how traffic is distributed among them, and how their health is checked. A pool ' +
    'serves at most one listener of its load balancer; its protocol must fit:\n\n' +
    '| Listener | Pool |\n|---|---|\n' +
    '| `HTTP`, `TERMINATED_HTTPS` | `HTTP`, `HTTPS`, `PROXY`, `PROXYV2` |\n' +
    '| `HTTPS` | `HTTPS`, `PROXY`, `PROXYV2`, `TCP` |\n' +
    '| `TCP` | `HTTP`, `HTTPS`, `PROXY`, `PROXYV2`, `TCP` |\n' +
    '| `UDP` | `UDP` |\n' +
    '| `PROMETHEUS` | none |\n\n' +
    'A member is identified by its address and port. Changes of members and health monitors of a load balancer run one ' +
    'after the other in the order of the requests; other changes fail with 409 while a task changes the load balancer.',
};
/** Also declares the operations of members. */
export const operation = operationsOf(tag, { pool_id: IdOf('the pool'), member_id: IdOf('the member') });
const all = '/cloud/v1/lbpools/:project_id/:region_id';
const one = `${all}/:pool_id`;

export const poolOperations = (pools: Pools) => [
  operation('POST', all, {
    id: 'createLbPool',
    summary: 'Create a pool',
    description: 'Send `listener_id`, `load_balancer_id` or both.',
    access: projectMember,
    body: CreatePool,
    bodyErrors: pools.errorsOfPool,
    response: TaskIds,
    handle: ({ by, scope, body }) => pools.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listLbPools',
    summary: 'List pools',
    description: 'The oldest pool comes first. Members are listed by ID unless `details` is true.',
    access: projectReader,
    query: ListPools,
    response: LbPoolCollection,
    handle: async ({ scope, query }, reply) => sendInGroups(reply, await pools.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getLbPool',
    summary: 'Get a pool',
    access: projectReader,
    response: LbPool,
    handle: ({ scope, params }) => pools.get(scope, params.pool_id),
  }),
  operation('PATCH', '/cloud/v2/lbpools/:project_id/:region_id/:pool_id', {
    id: 'updateLbPool',
    summary: 'Update a pool',
    description:
      'Omitted fields are unchanged, objects and lists are replaced, and null removes. Without a change no task starts.',
    access: projectMember,
    body: UpdatePool,
    bodyErrors: pools.errorsOfPoolUpdate,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.update(by, scope, params.pool_id, body),
  }),
  operation('PATCH', one, {
    id: 'updateLbPoolV1',
    summary: 'Update a pool (v1)',
    description: 'Equal to v2. Use v2.',
    deprecated: true,
    access: projectMember,
    body: UpdatePool,
    bodyErrors: pools.errorsOfPoolUpdate,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.update(by, scope, params.pool_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteLbPool',
    summary: 'Delete a pool',
    description: 'Deletes the pool with its members and health monitor. The listener remains.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => pools.delete(by, scope, params.pool_id),
  }),
  operation('POST', `${one}/healthmonitor`, {
    id: 'createLbPoolHealthMonitor',
    summary: 'Create the health monitor of a pool',
    description: 'Replaces an existing health monitor, which keeps its ID.',
    access: projectMember,
    body: CreateHealthMonitor,
    bodyErrors: errorsOfHealthMonitor,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.createHealthMonitor(by, scope, params.pool_id, body),
  }),
  operation('GET', `${one}/healthmonitor`, {
    id: 'getLbPoolHealthMonitor',
    summary: 'Get the health monitor of a pool',
    access: projectReader,
    response: HealthMonitorView,
    handle: ({ scope, params }) => pools.getHealthMonitor(scope, params.pool_id),
  }),
  operation('PATCH', `${one}/healthmonitor`, {
    id: 'updateLbPoolHealthMonitor',
    summary: 'Update the health monitor of a pool',
    description: 'Omitted fields are unchanged.',
    access: projectMember,
    body: PatchHealthMonitor,
    bodyErrors: errorsOfHealthMonitor,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.updateHealthMonitor(by, scope, params.pool_id, body),
  }),
  operation('DELETE', `${one}/healthmonitor`, {
    id: 'deleteLbPoolHealthMonitor',
    summary: 'Delete the health monitor of a pool',
    description: 'Answers when the host has applied the change, or after 5 seconds.',
    access: projectMember,
    handle: ({ by, scope, params }) => pools.deleteHealthMonitor(by, scope, params.pool_id),
  }),
  operation('POST', `${one}/member`, {
    id: 'createLbPoolMember',
    summary: 'Create a member of a pool',
    description: 'Fails with 409 when the pool has a member with this address and port.',
    access: projectMember,
    body: CreateMember,
    bodyErrors: pools.errorsOfMember,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.createMember(by, scope, params.pool_id, body),
  }),
  operation('DELETE', `${one}/member/:member_id`, {
    id: 'deleteLbPoolMember',
    summary: 'Delete a member of a pool',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => pools.deleteMember(by, scope, params.pool_id, params.member_id),
  }),
];
