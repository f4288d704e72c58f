/** The time of a host whose clock is wrong. */
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { openDatabaseClock } from './database-clock.ts';
import { connect } from './db.ts';
import { silentLogger } from './log.ts';

const minute = 60_000;

async function openClock(hostNow: () => number) {
  const db = connect({ ...inject('postgres'), log: silentLogger });
  const clock = await openDatabaseClock(db, silentLogger, { hostNow, everyMs: 10 });
  onTestFinished(async () => {
    clock.stop();
    await db.$client.end();
  });
  return clock;
}

const errorOf = (clock: { now(): Date }) => Math.abs(clock.now().getTime() - Date.now());

describe('the clock of the database', () => {
  it.each([5 * minute, -5 * minute])('is right on a host whose clock differs by %i ms', async (skew) => {
    const clock = await openClock(() => Date.now() + skew);
    expect(errorOf(clock)).toBeLessThan(minute);
  });

  it('follows a clock that is set while the host runs', async () => {
    let skew = 0;
    const clock = await openClock(() => Date.now() + skew);
    skew = 5 * minute;
    await expect.poll(() => errorOf(clock)).toBeLessThan(minute);
    skew = 0;
    await expect.poll(() => errorOf(clock)).toBeLessThan(minute);
  });

  it('is exactly that of a synchronized host', async () => {
    let readings: number[] = [];
    const clock = await openClock(() => {
      const now = Date.now();
      readings.push(now);
      return now;
    });
    readings = [];
    expect(clock.now().getTime()).toBe(readings.at(-1));
  });
});
