/** The operations of members at the paths that newer clients use, with the rules of pools. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { TaskIds } from '../../../http/shapes.ts';
import { operation } from '../pools/routes.ts';
import type { Pools } from '../pools/service.ts';
import { CreateMember, ListMembers, Member, MemberCollection, ReplaceMembers, UpdateMember } from './schema.ts';

const all = '/cloud/v1/loadbalancers/:project_id/:region_id/pools/:pool_id/members';
const one = `${all}/:member_id`;

export const memberOperations = (pools: Pools) => [
  operation('POST', all, {
    id: 'addLbPoolMember',
    summary: 'Add a member to a pool',
    description: 'Fails with 409 when the pool has a member with this address and port.',
    access: projectMember,
    body: CreateMember,
    bodyErrors: pools.errorsOfMember,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.createMember(by, scope, params.pool_id, body),
  }),
  operation('GET', all, {
    id: 'listLbPoolMembers',
    summary: 'List the members of a pool',
    access: projectReader,
    query: ListMembers,
    response: MemberCollection,
    handle: ({ scope, params, query }) => pools.listMembers(scope, params.pool_id, query),
  }),
  operation('PUT', all, {
    id: 'replaceLbPoolMembers',
    summary: 'Replace the members of a pool',
    description: 'A member whose address and port are in the new list keeps its ID and its connections.',
    access: projectMember,
    body: ReplaceMembers,
    bodyErrors: pools.errorsOfMembers,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.replaceMembers(by, scope, params.pool_id, body),
  }),
  operation('GET', one, {
    id: 'getLbPoolMember',
    summary: 'Get a member of a pool',
    access: projectReader,
    response: Member,
    handle: ({ scope, params }) => pools.getMember(scope, params.pool_id, params.member_id),
  }),
  operation('PATCH', one, {
    id: 'updateLbPoolMember',
    summary: 'Update a member of a pool',
    description: 'Omitted fields are unchanged. The address and port cannot change.',
    access: projectMember,
    body: UpdateMember,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => pools.updateMember(by, scope, params.pool_id, params.member_id, body),
  }),
  operation('DELETE', one, {
    id: 'removeLbPoolMember',
    summary: 'Remove a member from a pool',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => pools.deleteMember(by, scope, params.pool_id, params.member_id),
  }),
];
