/**
 * Development mode: a clock that clients move, and faults that they ask for.
 *
 * To advance the clock is to let time pass. It stops at each instant at which something becomes due, until the workers
 * have done it, so a month makes the runs that a month makes. What hangs (a fault may want it so) is waited for once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, invalidInput } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import type { MovableClock } from '../../platform/development-clock.ts';
import type { LifecyclePolicies } from '../lifecycle-policies/service.ts';
import type { LifecyclePolicyRuns } from '../lifecycle-policies/runs/service.ts';
import type { Snapshots } from '../snapshots/service.ts';
import type { CreateFault, Fault, FaultCollection, FaultyOperation, MoveClock } from './schema.ts';
import * as store from './store.ts';

export interface DevelopmentDeps {
  db: Db;
  clock: MovableClock;
  idempotency: Idempotency;
  policies: Pick<LifecyclePolicies, 'setBack' | 'setAllTimes'>;
  snapshots: Pick<Snapshots, 'moveToPast'>;
  runs: Pick<LifecyclePolicyRuns, 'nextEvent' | 'countOpen'>;
}

export type Development = ReturnType<typeof createDevelopment>;

/** In real time: how long a move may take, and how long one instant's work is waited for. */
const patienceMs = 45_000;
const instantMs = 3000;
const lookMs = 10;
const followedMs = 500;
const lastYear = 9000;

export function createDevelopment({ db, clock, idempotency, policies, snapshots, runs }: DevelopmentDeps) {
  let moving = false;
  const nowIs = () => ({ now: withZone(clock.now()) });

  /** Waits until no more than `stuck` is left of what is due; returns how much is. */
  const doneWhatIsDue = async (regionIds: number[], stuck: number): Promise<number> => {
    const giveUp = performance.now() + instantMs;
    for (;;) {
      const open = await runs.countOpen(regionIds);
      if (open <= stuck || performance.now() > giveUp) return open;
      await sleep(lookMs);
    }
  };

  const advance = async (seconds: number): Promise<void> => {
    const target = clock.offsetMs() + seconds * 1000;
    const giveUp = performance.now() + patienceMs;
    const regionIds = await store.servedRegions(db);
    let stuck = 0;
    while (performance.now() < giveUp) {
      const next = await runs.nextEvent(regionIds);
      if (!next || next.getTime() > Date.now() + target) break;
      if (next > clock.now()) await clock.setOffset(next.getTime() - Date.now());
      stuck = await doneWhatIsDue(regionIds, stuck);
    }
    await clock.setOffset(Math.max(target, clock.offsetMs()));
    await doneWhatIsDue(regionIds, stuck);
  };

  const jump = async (offsetMs: number): Promise<void> => {
    if (offsetMs >= clock.offsetMs()) return clock.setOffset(offsetMs);
    // What has been done by then has not been done yet, and what was made by then was made by now.
    const now = new Date(Date.now() + offsetMs);
    await clock.setOffset(offsetMs, async (tx) => {
      await policies.setBack(tx, now);
      await snapshots.moveToPast(tx, now);
    });
    // What was to come is further away now than it should be; but set anew it would be due for who has not followed yet.
    await sleep(followedMs);
    await policies.setAllTimes();
  };

  const move = async (body: MoveClock): Promise<void> => {
    if (body.advance_seconds !== undefined) await advance(body.advance_seconds);
    else if (body.set !== undefined) await jump(new Date(body.set).getTime() - Date.now());
    else await jump(0);
  };

  return {
    /** Answers when the clock has got there. */
    async moveClock(context: RequestContext, body: MoveClock): Promise<{ now: string }> {
      checkMove(body, clock.now());
      if (moving) throw new ClientError('Conflict', 'the clock is being moved already; wait for that request');
      moving = true;
      const before = nowIs();
      try {
        await move(body);
      } finally {
        moving = false;
      }
      return idempotency.auditedTransaction(db, context, async (_tx, act) => {
        act.changes = [{ table: 'development_clock', id: true, before, after: nowIs() }];
        return nowIs();
      });
    },

    async createFault(context: RequestContext, body: CreateFault): Promise<Fault> {
      const { resource, operation, mode, count = 1, seconds = null, message = null } = body;
      return idempotency.auditedTransaction(db, context, (tx) =>
        store.insert(tx, { resource, operation, mode, count, remaining: count, seconds, message }),
      );
    },

    async listFaults(): Promise<FaultCollection> {
      const results = await store.list(db);
      return { count: results.length, results };
    },

    /** What stalls goes on. */
    clearFaults: (context: RequestContext) => idempotency.auditedTransaction(db, context, store.clear),

    async takeFault(resource: string, operation: FaultyOperation) {
      const fault = await store.take(db, resource, operation);
      return fault && { ...fault, cleared: async () => !(await store.exists(db, fault.id)) };
    },
  };
}

function checkMove(body: MoveClock, now: Date): void {
  const given = Object.keys(body);
  if (given.length !== 1) {
    throw invalidInput([{ path: given[1] ?? '', message: 'give one of advance_seconds, set, real' }]);
  }
  const path = given[0]!;
  const to = body.set === undefined ? now.getTime() + (body.advance_seconds ?? 0) * 1000 : new Date(body.set).getTime();
  if (!(to >= 0 && new Date(to).getUTCFullYear() <= lastYear)) {
    throw invalidInput([{ path, message: `must be an instant from 1970 to ${lastYear}` }]);
  }
}
