/** The HTTP operations of members at the paths of newer clients. */
import type { Routes } from '../../../http/app.ts';
import { TaskIds } from '../../../http/shapes.ts';
import {
  CreateMember,
  ListMembers,
  Member,
  MemberCollection,
  MemberPath,
  PoolPath,
  ReplaceMembers,
  UpdateMember,
} from '../pools/schema.ts';
import type { LbPools } from '../pools/service.ts';

const tags = ['Load balancer pools'];
const all = '/cloud/v1/loadbalancers/:project_id/:region_id/pools/:pool_id/members';
const one = `${all}/:member_id`;
const done = { 200: TaskIds };

export function lbPoolMemberRoutes(pools: LbPools): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags });

    app.post(
      all,
      {
        schema: {
          ...summarize('addLbPoolMember', 'Add a member to a pool'),
          params: PoolPath,
          body: CreateMember,
          response: done,
        },
      },
      (request) => pools.createMember(request.by, request.scope, request.params.pool_id, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listLbPoolMembers', 'List the members of a pool'),
          params: PoolPath,
          querystring: ListMembers,
          response: { 200: MemberCollection },
        },
      },
      (request) => pools.listMembers(request.scope, request.params.pool_id, request.query),
    );

    app.put(
      all,
      {
        schema: {
          ...summarize('replaceLbPoolMembers', 'Replace the members of a pool'),
          params: PoolPath,
          body: ReplaceMembers,
          response: done,
        },
      },
      (request) => pools.update(request.by, request.scope, request.params.pool_id, { members: request.body }),
    );

    app.get(
      one,
      { schema: { ...summarize('getLbPoolMember', 'Get a member'), params: MemberPath, response: { 200: Member } } },
      (request) => pools.getMember(request.scope, request.params.pool_id, request.params.member_id),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateLbPoolMember', 'Update a member'),
          params: MemberPath,
          body: UpdateMember,
          response: done,
        },
      },
      (request) => {
        const { pool_id, member_id } = request.params;
        return pools.updateMember(request.by, request.scope, pool_id, member_id, request.body);
      },
    );

    app.delete(
      one,
      { schema: { ...summarize('removeLbPoolMember', 'Remove a member'), params: MemberPath, response: done } },
      (request) => pools.deleteMember(request.by, request.scope, request.params.pool_id, request.params.member_id),
    );
  };
}
