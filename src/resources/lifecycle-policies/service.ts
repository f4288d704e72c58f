/**
 * The rules of lifecycle policies. A policy is only rows, so every change is done with its transaction. The next run of a
 * schedule is in `next_run_at`, which is null while the policy is paused; runs/ does the rest.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { type FieldError, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import { wholeSecond } from '../../platform/clock.ts';
import { type Db, transaction, type Tx } from '../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../platform/large-rows.ts';
import type { Quota } from '../../quota/quota.ts';
import {
  changedColumns,
  changesUnderLock,
  isEmpty,
  requireFound,
  requireProject,
  type ServiceDeps,
} from '../service-kit.ts';
import { createEstimates, type EstimatesDeps } from './estimates.ts';
import type { ForecastQuery } from './forecast/schema.ts';
import { forecast } from './forecast/service.ts';
import { uniqueIds, volumeErrors } from './requested-ids.ts';
import { scheduleExpiry } from './retention/store.ts';
import { moveToPast as moveMissedRunsToPast } from './missed-runs/store.ts';
import { findOpen } from './requested-runs/store.ts';
import { removeRunsAfter } from './runs/store.ts';
import { type CheckedSchedule, isSameSchedule, readSchedules, timesOf, toSchedule } from './schedule-rules.ts';
import type { CreateSchedule } from './schedule/schema.ts';
import {
  type CreateLifecyclePolicy,
  type LifecyclePolicy,
  type ListLifecyclePolicies,
  maxSchedules,
  type UpdateLifecyclePolicy,
} from './schema.ts';
import * as store from './store.ts';
import type { PolicyRow, PolicyView } from './store.ts';

type LifecyclePoliciesDeps = ServiceDeps & EstimatesDeps;

export type LifecyclePolicies = ReturnType<typeof createLifecyclePolicies>;

/** The policy that a request names, and whether the response shows its volumes. */
interface PolicyRequest {
  id: number;
  needVolumes?: boolean;
}

