import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { errorPaths, useCloudyard } from '../../../test/harness.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { transaction, type Tx } from '../../platform/db.ts';

const cloud = useCloudyard();
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';
const unknownId = '11111111-1111-4111-8111-111111111111';

async function createVolume(size = 2): Promise<string> {
  const task = await cloud.ended(await cloud.post(volumes, { name: 'a volume', source: 'new-volume', size }));
  return task.body.created_resources.volumes[0];
}

async function createSnapshot(volume_id: string, changes: object = {}): Promise<Record<string, any>> {
  const task = await cloud.ended(await cloud.post(snapshots, { name: 'a snapshot', volume_id, ...changes }));
  return (await cloud.get(`${snapshots}/${task.body.created_resources.snapshots[0]}`)).body;
}

const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body;
const idsOf = async (query: string) =>
  (await cloud.get(`${snapshots}?${query}`)).body.results.map(({ id }: { id: string }) => id);

describe('a snapshot', () => {
  it('is created by one task, and the response has every field', async () => {
    const volume_id = await createVolume(3);
    const body = { name: 'a snapshot', volume_id, description: 'before the upgrade', tags: { a: '1' } };
    const created = await cloud.post(snapshots, body);
    const task = await cloud.ended(created);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_snapshot', error: null });
    const shown = await cloud.get(`${snapshots}/${task.body.created_resources.snapshots[0]}`);
    expect(shown.body).toEqual({
      ...body,
      id: task.body.created_resources.snapshots[0],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      creator_task_id: created.body.tasks[0],
      metadata: { a: '1' },
      project_id: 1,
      region: 'local',
      region_id: 1,
      size: 3,
      status: 'available',
      tags: [{ key: 'a', value: '1', read_only: false }],
      task_id: null,
      updated_at: shown.body.created_at,
    });
  });

  it('keeps its size when its volume is extended', async () => {
    const volume = await createVolume(2);
    const { id } = await createSnapshot(volume);
    await cloud.ended(await cloud.post(`${volumes}/${volume}/extend`, { size: 6 }));
    expect((await cloud.get(`${snapshots}/${id}`)).body.size).toBe(2);
  });

  it('is renamed and tagged, and the deprecated operation replaces all tags', async () => {
    const { id } = await createSnapshot(await createVolume(), { tags: { a: '1', b: '2' } });
    const changed = await cloud.patch(`${snapshots}/${id}`, { name: 'another name', tags: { a: null, c: '3' } });
    expect(changed.body).toMatchObject({ name: 'another name' });
    expect(changed.body.tags.map(({ key }: { key: string }) => key)).toEqual(['b', 'c']);
    const replaced = await cloud.request('PUT', `${snapshots}/${id}/metadata`, { d: '4', e: null });
    expect(replaced.body.tags).toEqual([{ key: 'd', value: '4', read_only: false }]);
    expect((await cloud.patch(`${snapshots}/${id}`, {})).body).toEqual(replaced.body);
  });

  it('is shown as each of several concurrent changes leaves it', async () => {
    const { id } = await createSnapshot(await createVolume());
    const names = Array.from({ length: 20 }, (_, n) => `name-${n}`);
    const changed = await Promise.all(names.map((name) => cloud.patch(`${snapshots}/${id}`, { name })));
    expect(changed.map(({ body }) => body.name)).toEqual(names);
  });

  it('counts against the quota until it is deleted', async () => {
    const volume = await createVolume(4);
    const before = await usage();
    const { id } = await createSnapshot(volume);
    expect(await usage()).toMatchObject({
      volume_snapshots_count_usage: before.volume_snapshots_count_usage + 1,
      volume_snapshots_size_usage: before.volume_snapshots_size_usage + 4,
    });
    expect((await cloud.ended(await cloud.delete(`${snapshots}/${id}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(`${snapshots}/${id}`)).status).toBe(404);
    expect(await usage()).toEqual(before);
  });

  it('can be listed by volume', async () => {
    const [one, other] = [await createVolume(), await createVolume()];
    const [first, second] = [await createSnapshot(one), await createSnapshot(one)];
    await createSnapshot(other);
    expect(await idsOf(`volume_id=${one}`)).toEqual([first['id'], second['id']]);
    expect(await idsOf(`volume_id=${one}&limit=1&offset=1`)).toEqual([second['id']]);
    expect(await idsOf(`volume_id=${unknownId}`)).toEqual([]);
    expect(await idsOf('instance_id=x')).toEqual([]);
    expect(await idsOf(`lifecycle_policy_id=${2 ** 31}`)).toEqual([]);
    expect((await cloud.get(snapshots)).body.count).toBe((await idsOf('')).length);
  });

  it('is refused without a name or a volume, and with unknown fields', async () => {
    const volume_id = await createVolume();
    for (const [body, fields] of [
      [{ volume_id }, ['name']],
      [{ name: 'ab', volume_id }, ['name']],
      [{ name: 'abc' }, ['volume_id']],
      [{ name: 'abc', volume_id: 'x' }, ['volume_id']],
      [{ name: 'abc', volume_id: unknownId }, ['volume_id']],
      [{ name: 'abc', volume_id, description: 7 }, ['description']],
      [{ name: 'abc', volume_id, colour: 'red' }, ['colour']],
    ] as const) {
      const answer = await cloud.post(snapshots, body);
      expect([body, answer.status, errorPaths(answer)]).toEqual([body, 400, fields]);
    }
    expect((await cloud.get(`${snapshots}?schedule_id=x`)).status).toBe(400);
    expect((await cloud.get(`${snapshots}/x`)).status).toBe(400);
    expect((await cloud.get(`${snapshots}/${unknownId}`)).status).toBe(404);
    expect((await cloud.delete(`${snapshots}/${unknownId}`)).status).toBe(404);
  });
});

describe("a policy's run", () => {
  const context: RequestContext = {
    actor: { tokenId: 1, clientId: 1, role: 'member', projectIds: null, operator: false },
    requestId: 'a run',
  };
  const run = (volumeId: string, changes: object = {}) => ({
    context,
    volumeId,
    lifecyclePolicyId: 7,
    scheduleId: randomUUID(),
    scheduledAt: new Date('2026-03-29T01:00:00Z'),
    name: `Snapshot of volume ${volumeId} created by policy 7`,
    tags: { created_by_policy: { value: '7', read_only: true } },
    ...changes,
  });
  const inOne = <T>(work: (tx: Tx) => Promise<T>) => transaction(cloud.db, work);
  const make = (...runs: ReturnType<typeof run>[]) => inOne((tx) => cloud.services.snapshots.createForRuns(tx, runs));
  const ended = async (taskId: string) =>
    (await cloud.get(`/cloud/v1/tasks/${taskId}?wait=20`)).body as Record<string, any>;

  it('creates one snapshot of a volume, also if it is repeated in parallel', async () => {
    const given = run(await createVolume());
    const made = await Promise.all(Array.from({ length: 5 }, () => make(given)));
    const [first] = made[0]!;
    for (const each of made) expect(each).toEqual([first]);
    expect((await ended(first!.taskId))['state']).toBe('FINISHED');
    expect(await idsOf(`schedule_id=${given.scheduleId}`)).toEqual([first!.snapshotId]);
    expect(await idsOf('lifecycle_policy_id=7')).toContain(first!.snapshotId);
    const { body } = await cloud.get(`${snapshots}/${first!.snapshotId}`);
    expect(body).toMatchObject({ name: given.name, tags: [{ key: 'created_by_policy', read_only: true }] });
  });

  it('creates a batch of snapshots of one or several volumes, once each, and counts them', async () => {
    const [one, other] = [await createVolume(2), await createVolume(3)];
    const before = await usage();
    const runs = [run(one), run(other), run(one), run(other)];
    const [first] = await make(runs[1]!);
    const made = await make(...runs);
    expect(made[1]).toEqual(first);
    expect(new Set(made.map(({ snapshotId }) => snapshotId)).size).toBe(4);
    for (const [i, { snapshotId, taskId }] of made.entries()) {
      expect(await ended(taskId)).toMatchObject({ state: 'FINISHED', created_resources: { snapshots: [snapshotId] } });
      expect(await idsOf(`schedule_id=${runs[i]!.scheduleId}`)).toEqual([snapshotId]);
    }
    expect(await usage()).toMatchObject({
      volume_snapshots_count_usage: before.volume_snapshots_count_usage + 4,
      volume_snapshots_size_usage: before.volume_snapshots_size_usage + 10,
    });
    expect((await cloud.get(snapshots)).body.count).toBe((await idsOf('')).length);
  });

  it('keeps its system tag in every update', async () => {
    const given = run(await createVolume());
    const [made] = await make(given);
    await ended(made!.taskId);
    const path = `${snapshots}/${made!.snapshotId}`;
    expect((await cloud.patch(path, { tags: null })).body.tags).toHaveLength(1);
    expect((await cloud.request('PUT', `${path}/metadata`, {})).body.tags).toHaveLength(1);
    for (const answer of [
      await cloud.patch(path, { tags: { created_by_policy: null } }),
      await cloud.request('PUT', `${path}/metadata`, { created_by_policy: 'me' }),
    ]) {
      expect(answer.status).toBe(400);
    }
  });

  it('is refused with a reason if it would exceed a quota, and leaves nothing behind', async () => {
    const volume = await createVolume();
    const before = await usage();
    await cloud.patch('/cloudyard/v1/clients/1/quotas', {
      region_id: 1,
      volume_snapshots_count_limit: before.volume_snapshots_count_usage,
    });
    await expect(make(run(volume))).rejects.toMatchObject({ code: 'QuotaExceeded' });
    expect(await idsOf(`volume_id=${volume}`)).toEqual([]);
    await cloud.patch('/cloudyard/v1/clients/1/quotas', { region_id: 1, volume_snapshots_count_limit: null });
    await expect(make(run(volume), run(unknownId))).rejects.toMatchObject({ code: 'NotFound' });
    expect(await idsOf(`volume_id=${volume}`)).toEqual([]);
    expect(await usage()).toEqual(before);
  });

  it('lists the snapshots of its schedule, newest first, and expires them', async () => {
    const volumeId = await createVolume();
    const scheduleId = randomUUID();
    for (const scheduledAt of ['2026-03-29T01:00:00Z', '2026-03-30T01:00:00Z']) {
      const given = run(volumeId, { scheduleId, scheduledAt: new Date(scheduledAt) });
      await ended((await make(given))[0]!.taskId);
    }
    const made = await cloud.services.snapshots.ofSchedule(cloud.db, scheduleId, volumeId);
    expect(made.map(({ scheduledAt }) => scheduledAt!.toISOString().slice(0, 10))).toEqual([
      '2026-03-30',
      '2026-03-29',
    ]);
    const expire = () =>
      inOne((tx) =>
        cloud.services.snapshots.expire(tx, [
          { context, id: made[1]!.id },
          { context, id: randomUUID() },
        ]),
      );
    const [taskId, none] = await expire();
    expect(none).toBeNull();
    expect(await ended(taskId!)).toMatchObject({ state: 'FINISHED', task_type: 'delete_snapshot' });
    expect(await idsOf(`schedule_id=${scheduleId}`)).toEqual([made[0]!.id]);
    expect(await expire()).toEqual([null, null]);
  });
});
