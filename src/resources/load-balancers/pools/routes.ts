/** The HTTP operations of pools, members and health monitors (docs/interface.md, "Pools"). */
import { Type } from 'typebox';
import type { Routes } from '../../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../../http/shapes.ts';
import { sendInGroups } from '../../../http/streamed-list.ts';
import {
  CreateHealthMonitor,
  CreateMember,
  CreatePool,
  HealthMonitorView,
  LbPool,
  LbPoolCollection,
  ListPools,
  MemberPath,
  PatchHealthMonitor,
  PoolPath,
  UpdatePool,
} from './schema.ts';
import type { LbPools } from './service.ts';

const tags = ['Load balancer pools'];
const all = '/cloud/v1/lbpools/:project_id/:region_id';
const one = `${all}/:pool_id`;
const done = { 200: TaskIds };

export function lbPoolRoutes(pools: LbPools): Routes {
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
          ...summarize('createLbPool', 'Create a pool of a load balancer'),
          params: ProjectRegion,
          body: CreatePool,
          response: done,
        },
      },
      (request) => pools.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listLbPools', 'List pools'),
          params: ProjectRegion,
          querystring: ListPools,
          response: { 200: LbPoolCollection },
        },
      },
      async (request, reply) => sendInGroups(reply, await pools.list(request.scope, request.query)),
    );

    app.get(
      one,
      { schema: { ...summarize('getLbPool', 'Get a pool'), params: PoolPath, response: { 200: LbPool } } },
      (request) => pools.get(request.scope, request.params.pool_id),
    );

    app.patch(
      one.replace('/v1/', '/v2/'),
      {
        schema: {
          ...summarize('updateLbPool', 'Update the settings, health monitor and members of a pool'),
          params: PoolPath,
          body: UpdatePool,
          response: done,
        },
      },
      (request) => pools.update(request.by, request.scope, request.params.pool_id, request.body),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateLbPoolV1', 'Update a pool (same as v2)', true),
          params: PoolPath,
          body: UpdatePool,
          response: done,
        },
      },
      (request, reply) => {
        reply.header('deprecation', 'true');
        return pools.update(request.by, request.scope, request.params.pool_id, request.body);
      },
    );

    app.delete(
      one,
      { schema: { ...summarize('deleteLbPool', 'Delete a pool'), params: PoolPath, response: done } },
      (request) => pools.delete(request.by, request.scope, request.params.pool_id),
    );

    app.post(
      `${one}/healthmonitor`,
      {
        schema: {
          ...summarize('createLbPoolHealthMonitor', 'Create or replace the health monitor of a pool'),
          params: PoolPath,
          body: CreateHealthMonitor,
          response: done,
        },
      },
      (request) => pools.createHealthMonitor(request.by, request.scope, request.params.pool_id, request.body),
    );

    app.get(
      `${one}/healthmonitor`,
      {
        schema: {
          ...summarize('getLbPoolHealthMonitor', 'Get the health monitor of a pool'),
          params: PoolPath,
          response: { 200: HealthMonitorView },
        },
      },
      (request) => pools.getHealthMonitor(request.scope, request.params.pool_id),
    );

    app.patch(
      `${one}/healthmonitor`,
      {
        schema: {
          ...summarize('updateLbPoolHealthMonitor', 'Update the health monitor of a pool'),
          params: PoolPath,
          body: PatchHealthMonitor,
          response: done,
        },
      },
      (request) => pools.updateHealthMonitor(request.by, request.scope, request.params.pool_id, request.body),
    );

    app.delete(
      `${one}/healthmonitor`,
      {
        schema: {
          ...summarize('deleteLbPoolHealthMonitor', 'Delete the health monitor of a pool'),
          params: PoolPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await pools.deleteHealthMonitor(request.by, request.scope, request.params.pool_id);
        return reply.code(204).send(null);
      },
    );

    app.post(
      `${one}/member`,
      {
        schema: {
          ...summarize('createLbPoolMember', 'Add a member to a pool'),
          params: PoolPath,
          body: CreateMember,
          response: done,
        },
      },
      (request) => pools.createMember(request.by, request.scope, request.params.pool_id, request.body),
    );

    app.delete(
      `${one}/member/:member_id`,
      {
        schema: {
          ...summarize('deleteLbPoolMember', 'Remove a member from a pool'),
          params: MemberPath,
          response: done,
        },
      },
      (request) => {
        const { pool_id, member_id } = request.params;
        return pools.deleteMember(request.by, request.scope, pool_id, member_id);
      },
    );
  };
}
