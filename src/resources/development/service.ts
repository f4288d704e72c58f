/**
 * Development mode: a clock that clients move, and faults that they inject (faults.ts).
 *
 * Advancing the clock stops at each instant at which something becomes due until the workers have done it, so that a month
 * causes the runs of a month and the deletions of its retention. It waits only once for work that hangs,
 * which an injected fault may cause.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, invalidInput } from '../../errors/catalogue.ts';
import { instantOf, withZone } from '../../platform/clock.ts';
import type { MovableClock } from '../../platform/development-clock.ts';
import type { LifecyclePolicies } from '../lifecycle-policies/service.ts';
import type { LifecyclePolicyRuns } from '../lifecycle-policies/runs/service.ts';
import type { ServiceDeps } from '../service-kit.ts';
import type { Snapshots } from '../snapshots/service.ts';
import { createFaults } from './faults.ts';
import type { MoveClock, MovedClock } from './schema.ts';
import * as store from './store.ts';

interface DevelopmentDeps extends Pick<ServiceDeps, 'db' | 'idempotency'> {
  clock: MovableClock;
  policies: Pick<LifecyclePolicies, 'moveToPast' | 'rescheduleAll'>;
  snapshots: Pick<Snapshots, 'moveToPast'>;
  runs: Pick<LifecyclePolicyRuns, 'nextEvent' | 'countOpen'>;
  /** Real time after which an advance skips the rest of the work. Default: 45 s. */
  moveTimeoutMs?: number;
}

export type Development = ReturnType<typeof createDevelopment>;

/** Real time for the work of one instant. */
const workTimeoutMs = 3000;
const pollMs = 10;
/** By then every process has read the new clock. */
const propagationMs = 500;
const lastYear = 9000;

export function createDevelopment(deps: DevelopmentDeps) {
  const { db, clock, idempotency, policies, snapshots, runs, moveTimeoutMs = 45_000 } = deps;
  const clockResponse = () => ({ now: withZone(clock.now()) });

  /** Waits until at most `stuck` of the due work is left. Returns how much is left. */
  const waitForDueWork = async (regionIds: number[], stuck: number): Promise<number> => {
    const giveUp = performance.now() + workTimeoutMs;
    for (;;) {
      const open = await runs.countOpen(regionIds);
      if (open <= stuck || performance.now() > giveUp) return open;
      await sleep(pollMs);
    }
  };

  /** Returns whether all due work is done. */
  const advance = async (seconds: number): Promise<boolean> => {
    const target = clock.offsetMs() + Math.round(seconds * 1000);
    const giveUp = performance.now() + moveTimeoutMs;
    const regionIds = await store.findServedRegions(db);
    let stuck = 0;
    let isLate = false;
    for (;;) {
      const next = await runs.nextEvent(regionIds);
      if (!next || next.getTime() > Date.now() + target) break;
      isLate = performance.now() > giveUp;
      if (isLate) break;
      if (next > clock.now()) await clock.setOffset(next.getTime() - Date.now());
      stuck = await waitForDueWork(regionIds, stuck);
    }
    await clock.setOffset(Math.max(target, clock.offsetMs()));
    return (await waitForDueWork(regionIds, stuck)) === 0 && !isLate;
  };

  /** As `advance`. */
  const jump = async (offsetMs: number): Promise<boolean> => {
    if (offsetMs >= clock.offsetMs()) {
      await clock.setOffset(offsetMs);
      return (await waitForDueWork(await store.findServedRegions(db), 0)) === 0;
    }
    // Records of the future become records of now, and the work of the future is not done yet.
    const now = new Date(Date.now() + offsetMs);
    await clock.setOffset(offsetMs, async (tx) => {
      await policies.moveToPast(tx, now);
      await snapshots.moveToPast(tx, now);
    });
    // Until all processes have read the new clock, a rescheduled run would be due for those that have not, and they would
    // report a discarded missed run again.
    await sleep(propagationMs);
    await policies.rescheduleAll();
    return true;
  };

  const move = (body: MoveClock): Promise<boolean> => {
    if (body.advance_seconds !== undefined) return advance(body.advance_seconds);
    return jump(body.set === undefined ? 0 : timeOf(body.set) - Date.now());
  };

  return {
    isMoving: clock.isMoving,

    getClock: clockResponse,

    /** Responds when the clock has reached the requested time. */
    async moveClock(context: RequestContext, body: MoveClock): Promise<MovedClock> {
      const moved = await store.withMoveLock(db, async () => {
        // Another process may have moved the clock just before.
        await clock.refresh();
        checkMove(body, clock.now());
        const before = clockResponse();
        return { before, complete: await move(body) };
      });
      if (!moved) throw new ClientError('Conflict', 'another request is moving the clock; try again when it has ended');
      return idempotency.auditedTransaction(db, context, async (_tx, act) => {
        act.changes = [{ table: 'development_clock', id: true, before: moved.before, after: clockResponse() }];
        return { ...clockResponse(), complete: moved.complete };
      });
    },

    ...createFaults({ db, idempotency }),
  };
}

/** Milliseconds since 1970. */
const timeOf = (text: string): number => instantOf(text)!.getTime();

function checkMove(body: MoveClock, now: Date): void {
  const given = Object.keys(body);
  if (given.length !== 1) {
    throw invalidInput([{ path: given[1] ?? '', message: 'send exactly one of advance_seconds, set, real' }]);
  }
  const path = given[0]!;
  const to = body.set === undefined ? now.getTime() + (body.advance_seconds ?? 0) * 1000 : timeOf(body.set);
  if (!(to >= 0 && new Date(to).getUTCFullYear() <= lastYear)) {
    throw invalidInput([{ path, message: `must be an instant from 1970 to ${lastYear}` }]);
  }
}
