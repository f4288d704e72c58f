/**
 * The rules of lifecycle policies. A policy is only rows, so every change is done with its transaction. The next run of a
 * schedule is in `next_run_at`, which is null while the policy is paused; runs/ does the rest.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { invalidInput } from '../../errors/catalogue.ts';
import { wholeSecond, withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import { transaction } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import type { Groups } from '../../platform/large-rows.ts';
import type { Price } from '../pricing/schema.ts';
import type { Pricing } from '../pricing/service.ts';
import { changedColumns, isEmpty, requireFound } from '../service-kit.ts';
import type { ServiceDeps } from '../service-kit.ts';
import { scheduleExpiry } from './retention/store.ts';
import { findOpen } from './requested-runs/store.ts';
import { removeRunsAfter } from './runs/store.ts';
import {
  checkSchedule,
  checkSchedules,
  localTime,
  maxRetained,
  toSchedule,
  isSameSchedule,
  timesOf,
} from './schedules.ts';
import type { CheckedSchedule } from './schedules.ts';
import { maxSchedules } from './schema.ts';
import type {
  CreateLifecyclePolicy,
  CreateSchedule,
  LifecyclePolicy,
  LifecyclePolicyPrice,
  LifecyclePolicyUsage,
  ListLifecyclePolicies,
  PreviewSchedule,
  PriceLifecyclePolicy,
  SchedulePreview,
  UpdateLifecyclePolicy,
} from './schema.ts';
import * as store from './store.ts';
import type { PolicyRow, VolumeOfPolicy } from './store.ts';

export interface LifecyclePoliciesDeps extends ServiceDeps {
  pricing: Pick<Pricing, 'snapshotOf'>;
}

export type LifecyclePolicies = ReturnType<typeof createLifecyclePolicies>;

/** The policy that a request names, and whether the response shows its volumes. */
export interface PolicyRequest {
  id: number;
  needVolumes?: boolean;
}

