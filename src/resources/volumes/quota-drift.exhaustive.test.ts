/** Random parallel requests through the API, on a host that fails at random: counters must match the rows, and the host must match the rows. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drift, truthOfVolumes } from '../../../test/crash-harness.ts';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { expectRowCounts, outcomes, troubleOf, untilIdle } from '../../../test/quota-drift.ts';
import { createVolumeHost } from '../../../test/volume-host.ts';

const host = createVolumeHost();
const cloud = useCloudyard({ volumeDriver: host });
const limits = {
  volume_count_limit: 5,
  volume_size_limit: 12,
  volume_snapshots_count_limit: 6,
  volume_snapshots_size_limit: 14,
};

const kinds = ['create', 'copy', 'extend', 'revert', 'rename', 'delete', 'delete all', 'snapshot', 'delete snapshot'];
const command = fc.record({
  kind: fc.constantFrom(...kinds),
  pick: fc.nat({ max: 20 }),
  size: fc.integer({ min: 1, max: 4 }),
});
type Command = { kind: string; pick: number; size: number };

interface Tenant {
  clientId: number;
  volumes: string;
  snapshots: string;
  token: string;
}

async function tenant(): Promise<Tenant> {
  const { clientId, projectId, token } = await cloud.newClient();
  await cloud.patch(`/cloudyard/v1/clients/${clientId}/quotas`, { region_id: 1, ...limits });
  return {
    clientId,
    token,
    volumes: `/cloud/v1/volumes/${projectId}/1`,
    snapshots: `/cloud/v1/snapshots/${projectId}/1`,
  };
}

type Listed = { id: string; size: number; snapshot_ids: string[]; status: string; task_id: string | null };
async function listed({ token, volumes, snapshots }: Tenant): Promise<{ volumes: Listed[]; snapshots: Listed[] }> {
  const of = async (path: string) => (await cloud.get(path, { token })).body.results;
  return { volumes: await of(volumes), snapshots: await of(snapshots) };
}

async function run(of: Tenant, { kind, pick, size }: Command, seen: Awaited<ReturnType<typeof listed>>) {
  const { token } = of;
  const name = 'a volume';
  if (kind === 'create') return cloud.post(of.volumes, { name, source: 'new-volume', size }, { token });
  const snapshot = seen.snapshots[pick % Math.max(seen.snapshots.length, 1)];
  const volume = seen.volumes[pick % Math.max(seen.volumes.length, 1)];
  const one = `${of.volumes}/${volume?.id}`;
  if (kind === 'copy') {
    return snapshot && cloud.post(of.volumes, { name, source: 'snapshot', snapshot_id: snapshot.id }, { token });
  }
  if (kind === 'delete snapshot') return snapshot && cloud.delete(`${of.snapshots}/${snapshot.id}`, { token });
  if (!volume) return undefined;
  if (kind === 'snapshot') return cloud.post(of.snapshots, { name: 'a snapshot', volume_id: volume.id }, { token });
  if (kind === 'extend') return cloud.post(`${one}/extend`, { size: volume.size + size - 1 }, { token });
  if (kind === 'revert') return cloud.post(`${one}/revert`, undefined, { token });
  if (kind === 'rename') return cloud.patch(one, { name: `volume ${size}` }, { token });
  return cloud.delete(kind === 'delete' ? one : `${one}?snapshots=${volume.snapshot_ids.join(',')}`, { token });
}

async function expectNoDrift(of: Tenant): Promise<void> {
  expect(await drift(cloud.db, truthOfVolumes)).toEqual([]);
  for (const resource of ['volume', 'snapshot']) await expectRowCounts(cloud.db, resource);
  const { body } = await cloud.get(`/cloud/v2/regional_quotas/${of.clientId}/1`, { token: of.token });
  for (const [name, limit] of Object.entries(limits)) {
    expect(body[name.replace('_limit', '_usage')]).toBeLessThanOrEqual(limit);
  }
}

describe('the quotas of volumes and snapshots', () => {
  it('match the rows after parallel requests and host errors, are never exceeded, and are released when everything is deleted', async () => {
    const settled = ['available', 'error', 'error_extending', 'error_restoring', 'error_deleting'];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(command, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 5 }),
        outcomes,
        async (batches, plan) => {
          host.trouble(troubleOf(plan));
          const of = await tenant();
          for (const batch of batches) {
            const seen = await listed(of);
            const answers: (Answer | undefined)[] = await Promise.all(batch.map((given) => run(of, given, seen)));
            for (const answer of answers) if (answer) expect([200, 400, 404, 409]).toContain(answer.status);
            await expectNoDrift(of);
          }
          await untilIdle(cloud.db);
          await expectNoDrift(of);
          const left = await listed(of);
          for (const row of [...left.volumes, ...left.snapshots]) {
            expect(settled).toContain(row.status);
            expect(row.task_id).toBe(null);
          }
          for (const { id, status, size } of left.volumes) {
            if (status === 'available') expect(host.contents.volumes.get(id)).toMatchObject({ sizeGib: size });
          }

          host.trouble();
          for (const { id, snapshot_ids } of left.volumes) {
            const answer = await cloud.delete(`${of.volumes}/${id}?snapshots=${snapshot_ids.join(',')}`, of);
            expect(answer.status).toBe(200);
          }
          await untilIdle(cloud.db);
          await expectNoDrift(of);
          expect(await listed(of)).toEqual({ volumes: [], snapshots: [] });
          expect([[...host.contents.volumes.keys()], [...host.contents.snapshots.keys()]]).toEqual([[], []]);
          expect(host.overlap).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 25, endOnFailure: true },
    );
  }, 300_000);
});
