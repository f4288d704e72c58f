import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type Policy = components['schemas']['LifecyclePolicy'];
export type Schedule = components['schemas']['LifecyclePolicySchedule'];
export type ScheduleInput = components['schemas']['CreateLifecyclePolicySchedule'];
export type Run = components['schemas']['LifecyclePolicyRun'];
export type MissedRun = components['schemas']['MissedLifecyclePolicyRun'];
export type Forecast = components['schemas']['LifecyclePolicyForecast'];

export const KIND = 'lifecycle_policies';
export const POLICIES = '/cloud/v1/lifecycle_policy/{project_id}/{region_id}';
export const POLICY = '/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}';

export const OWN_POLICY = '/cloudyard/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}';

/** Runs that the calendar shows: the API's largest page. */
const RUNS = 1000;
/** Missed runs that the calendar shows. */
const MISSED_RUNS = 200;
/** Of each schedule. */
export const COMING_RUNS = 100;

export const policyParams = (scope: Scope, id: number | string) => ({ ...scopeParams(scope), policy_id: Number(id) });

export const policiesQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET(POLICIES, { params: { path: scopeParams(scope), query: { ...query, need_volumes: true } } })),
      ),
  });

export const policyQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id)],
    queryFn: () =>
      unwrap(api.GET(POLICY, { params: { path: policyParams(scope, id), query: { need_volumes: true } } })),
  });

export const CurrentPolicy = currentResource(policyQuery);

/** The newest run comes first. */
export const runsQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'runs'],
    queryFn: () =>
      unwrap(api.GET(`${POLICY}/runs`, { params: { path: policyParams(scope, id), query: { limit: RUNS } } })),
  });

/** The newest comes first. */
export const missedRunsQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'missed'],
    queryFn: () =>
      unwrap(
        api.GET(`${OWN_POLICY}/missed_runs`, {
          params: { path: policyParams(scope, id), query: { limit: MISSED_RUNS } },
        }),
      ),
  });

export const forecastQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'forecast'],
    queryFn: () =>
      unwrap(
        api.GET(`${OWN_POLICY}/forecast`, {
          params: { path: policyParams(scope, id), query: { count: COMING_RUNS, limit: 1000 } },
        }),
      ),
  });