export function createLifecyclePolicies(deps: LifecyclePoliciesDeps) {
  const { db, clock, tasks, quota, idempotency } = deps;

  const show = async (on: Db | Tx, scope: Scope, { id, needVolumes }: PolicyRequest): Promise<LifecyclePolicy> => {
    const policy = requireFound(await store.find(on, scope, id), 'lifecycle policy', id);
    return (await toResponses(on, [policy], needVolumes))[0]!;
  };

  const changeLocked = changesUnderLock(deps, 'lifecycle policy', store.lock);

  /** Runs a change of a policy. Returns the changed policy. */
  const change = (
    context: RequestContext,
    scope: Scope,
    { id, needVolumes }: PolicyRequest,
    work: (tx: Tx, policy: PolicyRow) => Promise<void>,
  ): Promise<LifecyclePolicy> =>
    changeLocked(context, scope, id, async (tx, policy) => {
      await work(tx, policy);
      return show(tx, scope, { id, needVolumes });
    });

  return {
    ...createEstimates(deps),

    /** The next runs of a policy, and the existing snapshots that it will delete. */
    forecast: (scope: Scope, policyId: number, query: ForecastQuery) => forecast(db, scope, policyId, query),

    async create(
      context: RequestContext,
      scope: Scope,
      body: CreateLifecyclePolicy,
      needVolumes = false,
    ): Promise<LifecyclePolicy> {
      const now = wholeSecond(clock.now());
      const { checked: schedules, errors: scheduleErrors } = readSchedules(body.schedules ?? [], now);
      const volumeIds = body.volume_ids ?? [];
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const { clientId, projectId, regionId } = scope;
        await requireProject(tx, projectId);
        const volumes = await store.holdVolumes(tx, scope, uniqueIds(volumeIds));
        requireNoErrors([...scheduleErrors, ...volumeErrors(volumeIds, volumes)]);
        const { name, action, status = 'active' } = body;
        const placed = { clientId, projectId, regionId, userId: context.actor.tokenId, createdAt: now };
        const policy = await store.insert(tx, { ...placed, name, action, status });
        await store.limitOfProject(tx, projectId);
        await store.addVolumes(tx, membersOf(policy, volumeIds));
        await insertSchedules(quota, tx, context, policy, schedules, { now, position: 0 });
        return show(tx, scope, { id: policy.id, needVolumes });
      });
    },

    async list(scope: Scope, query: ListLifecyclePolicies): Promise<PageInGroups<LifecyclePolicy>> {
      const found = await store.list(db, scope, query);
      const read = async (ids: number[]) => toResponses(db, await store.findViews(db, ids), query.need_volumes);
      return pageInGroups(found, read, (policy) => policy);
    },

    get: (scope: Scope, request: PolicyRequest): Promise<LifecyclePolicy> => show(db, scope, request),

    update: (context: RequestContext, scope: Scope, request: PolicyRequest, body: UpdateLifecyclePolicy) =>
      change(context, scope, request, async (tx, policy) => {
        const changes = changedColumns(policy, body);
        if (isEmpty(changes)) return;
        await store.update(tx, policy.id, changes);
        if (changes.status) await reschedule(tx, { id: policy.id, status: changes.status }, clock.now());
      }),

    /** Its snapshots are kept, including those in creation. */
    delete: (context: RequestContext, scope: Scope, id: number): Promise<void> =>
      changeLocked(context, scope, id, async (tx, policy) => {
        const schedules = await store.findSchedules(tx, id);
        for (const runId of await findOpen(tx, id)) await tasks.fail(tx, runId, 1, 'the lifecycle policy was deleted');
        await store.remove(tx, policy);
        await quota.release(tx, policy, { snapshot_schedule_count: schedules.length });
      }),

    /** An existing schedule is not added again, so that a request can be repeated. */
    addSchedules: (context: RequestContext, scope: Scope, request: PolicyRequest, given: CreateSchedule[]) =>
      change(context, scope, request, async (tx, policy) => {
        const now = wholeSecond(clock.now());
        const { checked, errors } = readSchedules(given, now);
        requireNoErrors(errors);
        const before = await store.findSchedules(tx, policy.id);
        const added = checked.filter((one) => !before.some((schedule) => isSameSchedule(schedule.given, one.given)));
        requireRoom(before.length, added.length);
        await insertSchedules(quota, tx, context, policy, added, {
          now,
          position: (before.at(-1)?.position ?? -1) + 1,
        });
      }),

    removeSchedules: (context: RequestContext, scope: Scope, request: PolicyRequest, ids: string[]) =>
      change(context, scope, request, async (tx, policy) => {
        const removed = await store.removeSchedules(tx, policy.id, ids);
        if (removed === 0) return;
        await scheduleExpiry(tx, policy.id);
        await quota.release(tx, policy, { snapshot_schedule_count: removed });
      }),

    addVolumes: (context: RequestContext, scope: Scope, request: PolicyRequest, volumeIds: string[]) =>
      change(context, scope, request, async (tx, policy) => {
        requireNoErrors(volumeErrors(volumeIds, await store.holdVolumes(tx, scope, uniqueIds(volumeIds))));
        await store.addVolumes(tx, membersOf(policy, volumeIds));
        await scheduleExpiry(tx, policy.id);
      }),

    removeVolumes: (context: RequestContext, scope: Scope, request: PolicyRequest, volumeIds: string[]) =>
      change(context, scope, request, async (tx, policy) => {
        await store.removeVolumes(tx, policy.id, uniqueIds(volumeIds));
        await scheduleExpiry(tx, policy.id);
      }),

    /** Names each unknown policy as `lifecycle_policy_ids.<i>`; the known ones are held until the transaction ends. */
    async newVolumeErrors(tx: Tx, scope: Scope, policyIds: number[]): Promise<FieldError[]> {
      const known = policyIds.length > 0 ? await store.holdPolicies(tx, scope, policyIds) : new Set<number>();
      return policyIds.flatMap((id, i) =>
        known.has(id) ? [] : [{ path: `lifecycle_policy_ids.${i}`, message: `lifecycle policy ${id} not found` }],
      );
    },

    /** Adds a new volume to policies that `newVolumeErrors` holds. */
    async joinNewVolume(tx: Tx, volumeId: string, policyIds: number[]): Promise<void> {
      await store.addVolumes(
        tx,
        policyIds.map((policyId) => ({ policyId, volumeId })),
      );
    },

    /** For a clock that is set back: later runs have not happened, and intervals start now at the latest. */
    async moveToPast(tx: Tx, now: Date): Promise<void> {
      for (const runId of await removeRunsAfter(tx, now)) await tasks.fail(tx, runId, 1, 'the clock was set back');
      await store.limitCreatedAt(tx, wholeSecond(now));
    },

    /** After the clock was set back in all processes: sets the next runs of all policies, and forgets later missed runs. */
    async rescheduleAll(): Promise<void> {
      await moveMissedRunsToPast(db, clock.now());
      for (const id of await store.findAllIds(db)) {
        await transaction(db, async (tx) => {
          const policy = await store.lockById(tx, id);
          if (policy) await reschedule(tx, policy, clock.now());
        });
      }
    },
  };
}

