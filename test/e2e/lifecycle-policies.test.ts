/** Lifecycle policies of a server that is killed while a thousand snapshots are due. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { storm } from './storm.ts';

const policies = '/cloud/v1/lifecycle_policy/1/1';
const volumeCount = 50;
const policyCount = 20;
const due = volumeCount * policyCount;

let yard: Yard;
let server: Running;
beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_DEV: '1' });
  server = await yard.start(['start']);
}, 60_000);
afterAll(() => yard?.cleanUp());

async function volumes(): Promise<string[]> {
  const body = { name: 'data', size: 1, source: 'new-volume' };
  const { answers } = storm(
    Array.from({ length: volumeCount }, () => () => yard.insist('POST', '/cloud/v1/volumes/1/1', body)),
  );
  const tasks = await Promise.all((await answers).map((answer) => yard.ended(answer)));
  return tasks.map((task) => task.created_resources.volumes[0]);
}

async function figures() {
  const [row] = await yard.sql(`select
    (select count(*)::int from snapshots where deleted_at is null and status = 'available') as available,
    (select count(*)::int from snapshots where deleted_at is null and status <> 'available') as other,
    (select count(distinct (schedule_id, volume_id))::int from snapshots where deleted_at is null) as pairs,
    (select count(*)::int from lifecycle_policy_run_volumes where state = 'made') as made,
    (select count(*)::int from lifecycle_policy_run_volumes where state <> 'made') as open,
    (select count(*)::int from lifecycle_policy_runs where done_at is null) as running`);
  return row as Record<'available' | 'other' | 'pairs' | 'made' | 'open' | 'running', number>;
}

/** Pairs of a schedule and a volume that have runs but no available snapshot. Must always be empty. */
const pairsWithoutSnapshot = () =>
  yard.sql(`select r.schedule_id, rv.volume_id
    from lifecycle_policy_runs r join lifecycle_policy_run_volumes rv on rv.run_id = r.id and rv.state = 'made'
    where not exists (select from snapshots s where s.schedule_id = r.schedule_id and s.volume_id = rv.volume_id
                      and s.status = 'available' and s.deleted_at is null)`);

describe('a server that is killed while a thousand snapshots are due', () => {
  it('creates each of them once, and retention keeps the newest available one of each', {
    timeout: 600_000,
  }, async () => {
    const volume_ids = await volumes();
    const schedules = [{ type: 'interval', minutes: 10, max_quantity: 1 }];
    const body = { action: 'volume_snapshot', name: 'every ten minutes', schedules, volume_ids };
    for (let i = 0; i < policyCount; i++) await yard.insist('POST', policies, body);

    for (const round of [1, 2]) {
      const set = new Date(Date.now() + round * 660_000).toISOString();
      expect((await yard.post('/cloudyard/v1/dev/clock', { set })).status).toBe(200);
      for (const share of [0, 0.1, 0.3, 0.6]) {
        const reached = (round - 1 + share) * due;
        await until(async () => (await figures()).made > reached, 120, `more than ${reached} snapshots`);
        await server.kill();
        expect(await pairsWithoutSnapshot()).toEqual([]);
        server = await yard.start(['start']);
      }
      await until(
        async () => {
          const { made, open, running } = await figures();
          return made === round * due && open === 0 && running === 0;
        },
        240,
        `all runs of round ${round} to be done`,
      );
      expect(await pairsWithoutSnapshot()).toEqual([]);
      await until(
        async () => (await figures()).available === due && (await figures()).other === 0,
        120,
        'older snapshots to be deleted',
      );
      expect(await figures()).toMatchObject({ pairs: due, made: round * due });
    }
    const [twice] = await yard.sql(`select count(*)::int as count from (
      select from snapshots group by schedule_id, volume_id, scheduled_at having count(*) > 1) as twice`);
    expect(twice).toEqual({ count: 0 });
    const [counted] = await yard.sql(`select usage::int from quota_counters where kind = 'volume_snapshots_count'`);
    await until(
      async () => (await yard.sql('select from snapshots where deleted_at is not null')).length === 0,
      60,
      'gone',
    );
    expect(counted!['usage']).toBeGreaterThanOrEqual(due);
  });
});
