/** The order of jobs when one client has a backlog. fairness.test.ts tests the fairness of the API. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { FileShareDriver } from '../../src/drivers/file-share.ts';
import { transaction } from '../../src/platform/db.ts';
import { regionQueue } from '../../src/tasks/jobs.ts';
import { rebasePriorities } from '../../src/tasks/priority.ts';
import { createTestHost } from '../drivers.ts';
import { aTenant, clientsOfShares, enqueue, open } from './tenants.ts';

const soon = { timeout: 30_000, interval: 20 };

describe('the job queue', () => {
  it('runs the only job of a client after at most 12 of the 2,000 jobs of another client', async () => {
    const cloud = await open({ driver: null });
    const [attacker, victim] = [await aTenant(cloud), await aTenant(cloud)];
    await enqueue(cloud, attacker, 2000);
    await enqueue(cloud, victim, 1);
    const owners = await clientsOfShares(cloud);
    const host = createTestHost();
    await cloud.startWorker(host);
    const order = () => host.log.map(({ id }) => owners.get(id));
    await expect.poll(() => order().includes(victim.clientId), { timeout: 50_000, interval: 20 }).toBe(true);
    expect(order().indexOf(victim.clientId)).toBeLessThanOrEqual(12);
  });

  it('serves two backlogs by the weights of their clients and starves neither', async () => {
    const cloud = await open({ driver: null });
    const [light, heavy] = [await aTenant(cloud), await aTenant(cloud)];
    await enqueue(cloud, light, 200, 1);
    await enqueue(cloud, heavy, 200, 3);
    const owners = await clientsOfShares(cloud);
    const host = createTestHost();
    await cloud.startWorker(host);
    await expect.poll(() => host.log.length, { timeout: 50_000, interval: 20 }).toBeGreaterThanOrEqual(400);
    const first = host.log.slice(20, 180).map(({ id }) => owners.get(id));
    const ratio =
      first.filter((id) => id === heavy.clientId).length / first.filter((id) => id === light.clientId).length;
    expect(ratio).toBeGreaterThan(2);
    expect(ratio).toBeLessThan(4.5);
  });

  it('a client that always has work does not starve a backlog', async () => {
    const cloud = await open({ driver: null });
    const [backlog, steady] = [await aTenant(cloud), await aTenant(cloud)];
    await enqueue(cloud, backlog, 120);
    const owners = () => clientsOfShares(cloud);
    const host = createTestHost();
    await enqueue(cloud, steady, 30);
    await cloud.startWorker(host);
    let stopped = false;
    const feeding = (async () => {
      while (!stopped) {
        const pending = await cloud.db.$client.query<{ n: number }>(
          `select count(*)::int as n from tasks where client_id = $1 and state in ('NEW', 'RUNNING')`,
          [steady.clientId],
        );
        if (pending.rows[0]!.n < 30) await enqueue(cloud, steady, 10);
        else await sleep(5);
      }
    })();
    const ofBacklog = async () => {
      const of = await owners();
      return host.log.filter(({ id }) => of.get(id) === backlog.clientId).length;
    };
    await expect.poll(ofBacklog, { timeout: 50_000, interval: 200 }).toBe(120);
    stopped = true;
    await feeding;
    const of = await owners();
    const steadyOnes = host.log.filter(({ id }) => of.get(id) === steady.clientId).length;
    expect(steadyOnes).toBeGreaterThan(60);
  });

  it('keeps its order when the virtual time of a long backlog is reset', async () => {
    const cloud = await open({ driver: null });
    const [backlog, late] = [await aTenant(cloud), await aTenant(cloud)];
    await enqueue(cloud, backlog, 20);
    await cloud.db.$client.query('update jobs set priority = priority + 12000');
    await enqueue(cloud, late, 1);
    const order = async () => {
      const { rows } = await cloud.db.$client.query<{ key: string; priority: number }>(
        'select id as key, priority from jobs order by priority, run_at, id',
      );
      return { keys: rows.map(({ key }) => key), priorities: rows.map(({ priority }) => priority) };
    };
    const before = await order();
    // At least 12,000: the first of ten jobs that are enqueued at the same time may count others.
    const lowest = before.priorities[0]!;
    // Another process resets it at the same time.
    let other: Promise<void> | undefined;
    await transaction(cloud.db, async (tx) => {
      await rebasePriorities(tx, [regionQueue(1)]);
      other = rebasePriorities(cloud.db, [regionQueue(1)]);
      const waiting = `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%base.priority%'`;
      await expect.poll(async () => (await cloud.db.$client.query(waiting)).rowCount, soon).toBe(1);
    });
    await other;
    const after = await order();
    expect(after.keys).toEqual(before.keys);
    expect(after.priorities).toEqual(before.priorities.map((priority) => priority - lowest));
    expect(after.priorities[0]).toBe(0);
  });

  it('leaves slots to other clients while driver calls of one client hang', async () => {
    const cloud = await open({ driver: null });
    const [attacker, victim] = [await aTenant(cloud), await aTenant(cloud)];
    await enqueue(cloud, attacker, 50);
    const host = createTestHost();
    const hanging = new Set<string>();
    const ofAttacker = await clientsOfShares(cloud);
    const driver: FileShareDriver = {
      ...host,
      async apply(desired, signal) {
        if (!ofAttacker.has(desired.id)) return host.apply(desired, signal);
        signal.throwIfAborted();
        hanging.add(desired.id);
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        throw new Error('unreachable');
      },
    };
    await cloud.startWorker(driver);
    await expect.poll(() => hanging.size, soon).toBe(3);
    for (let i = 0; i < 5; i++) {
      const answer = await cloud.post(victim.shares, victim.body, { token: victim.token });
      expect((await cloud.ended(answer, { token: victim.token })).body.state).toBe('FINISHED');
    }
    expect(hanging.size).toBe(3);
  });
});
