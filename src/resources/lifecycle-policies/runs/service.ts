/** What clients see of the runs of policies. */
import type { Scope } from '../../../authz/actor.ts';
import { type Clock, withZone } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../../platform/large-rows.ts';
import type { ListRuns, Run } from './schema.ts';
import { requireFound } from '../../service-kit.ts';
import { find as findPolicy } from '../store.ts';
import * as store from './store.ts';
import type { RunRow, RunVolumeRow } from './store.ts';

export type LifecyclePolicyRuns = ReturnType<typeof createLifecyclePolicyRuns>;

interface LifecyclePolicyRunsDeps {
  db: Db;
  clock: Clock;
}

export function createLifecyclePolicyRuns({ db, clock }: LifecyclePolicyRunsDeps) {
  return {
    /** The next run or expiry in these regions; null when there is none. */
    nextEvent: (regionIds: number[]) => store.nextEvent(db, regionIds),

    /** By how many seconds the most overdue schedule of these regions is late. */
    async lateness(regionIds: number[]): Promise<number> {
      const next = await store.nextRun(db, regionIds);
      return next ? Math.max(0, (clock.now().getTime() - next.getTime()) / 1000) : 0;
    },

    /** The number of due schedules and expiries, of unfinished runs and of unfinished deletions of their snapshots. */
    countOpen: (regionIds: number[]) => store.countOpen(db, regionIds, clock.now()),

    /** Newest first. */
    async list(scope: Scope, policyId: number, filter: ListRuns): Promise<PageInGroups<Run>> {
      requireFound(await findPolicy(db, scope, policyId), 'lifecycle policy', policyId);
      const read = async (ids: string[]) => {
        const [runs, volumes] = await Promise.all([store.findRuns(db, ids), store.findRunVolumes(db, ids)]);
        const byRun = Map.groupBy(volumes, (volume) => volume.runId);
        return runs.map((run) => toResponse(run, byRun.get(run.id) ?? []));
      };
      return pageInGroups(await store.list(db, policyId, filter), read, (run) => run);
    },
  };
}

function toResponse(run: RunRow, volumes: RunVolumeRow[]): Run {
  const inState = (...states: RunVolumeRow['state'][]) => volumes.filter(({ state }) => states.includes(state));
  return {
    id: run.id,
    schedule_id: run.scheduleId,
    due_at: withZone(run.scheduledAt),
    started_at: withZone(run.startedAt),
    done_at: withZone(run.doneAt),
    task_id: run.taskId,
    snapshots: inState('made').map(({ volumeId, snapshotId }) => ({ volume_id: volumeId, snapshot_id: snapshotId! })),
    expired: volumes.flatMap(({ volumeId, expired }) =>
      expired.map((id) => ({ volume_id: volumeId, snapshot_id: id })),
    ),
    failed: inState('failed').map(({ volumeId, message }) => ({ volume_id: volumeId, message: message ?? '' })),
    pending: inState('pending', 'running').map(({ volumeId, snapshotId }) => ({
      volume_id: volumeId,
      snapshot_id: snapshotId,
    })),
  };
}
