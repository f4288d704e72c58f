import { afterEach, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { createHostSpace } from './host-space.ts';

const cloud = useCloudyard({ driver: null });

interface Heartbeat {
  host: string;
  regionId: number;
  freeGib: number;
  /** From now. */
  at?: string;
}

/** The heartbeat of a worker whose host has this much of 100 GiB free, and a reserve of 5 GiB. */
async function heartbeat({ host, regionId, freeGib, at = '0' }: Heartbeat) {
  const gib = 2 ** 30;
  const disk = { kind: 'data directory', freeBytes: freeGib * gib, totalBytes: 100 * gib, reserveBytes: 5 * gib };
  const drivers = [{ kind: 'volumes', real: true }, { kind: 'file shares', real: false }, disk];
  await cloud.db.$client.query(
    `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at)
     values ($1, $1, 1, $2, $3, now(), now() + $4::interval)
     on conflict (id) do update set drivers = excluded.drivers, seen_at = excluded.seen_at`,
    [host, [regionId], JSON.stringify(drivers), at],
  );
}

/** Opens the check. Returns why a task is refused; null if it is not. */
function openHostSpace() {
  const space = createHostSpace(cloud.db);
  return (regionId: number, type: string) => {
    try {
      space.requireSpace(regionId, type);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

afterEach(() => cloud.db.$client.query('delete from workers'));

it('refuses tasks that need space on a host below its reserve, by the heartbeat of its worker', async () => {
  await heartbeat({ host: 'full-1', regionId: 1, freeGib: 3 });
  await heartbeat({ host: 'empty-1', regionId: 2, freeGib: 50 });
  const refusalOf = openHostSpace();
  const refusal = 'host full-1 has 3.0 GiB free, less than its reserve of 5.0 GiB; the operator must add space';
  await expect.poll(() => refusalOf(1, 'create_volume')).toBe(refusal);
  for (const type of ['extend_volume', 'create_snapshot']) expect(refusalOf(1, type)).toBe(refusal);
  // Simulated on this host, or needing no space, or on another host.
  for (const type of ['create_sfs', 'delete_volume', 'revert_volume']) expect(refusalOf(1, type)).toBeNull();
  expect(refusalOf(2, 'create_volume')).toBeNull();

  await heartbeat({ host: 'full-1', regionId: 1, freeGib: 6 });
  await expect.poll(() => refusalOf(1, 'create_volume')).toBeNull();
});

it('ignores a worker that died before the clock of PostgreSQL was set back', async () => {
  await heartbeat({ host: 'dead-1', regionId: 1, freeGib: 3, at: '1 hour' });
  await heartbeat({ host: 'full-2', regionId: 2, freeGib: 3 });
  const refusalOf = openHostSpace();
  await expect.poll(() => refusalOf(2, 'create_volume')).toContain('host full-2');
  expect(refusalOf(1, 'create_volume')).toBeNull();
});