export function createLifecyclePolicies(deps: LifecyclePoliciesDeps) {
  const { db, clock, tasks, quota, idempotency, pricing } = deps;

  const toResponses = async (on: Db | Tx, policies: PolicyRow[], needVolumes = false): Promise<LifecyclePolicy[]> => {
    const ids = policies.map(({ id }) => id);
    const schedules = Map.groupBy(await store.findSchedules(on, ids), ({ policyId }) => policyId);
    const volumes = needVolumes
      ? Map.groupBy(await store.findVolumesOfPolicies(on, ids), ({ policyId }) => policyId)
      : null;
    return policies.map((policy) => ({
      action: policy.action,
      id: policy.id,
      name: policy.name,
      project_id: policy.projectId,
      region_id: policy.regionId,
      schedules: (schedules.get(policy.id) ?? []).map(toSchedule),
      status: policy.status,
      user_id: policy.userId,
      ...(volumes && {
        volumes: (volumes.get(policy.id) ?? []).map(({ id, name }) => ({ volume_id: id, volume_name: name })),
      }),
    }));
  };

  /** Runs a change of a locked policy. Returns the changed policy. */
  const change = (
    context: RequestContext,
    scope: Scope,
    { id, needVolumes }: PolicyRequest,
    work: (tx: Tx, policy: PolicyRow) => Promise<void>,
  ): Promise<LifecyclePolicy> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const policy = requireFound(await store.lock(tx, scope, id), 'lifecycle policy', id);
      await work(tx, policy);
      return (await toResponses(tx, [(await store.find(tx, scope, id))!], needVolumes))[0]!;
    });

  const insertSchedules = async (
    tx: Tx,
    context: RequestContext,
    policy: PolicyRow,
    schedules: CheckedSchedule[],
    at: { now: Date; position: number },
  ): Promise<void> => {
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
      })),
    );
    await quota.reserve(tx, policy, { snapshot_schedule_count: schedules.length });
  };

  /** Sets the next runs of the schedules and the expiry of their snapshots: after now, or never while it is paused. */
  const reschedule = async (tx: Tx, { id, status }: Pick<PolicyRow, 'id' | 'status'>): Promise<void> => {
    const now = clock.now();
    const schedules = await store.findSchedules(tx, [id]);
    const next = (schedule: store.ScheduleRow) => (status === 'active' ? timesOf(schedule).next(now) : null);
    await store.setNextRuns(
      tx,
      schedules.map((schedule) => ({ id: schedule.id, nextRunAt: next(schedule) })),
    );
    await scheduleExpiry(tx, id);
  };

  const usage = async (scope: Scope, schedules: CreateSchedule[], volumeIds: string[]) => {
    const now = wholeSecond(clock.now());
    let perVolume = 0;
    for (const schedule of checkSchedules(schedules, now)) perVolume += await maxRetained(schedule, now);
    const ids = unique(volumeIds);
    const volumes = await store.findVolumes(db, scope, ids);
    requireVolumes(volumeIds, volumes);
    const gib = volumes.reduce((sum, { size }) => sum + size, 0) * perVolume;
    return { perVolume, count: volumes.length * perVolume, gib, volumes };
  };

  return {
    async create(
      context: RequestContext,
      scope: Scope,
      body: CreateLifecyclePolicy,
      needVolumes = false,
    ): Promise<LifecyclePolicy> {
      const now = wholeSecond(clock.now());
      const schedules = checkSchedules(body.schedules ?? [], now);
      const volumeIds = body.volume_ids ?? [];
      return idempotency.auditedTransaction(db, context, async (tx) => {
        requireVolumes(volumeIds, await store.holdVolumes(tx, scope, unique(volumeIds)));
        const { name, action, status = 'active' } = body;
        const { clientId, projectId, regionId } = scope;
        const placed = { clientId, projectId, regionId, userId: context.actor.tokenId, createdAt: now };
        const policy = await store.insert(tx, { ...placed, name, action, status });
        await store.addVolumes(
          tx,
          unique(volumeIds).map((volumeId) => ({ policyId: policy.id, volumeId })),
        );
        await insertSchedules(tx, context, policy, schedules, { now, position: 0 });
        return (await toResponses(tx, [policy], needVolumes))[0]!;
      });
    },

    async list(
      scope: Scope,
      query: ListLifecyclePolicies,
    ): Promise<{ count: number; results: Groups<LifecyclePolicy> }> {
      const { count, rows } = await store.list(db, scope, query);
      const read = async (ids: number[]) => toResponses(db, await store.findRows(db, ids), query.need_volumes);
      return { count, results: readInGroups(rows, read, (policy) => policy) };
    },

    async get(scope: Scope, { id, needVolumes }: PolicyRequest): Promise<LifecyclePolicy> {
      const policy = requireFound(await store.find(db, scope, id), 'lifecycle policy', id);
      return (await toResponses(db, [policy], needVolumes))[0]!;
    },

    update: (context: RequestContext, scope: Scope, request: PolicyRequest, body: UpdateLifecyclePolicy) =>
      change(context, scope, request, async (tx, policy) => {
        const changes = changedColumns(policy, body);
        if (isEmpty(changes)) return;
        await store.update(tx, policy.id, changes);
        if (changes.status) await reschedule(tx, { id: policy.id, status: changes.status });
      }),

    /** Its snapshots are kept, including those in creation. */
    async delete(context: RequestContext, scope: Scope, id: number): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const policy = requireFound(await store.lock(tx, scope, id), 'lifecycle policy', id);
        const schedules = await store.findSchedules(tx, [id]);
        for (const runId of await findOpen(tx, id)) await tasks.fail(tx, runId, 1, 'the lifecycle policy was deleted');
        await store.remove(tx, policy);
        await quota.release(tx, policy, { snapshot_schedule_count: schedules.length });
      });
    },

    /** An existing schedule is not added again, so that a request can be repeated. */
    addSchedules: (context: RequestContext, scope: Scope, request: PolicyRequest, given: CreateSchedule[]) =>
      change(context, scope, request, async (tx, policy) => {
        const now = wholeSecond(clock.now());
        const checked = checkSchedules(given, now);
        const before = await store.findSchedules(tx, [policy.id]);
        const added = checked.filter((one) => !before.some((schedule) => isSameSchedule(schedule.given, one.given)));
        if (before.length + added.length > maxSchedules) {
          const message = `a policy can have at most ${maxSchedules} schedules; this one has ${before.length}`;
          throw invalidInput([{ path: 'schedules', message }]);
        }
        await insertSchedules(tx, context, policy, added, { now, position: (before.at(-1)?.position ?? -1) + 1 });
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
        const ids = unique(volumeIds);
        requireVolumes(volumeIds, await store.holdVolumes(tx, scope, ids));
        await store.addVolumes(
          tx,
          ids.map((volumeId) => ({ policyId: policy.id, volumeId })),
        );
        await scheduleExpiry(tx, policy.id);
      }),

    removeVolumes: (context: RequestContext, scope: Scope, request: PolicyRequest, volumeIds: string[]) =>
      change(context, scope, request, async (tx, policy) => {
        await store.removeVolumes(tx, policy.id, unique(volumeIds));
        await scheduleExpiry(tx, policy.id);
      }),

    /** Adds a new volume to policies. @throws ClientError 400 that names `lifecycle_policy_ids.<i>` */
    async joinNewVolume(tx: Tx, scope: Scope, volumeId: string, policyIds: number[]): Promise<void> {
      const known = await store.holdPolicies(tx, scope, policyIds);
      const errors = policyIds.flatMap((id, i) =>
        known.has(id) ? [] : [{ path: `lifecycle_policy_ids.${i}`, message: `lifecycle policy ${id} was not found` }],
      );
      if (errors.length > 0) throw invalidInput(errors);
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

    /** Sets the next runs of all policies, after the clock was set back. */
    async rescheduleAll(): Promise<void> {
      for (const id of await store.findAllIds(db)) {
        await transaction(db, async (tx) => {
          const policy = await store.lockById(tx, id);
          if (policy) await reschedule(tx, policy);
        });
      }
    },

    /** The next runs of a schedule, as if it were created at `from`. */
    async preview(body: PreviewSchedule): Promise<SchedulePreview> {
      const { schedule, from, count = 10 } = body;
      const after = from === undefined ? clock.now() : new Date(from);
      if (!(after.getTime() >= 0) || after.getUTCFullYear() > 9999) {
        throw invalidInput([{ path: 'from', message: 'must be an instant from 1970 to 9999' }]);
      }
      const checked = checkSchedule(schedule, wholeSecond(after), 'schedule');
      if ('errors' in checked) throw invalidInput(checked.errors);
      const runs: SchedulePreview['runs'] = [];
      const pause = createPause();
      for (let at = checked.times.next(after); at && runs.length < count; at = checked.times.next(at)) {
        runs.push({ utc: withZone(at), local: localTime(at, checked.times) });
        await pause();
      }
      return { runs };
    },

    /** The maximum usage of a policy that would be created from this body. */
    async estimate(scope: Scope, clientId: number, body: CreateLifecyclePolicy): Promise<LifecyclePolicyUsage> {
      const { perVolume, count, gib } = await usage(scope, body.schedules ?? [], body.volume_ids ?? []);
      return {
        max_cost: pricing.snapshotOf(scope, clientId, gib),
        max_volume_snapshot_count_usage: count,
        max_volume_snapshot_sequence_length: perVolume,
        max_volume_snapshot_size_usage: gib,
      };
    },

    async priceV1(scope: Scope, clientId: number, body: CreateLifecyclePolicy): Promise<Price> {
      const { gib } = await usage(scope, body.schedules ?? [], body.volume_ids ?? []);
      return pricing.snapshotOf(scope, clientId, gib);
    },

    /** The maximum cost of the policy's snapshots, by volume in the order of the request. */
    async price(scope: Scope, clientId: number, body: PriceLifecyclePolicy): Promise<LifecyclePolicyPrice> {
      const { perVolume, gib, volumes } = await usage(scope, body.schedules ?? [], body.volume_ids);
      const whole = pricing.snapshotOf(scope, clientId, gib);
      const parts = unique(body.volume_ids).map((id) => {
        const { size, typeName } = volumes.find((volume) => volume.id === id)!;
        return { type: typeName, price: pricing.snapshotOf(scope, clientId, size * perVolume) };
      });
      const by = (period: 'price_per_hour' | 'price_per_month') => ({
        volumes: parts.map(({ type, price }) => {
          const amount = price[period];
          return amount === null ? null : { type, price: amount, discount: price.discount_percent };
        }),
      });
      return {
        currency_code: whole.currency_code,
        discount: whole.discount_percent,
        per_hour: by('price_per_hour'),
        per_month: by('price_per_month'),
        price_status: whole.price_status,
        price_without_discount_per_month: whole.price_without_discount_per_month,
        tax_percent: whole.tax_percent,
        total_price_per_hour: whole.price_per_hour,
        total_price_per_month: whole.price_per_month,
      };
    },
  };
}

function unique(ids: string[]): string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))];
}

/** @throws ClientError 400 that names every volume that does not exist in the project and region */
function requireVolumes(ids: string[], found: VolumeOfPolicy[]): void {
  const known = new Set(found.map(({ id }) => id));
  const errors = ids.flatMap((id, i) =>
    known.has(id.toLowerCase()) ? [] : [{ path: `volume_ids.${i}`, message: `volume ${id} was not found` }],
  );
  if (errors.length > 0) throw invalidInput(errors);
}
