/**
 * Runs that clients request. Such a run differs from a due one only in its instant, the request, and in its task; the
 * scheduler (runs/reconcile.ts) requests its snapshots, retains them, and ends the task.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, requireNoErrors } from '../../../errors/catalogue.ts';
import { changesUnderLock, requireUnlocked, type ServiceDeps, type TaskIds } from '../../service-kit.ts';
import { lastInstant } from '../fire-times.ts';
import { uniqueIds, unknownIdErrors } from '../requested-ids.ts';
import * as runs from '../runs/store.ts';
import { newRunVolumes } from '../schedule-rules.ts';
import type { RunLifecyclePolicy } from '../schema.ts';
import * as policies from '../store.ts';
import type { PolicyRow, ScheduleRow } from '../store.ts';
import * as store from './store.ts';
import type { LastRun } from './store.ts';

export type RequestedRuns = ReturnType<typeof createRequestedRuns>;

export function createRequestedRuns(deps: ServiceDeps) {
  const { clock, tasks } = deps;
  const change = changesUnderLock(deps, 'lifecycle policy', policies.lock);
  return {
    /** Runs schedules of a policy now, by default all. Returns a task for each. */
    run: (context: RequestContext, scope: Scope, id: number, body: RunLifecyclePolicy): Promise<TaskIds> =>
      change(context, scope, id, async (tx, policy) => {
        const schedules = schedulesToRun(policy, await policies.findSchedules(tx, id), body.schedule_ids);
        const now = clock.now();
        const found = await store.findLastRuns(tx, id, lastInstant(now));
        const last = new Map(found.map((run) => [run.scheduleId, run]));
        for (const { id } of schedules) requireUnlocked(last.get(id)?.openTaskId ?? null, 'schedule', id);
        const volumes = await runs.findVolumeIdsOfPolicies(tx, [id]);
        const started = schedules.map((schedule) => ({
          id: randomUUID(),
          policyId: id,
          regionId: policy.regionId,
          scheduleId: schedule.id,
          scheduledAt: instantAfter(last.get(schedule.id), now),
          taskId: randomUUID(),
          doneAt: volumes.length === 0 ? now : null,
        }));
        await runs.insertRuns(tx, started, now);
        await runs.insertRunVolumes(
          tx,
          schedules.flatMap((schedule, i) => newRunVolumes(schedule, started[i]!, volumes)),
        );
        const write = volumes.length === 0 ? tasks.recordFinished : tasks.open;
        for (const run of started) await write(tx, context, taskOf(policy, run));
        return { tasks: started.map(({ taskId }) => taskId) };
      }),
  };
}

/** @throws ClientError 409 for a policy that does not run, 400 that names unknown schedules */
function schedulesToRun(policy: PolicyRow, all: ScheduleRow[], ids: string[] | undefined): ScheduleRow[] {
  if (policy.status === 'paused') {
    throw new ClientError('Conflict', `lifecycle policy ${policy.id} is paused; resume it first`);
  }
  if (all.length === 0) throw new ClientError('Conflict', `lifecycle policy ${policy.id} has no schedule`);
  if (ids === undefined) return all;
  const chosen = uniqueIds(ids);
  requireNoErrors(unknownIdErrors(ids, all, 'schedule_ids', 'schedule'));
  return all.filter(({ id }) => chosen.includes(id));
}

/**
 * A run is identified by its schedule and instant, and the newest snapshot is that of the latest instant. Due runs are at
 * whole seconds, so a requested one is not.
 */
function instantAfter(last: LastRun | undefined, now: Date): Date {
  const time = Math.max(now.getTime(), last?.scheduledAt ? last.scheduledAt.getTime() + 1 : 0);
  return new Date(time % 1000 === 0 ? time + 1 : time);
}

function taskOf(policy: PolicyRow, run: { id: string; taskId: string; scheduleId: string }) {
  return {
    id: run.taskId,
    type: 'run_lifecyclepolicy',
    key: { resource: 'lifecycle_policy_run', id: run.id, regionId: policy.regionId },
    projectId: policy.projectId,
    generation: 1,
    data: { lifecycle_policy_id: policy.id, schedule_id: run.scheduleId, run_id: run.id },
  };
}