function membersOf(policy: PolicyRow, volumeIds: string[]): { policyId: number; volumeId: string }[] {
  return uniqueIds(volumeIds).map((volumeId) => ({ policyId: policy.id, volumeId }));
}

/** @throws ClientError 400 */
function requireRoom(schedules: number, added: number): void {
  if (schedules + added <= maxSchedules) return;
  const message = `a policy can have at most ${maxSchedules} schedules; this one has ${schedules}`;
  throw invalidInput([{ path: 'schedules', message }]);
}

async function insertSchedules(
  quota: Quota,
  tx: Tx,
  context: RequestContext,
  policy: PolicyRow,
  schedules: CheckedSchedule[],
  at: { now: Date; position: number },
): Promise<void> {
  await store.insertSchedules(
    tx,
    schedules.map(({ given, times, retentionSeconds }, i) => ({
      id: randomUUID(),
      policyId: policy.id,
      regionId: policy.regionId,
      position: at.position + i,
      given,
      retentionSeconds,
      userId: context.actor.tokenId,
      createdAt: at.now,
      nextRunAt: policy.status === 'active' ? times.next(at.now) : null,
      failing: false,
    })),
  );
  await quota.reserve(tx, policy, { snapshot_schedule_count: schedules.length });
}

/** Sets the next runs of the schedules and the expiry of their snapshots: after now, or never while it is paused. */
async function reschedule(tx: Tx, { id, status }: Pick<PolicyRow, 'id' | 'status'>, now: Date): Promise<void> {
  const schedules = await store.findSchedules(tx, id);
  const next = (schedule: store.ScheduleRow) => (status === 'active' ? timesOf(schedule).next(now) : null);
  await store.setNextRuns(
    tx,
    schedules.map((schedule) => ({ id: schedule.id, nextRunAt: next(schedule) })),
  );
  await scheduleExpiry(tx, id);
}

async function toResponses(on: Db | Tx, policies: PolicyView[], needVolumes = false): Promise<LifecyclePolicy[]> {
  const ids = policies.map(({ id }) => id);
  const volumes = needVolumes
    ? Map.groupBy(await store.findVolumesOfPolicies(on, ids), ({ policyId }) => policyId)
    : null;
  return policies.map((policy) => ({
    action: policy.action,
    id: policy.id,
    name: policy.name,
    project_id: policy.projectId,
    region_id: policy.regionId,
    schedules: policy.schedules.map(toSchedule),
    status: policy.status,
    user_id: policy.userId,
    ...(volumes && {
      volumes: (volumes.get(policy.id) ?? []).map(({ id, name }) => ({ volume_id: id, volume_name: name })),
    }),
  }));
}
