/** The operations of lifecycle policies. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { NumberOf } from '../../http/path-parameters.ts';
import { operationsOf } from '../../http/operations.ts';
import { TaskIds } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { Price } from '../pricing/schema.ts';
import { Forecast, ForecastQuery } from './forecast/schema.ts';
import { ListMissedRuns, MissedRunCollection } from './missed-runs/schema.ts';
import type { MissedRuns } from './missed-runs/service.ts';
import type { RequestedRuns } from './requested-runs/service.ts';
import type { LifecyclePolicyRuns } from './runs/service.ts';
import { scheduleOperations } from './schedule/routes.ts';
import type { LifecyclePolicySchedules } from './schedule/service.ts';
import { ListRuns, RunCollection } from './runs/schema.ts';
import { PreviewSchedule, SchedulePreview } from './schedule/schema.ts';
import {
  AddSchedules,
  CreateLifecyclePolicy,
  LifecyclePolicy,
  LifecyclePolicyCollection,
  LifecyclePolicyPrice,
  LifecyclePolicyUsage,
  ListLifecyclePolicies,
  NeedVolumes,
  PriceLifecyclePolicy,
  RemoveSchedules,
  RunLifecyclePolicy,
  UpdateLifecyclePolicy,
  VolumeIds,
} from './schema.ts';
import type { LifecyclePolicies } from './service.ts';

const tag = {
  name: 'Lifecycle policies',
  description:
    'Snapshots of volumes on a schedule. A policy has at most 10 schedules. `status` is `active`, or ' +
    '`paused`: then no schedule runs and no snapshot expires. Changes take effect at once, without a task. ' +
    'Creating or resuming a policy starts no run; after downtime each schedule catches up with one run.\n\n' +
    'A **cron** schedule runs at the local times of `timezone` (an IANA name, `UTC` by default) that match all its ' +
    'fields. The rules are those of the CronTrigger of APScheduler:\n\n' +
    '| Field | Values | Also |\n|---|---|---|\n' +
    '| `month` | 1 to 12 | names: `jan`, `jan-mar` |\n' +
    '| `day` | 1 to 31 | `last`; weekdays of the month: `2nd mon`, `last fri` |\n' +
    '| `week` | 1 to 53 | ISO weeks |\n' +
    '| `day_of_week` | 0 (Monday) to 6 | names: `mon`, `mon-fri` |\n' +
    '| `hour` | 0 to 23 | |\n' +
    '| `minute` | 0 to 59 | |\n\n' +
    'Each field is text: `*`, `*/6`, `3`, `9-17`, `9-17/2`, or several of these with commas. At least one field is ' +
    'required. Omitted fields before the last given one of the table are `*`; those after it have their first value ' +
    '(`week` and `day_of_week`: `*`). A local time that a clock change skips does not run; one that occurs twice runs once.' +
    '\n\nAn **interval** schedule runs every `weeks`, `days`, `hours` and `minutes` after its creation; the four are ' +
    'added.\n\n' +
    'Each schedule keeps the newest `max_quantity` snapshots of a volume, and deletes those older than `retention_time`. ' +
    'The newest one never expires. Quota: `snapshot_schedule_count`; the snapshots count as any others.',
};
const operation = operationsOf(tag, { policy_id: NumberOf('the lifecycle policy') });
const all = '/cloud/v1/lifecycle_policy/:project_id/:region_id';
const one = `${all}/:policy_id`;

const changeOfOne = { access: projectMember, query: NeedVolumes, response: LifecyclePolicy };
const policyIn = (request: { params: { policy_id: number }; query: { need_volumes?: boolean } }) => ({
  id: request.params.policy_id,
  needVolumes: request.query.need_volumes,
});

interface LifecyclePolicyServices {
  lifecyclePolicies: LifecyclePolicies;
  lifecyclePolicyRuns: LifecyclePolicyRuns;
  lifecyclePolicySchedules: LifecyclePolicySchedules;
  missedRuns: MissedRuns;
  requestedRuns: RequestedRuns;
}

export const lifecyclePolicyOperations = ({
  lifecyclePolicies: policies,
  lifecyclePolicyRuns: runs,
  lifecyclePolicySchedules: schedules,
  missedRuns,
  requestedRuns,
}: LifecyclePolicyServices) => [
  operation('POST', all, {
    id: 'createLifecyclePolicy',
    summary: 'Create a lifecycle policy',
    access: projectMember,
    query: NeedVolumes,
    body: CreateLifecyclePolicy,
    bodyErrors: policies.bodyErrors,
    response: LifecyclePolicy,
    handle: ({ by, scope, query, body }) => policies.create(by, scope, body, query.need_volumes),
  }),
  operation('GET', all, {
    id: 'listLifecyclePolicies',
    summary: 'List lifecycle policies',
    description: 'The oldest policy comes first.',
    access: projectReader,
    query: ListLifecyclePolicies,
    response: LifecyclePolicyCollection,
    handle: async ({ scope, query }, reply) => sendInGroups(reply, await policies.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getLifecyclePolicy',
    summary: 'Get a lifecycle policy',
    access: projectReader,
    query: NeedVolumes,
    response: LifecyclePolicy,
    handle: (request) => policies.get(request.scope, policyIn(request)),
  }),
  operation('PATCH', one, {
    ...changeOfOne,
    id: 'updateLifecyclePolicy',
    summary: 'Update a lifecycle policy',
    description: 'Renames, pauses or resumes the policy.',
    body: UpdateLifecyclePolicy,
    handle: (request) => policies.update(request.by, request.scope, policyIn(request), request.body),
  }),
  operation('DELETE', one, {
    id: 'deleteLifecyclePolicy',
    summary: 'Delete a lifecycle policy',
    description: 'The snapshots of the policy are kept, and no longer expire.',
    access: projectMember,
    handle: ({ by, scope, params }) => policies.delete(by, scope, params.policy_id),
  }),
  ...scheduleListOperations(policies),
  ...runOperations(runs, missedRuns, requestedRuns),
  ...scheduleOperations(tag, schedules),
  ...volumeOperations(policies),
  ...previewOperations(policies),
];

const scheduleListOperations = (policies: LifecyclePolicies) => [
  operation('POST', `${one}/add_schedules`, {
    ...changeOfOne,
    id: 'addLifecyclePolicySchedules',
    summary: 'Add schedules to a lifecycle policy',
    description: 'A schedule that equals an existing one is not added again.',
    body: AddSchedules,
    bodyErrors: policies.bodyErrors,
    handle: (request) => policies.addSchedules(request.by, request.scope, policyIn(request), request.body.schedules),
  }),
  operation('POST', `${one}/remove_schedules`, {
    ...changeOfOne,
    id: 'removeLifecyclePolicySchedules',
    summary: 'Remove schedules from a lifecycle policy',
    description: 'The snapshots of the schedules are kept, and no longer expire. Unknown IDs are ignored.',
    body: RemoveSchedules,
    handle: (request) =>
      policies.removeSchedules(request.by, request.scope, policyIn(request), request.body.schedule_ids),
  }),
];

const ownOne = '/cloudyard/v1/lifecycle_policy/:project_id/:region_id/:policy_id';

const runOperations = (runs: LifecyclePolicyRuns, missedRuns: MissedRuns, requestedRuns: RequestedRuns) => [
  operation('POST', `${ownOne}/run`, {
    id: 'runLifecyclePolicy',
    summary: 'Run a lifecycle policy now',
    description:
      'Each schedule runs at once, with its retention and names, besides its next run. Returns a task for each; a task ends ' +
      'when the snapshots are done, in ERROR if one failed. A paused policy is 409.',
    access: projectMember,
    body: RunLifecyclePolicy,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => requestedRuns.run(by, scope, params.policy_id, body),
  }),
  operation('GET', `${ownOne}/missed_runs`, {
    id: 'listLifecyclePolicyMissedRuns',
    summary: 'List the missed runs of a lifecycle policy',
    description: 'Runs that started late or not at all, and those that they replaced. The newest comes first.',
    access: projectReader,
    query: ListMissedRuns,
    response: MissedRunCollection,
    handle: ({ scope, params, query }) => missedRuns.list(scope, params.policy_id, query),
  }),
  operation('GET', `${one}/runs`, {
    id: 'listLifecyclePolicyRuns',
    summary: 'List the runs of a lifecycle policy',
    description: 'The newest run comes first.',
    access: projectReader,
    query: ListRuns,
    response: RunCollection,
    handle: async ({ scope, params, query }, reply) =>
      sendInGroups(reply, await runs.list(scope, params.policy_id, query)),
  }),
];

const volumeOperations = (policies: LifecyclePolicies) => [
  operation('PUT', `${one}/add_volumes_to_policy`, {
    ...changeOfOne,
    id: 'addLifecyclePolicyVolumes',
    summary: 'Add volumes to a lifecycle policy',
    body: VolumeIds,
    handle: (request) => policies.addVolumes(request.by, request.scope, policyIn(request), request.body.volume_ids),
  }),
  operation('PUT', `${one}/remove_volumes_from_policy`, {
    ...changeOfOne,
    id: 'removeLifecyclePolicyVolumes',
    summary: 'Remove volumes from a lifecycle policy',
    description: 'The snapshots of the volumes are kept, and no longer expire. Unknown IDs are ignored.',
    body: VolumeIds,
    handle: (request) => policies.removeVolumes(request.by, request.scope, policyIn(request), request.body.volume_ids),
  }),
];

const previewOperations = (policies: LifecyclePolicies) => [
  operation('GET', `${ownOne}/forecast`, {
    id: 'forecastLifecyclePolicy',
    summary: 'Forecast the runs of a lifecycle policy',
    description: 'Lists the next runs, and the existing snapshots that expire until the last of them.',
    access: projectReader,
    route: { config: { readsManyRows: true } },
    query: ForecastQuery,
    response: Forecast,
    handle: ({ scope, params, query }) => policies.forecast(scope, params.policy_id, query),
  }),
  operation('POST', `${all}/preview_schedule`, {
    id: 'previewLifecyclePolicySchedule',
    summary: 'Preview the run times of a schedule',
    description: 'An interval starts at `from`.',
    access: projectReader,
    body: PreviewSchedule,
    bodyErrors: policies.previewErrors,
    response: SchedulePreview,
    handle: ({ body }) => policies.preview(body),
  }),
  operation('POST', `${all}/estimate_max_policy_usage`, {
    id: 'estimateLifecyclePolicyUsage',
    summary: 'Estimate the maximum usage of a lifecycle policy',
    description: 'Returns the largest number, size and price of the snapshots that the policy would keep at a time.',
    access: projectReader,
    body: CreateLifecyclePolicy,
    bodyErrors: policies.bodyErrors,
    response: LifecyclePolicyUsage,
    handle: ({ by, scope, body }) => policies.estimate(scope, by.actor.clientId, body),
  }),
  operation('POST', '/cloud/v2/pricing/:project_id/:region_id/lifecycle_policy', {
    id: 'previewLifecyclePolicyPrice',
    summary: 'Preview the maximum price of a lifecycle policy',
    description: 'Lists the price of each volume.',
    access: projectReader,
    body: PriceLifecyclePolicy,
    bodyErrors: policies.bodyErrors,
    response: LifecyclePolicyPrice,
    handle: ({ by, scope, body }) => policies.price(scope, by.actor.clientId, body),
  }),
  operation('POST', '/cloud/v1/pricing/:project_id/:region_id/lifecycle_policy', {
    id: 'previewLifecyclePolicyPriceV1',
    summary: 'Preview the maximum price of a lifecycle policy (v1)',
    description: 'Returns one price for all volumes. Use v2.',
    deprecated: true,
    access: projectReader,
    body: CreateLifecyclePolicy,
    bodyErrors: policies.bodyErrors,
    response: Price,
    handle: ({ by, scope, body }) => policies.priceV1(scope, by.actor.clientId, body),
  }),
];
