/** The HTTP operations of lifecycle policies, with previews and estimates (docs/interface.md, "Lifecycle policies"). */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { Price } from '../pricing/schema.ts';
import type { LifecyclePolicyRuns } from './runs/service.ts';
import {
  AddSchedules,
  CreateLifecyclePolicy,
  LifecyclePolicy,
  LifecyclePolicyCollection,
  LifecyclePolicyPath,
  LifecyclePolicyPrice,
  LifecyclePolicyUsage,
  ListLifecyclePolicies,
  ListRuns,
  NeedVolumes,
  PreviewSchedule,
  PriceLifecyclePolicy,
  RemoveSchedules,
  RunCollection,
  SchedulePreview,
  UpdateLifecyclePolicy,
  VolumeIds,
} from './schema.ts';
import type { LifecyclePolicies } from './service.ts';

const tags = ['Lifecycle policies'];
const all = '/cloud/v1/lifecycle_policy/:project_id/:region_id';
const one = `${all}/:policy_id`;

const summarize = (operationId: string, summary: string, deprecated = false) => ({
  operationId,
  summary,
  tags,
  ...(deprecated && { deprecated }),
});
const ofOne = { params: LifecyclePolicyPath, querystring: NeedVolumes, response: { 200: LifecyclePolicy } };
const asked = (request: { params: { policy_id: number }; query: { need_volumes?: boolean } }) => ({
  id: request.params.policy_id,
  needVolumes: request.query.need_volumes,
});

export function lifecyclePolicyRoutes(policies: LifecyclePolicies, runs: LifecyclePolicyRuns): Routes {
  return (app) => {
    policyRoutes(policies)(app);
    memberRoutes(policies)(app);
    foresightRoutes(policies)(app);
    app.get(
      `${one}/runs`,
      {
        schema: {
          ...summarize('listLifecyclePolicyRuns', 'List what the schedules of a policy did, newest first'),
          params: LifecyclePolicyPath,
          querystring: ListRuns,
          response: { 200: RunCollection },
        },
      },
      async (request, reply) =>
        sendInGroups(reply, await runs.list(request.scope, request.params.policy_id, request.query)),
    );
  };
}

function policyRoutes(policies: LifecyclePolicies): Routes {
  return (app) => {
    app.post(
      all,
      {
        schema: {
          ...summarize('createLifecyclePolicy', 'Create a lifecycle policy'),
          params: ProjectRegion,
          querystring: NeedVolumes,
          body: CreateLifecyclePolicy,
          response: { 200: LifecyclePolicy },
        },
      },
      (request) => policies.create(request.by, request.scope, request.body, request.query.need_volumes),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listLifecyclePolicies', 'List lifecycle policies, oldest first'),
          params: ProjectRegion,
          querystring: ListLifecyclePolicies,
          response: { 200: LifecyclePolicyCollection },
        },
      },
      async (request, reply) => sendInGroups(reply, await policies.list(request.scope, request.query)),
    );

    app.get(one, { schema: { ...summarize('getLifecyclePolicy', 'Get a lifecycle policy'), ...ofOne } }, (request) =>
      policies.get(request.scope, asked(request)),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateLifecyclePolicy', 'Rename, pause or resume a lifecycle policy'),
          ...ofOne,
          body: UpdateLifecyclePolicy,
        },
        // No body at all changes nothing, as an empty one.
        preValidation: async (request) => {
          request.body ??= {};
        },
      },
      (request) => policies.update(request.by, request.scope, asked(request), request.body),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteLifecyclePolicy', 'Delete a lifecycle policy and keep its snapshots'),
          params: LifecyclePolicyPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await policies.delete(request.by, request.scope, request.params.policy_id);
        return reply.code(204).send(null);
      },
    );
  };
}

/** Its schedules and volumes. */
function memberRoutes(policies: LifecyclePolicies): Routes {
  return (app) => {
    app.post(
      `${one}/add_schedules`,
      {
        schema: {
          ...summarize('addLifecyclePolicySchedules', 'Add schedules to a lifecycle policy'),
          description: 'One that says the same as one that is there already is not added again.',
          ...ofOne,
          body: AddSchedules,
        },
      },
      (request) => policies.addSchedules(request.by, request.scope, asked(request), request.body.schedules),
    );

    app.post(
      `${one}/remove_schedules`,
      {
        schema: {
          ...summarize('removeLifecyclePolicySchedules', 'Remove schedules from a lifecycle policy'),
          ...ofOne,
          body: RemoveSchedules,
        },
      },
      (request) => policies.removeSchedules(request.by, request.scope, asked(request), request.body.schedule_ids),
    );

    app.put(
      `${one}/add_volumes_to_policy`,
      {
        schema: {
          ...summarize('addLifecyclePolicyVolumes', 'Put volumes under a lifecycle policy'),
          ...ofOne,
          body: VolumeIds,
        },
      },
      (request) => policies.addVolumes(request.by, request.scope, asked(request), request.body.volume_ids),
    );

    app.put(
      `${one}/remove_volumes_from_policy`,
      {
        schema: {
          ...summarize('removeLifecyclePolicyVolumes', 'Take volumes out of a lifecycle policy'),
          ...ofOne,
          body: VolumeIds,
        },
      },
      (request) => policies.removeVolumes(request.by, request.scope, asked(request), request.body.volume_ids),
    );
  };
}

/** What would be. */
function foresightRoutes(policies: LifecyclePolicies): Routes {
  return (app) => {
    app.post(
      `${all}/preview_schedule`,
      {
        schema: {
          ...summarize('previewLifecyclePolicySchedule', 'Tell the next instants at which a schedule would run'),
          params: ProjectRegion,
          body: PreviewSchedule,
          response: { 200: SchedulePreview },
        },
      },
      async (request) => policies.preview(request.body),
    );

    app.post(
      `${all}/estimate_max_policy_usage`,
      {
        schema: {
          ...summarize('estimateLifecyclePolicyUsage', 'Tell what a lifecycle policy would keep and cost at most'),
          params: ProjectRegion,
          body: CreateLifecyclePolicy,
          response: { 200: LifecyclePolicyUsage },
        },
      },
      (request) => policies.estimate(request.scope, request.by.actor.clientId, request.body),
    );

    app.post(
      '/cloud/v2/pricing/:project_id/:region_id/lifecycle_policy',
      {
        schema: {
          ...summarize('previewLifecyclePolicyPrice', 'Preview the price of a lifecycle policy by volume, at most'),
          params: ProjectRegion,
          body: PriceLifecyclePolicy,
          response: { 200: LifecyclePolicyPrice },
        },
      },
      (request) => policies.price(request.scope, request.by.actor.clientId, request.body),
    );

    app.post(
      '/cloud/v1/pricing/:project_id/:region_id/lifecycle_policy',
      {
        schema: {
          ...summarize('previewLifecyclePolicyPriceV1', 'Preview the price of a lifecycle policy, at most', true),
          params: ProjectRegion,
          body: CreateLifecyclePolicy,
          response: { 200: Price },
        },
      },
      (request) => policies.priceV1(request.scope, request.by.actor.clientId, request.body),
    );
  };
}
