/** Leases when the clock of PostgreSQL is set back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { openRegion } from './test-region.ts';
import { startHostWatch } from './watch.ts';

it('a dead host delays changes for the time of a lease, and not until the clock reaches its end', async (t) => {
  const region = await openRegion(t);
  const [h1, h2] = await region.startAll('h1', 'h2');
  const { db, leaseSeconds } = region;
  const watch = await startHostWatch({ db, leaseSeconds, regionId: 1, log: silentLogger });
  t.onTestFinished(watch.stop);
  await h2!.stop('keepDataPlanes');
  // As a host that died before the clock was set back by an hour.
  await db.$client.query(`update hosts set incarnation = gen_random_uuid() where name = 'h2'`);
  await db.$client.query(`update hosts set lease_until = lease_until + interval '1 hour'`);
  const startedAt = performance.now();
  await region.publish('a', 1);
  // It may serve until its own clock ends the lease.
  expect(performance.now() - startedAt).toBeGreaterThan(leaseSeconds * 1000);
  expect(h1!.world.get('a')).toBe(1);
  expect(await region.hosts()).toMatchObject([{ leaseValid: true, converged: true }, { leaseValid: false }]);
  const successor = await region.start('h2');
  await successor.agent.converged;
  expect(successor.world.get('a')).toBe(1);
});

it('a host that renews its lease keeps it', async (t) => {
  const region = await openRegion(t);
  const [h1] = await region.startAll('h1');
  const { db, leaseSeconds } = region;
  const watch = await startHostWatch({ db, leaseSeconds: leaseSeconds / 4, regionId: 1, log: silentLogger });
  t.onTestFinished(watch.stop);
  await sleep(6000);
  expect(h1!.calls).not.toContain('stopServing');
});
