import { afterEach, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { createHostSpace } from './host-space.ts';

const cloud = useCloudyard({ driver: null });

/** The heartbeat of a worker whose host has this much of 100 GiB free, and a reserve of 5 GiB. */
async function heartbeat({ host, regionId, freeGib }: { host: string; regionId: number; freeGib: number }) {
  const gib = 2 ** 30;
  const disk = { kind: 'data directory', freeBytes: freeGib * gib, totalBytes: 100 * gib, reserveBytes: 5 * gib };
  const drivers = [{ kind: 'volumes', real: true }, { kind: 'file shares', real: false }, disk];
  await cloud.db.$client.query(
    `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at)
     values ($1, $1, 1, $2, $3, now(), now())
     on conflict (id) do update set drivers = excluded.drivers, seen_at = excluded.seen_at`,
    [host, [regionId], JSON.stringify(drivers)],
  );
}

afterEach(() => cloud.db.$client.query('delete from workers'));

it('refuses tasks that need space on a host below its reserve, by the heartbeat of its worker', async () => {
  await heartbeat({ host: 'full-1', regionId: 1, freeGib: 3 });
  await heartbeat({ host: 'empty-1', regionId: 2, freeGib: 50 });
  const space = createHostSpace(cloud.db);
  const refusalOf = (regionId: number, type: string) => {
    try {
      space.requireSpace(regionId, type);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const refusal = 'host full-1 has 3.0 GiB free, less than its reserve of 5.0 GiB; the operator must add space';
  await expect.poll(() => refusalOf(1, 'create_volume')).toBe(refusal);
  for (const type of ['extend_volume', 'create_snapshot']) expect(refusalOf(1, type)).toBe(refusal);
  // Simulated on this host, or needing no space, or on another host.
  for (const type of ['create_sfs', 'delete_volume', 'revert_volume']) expect(refusalOf(1, type)).toBeNull();
  expect(refusalOf(2, 'create_volume')).toBeNull();

  await heartbeat({ host: 'full-1', regionId: 1, freeGib: 6 });
  await expect.poll(() => refusalOf(1, 'create_volume')).toBeNull();
});
