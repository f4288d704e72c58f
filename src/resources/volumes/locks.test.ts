/** Locks between volumes, their snapshots and copies of both, on a simulated host that tests can pause. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { passing, terminal } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createVolumeHost } from '../../../test/volume-host.ts';
import { transaction } from '../../platform/db.ts';

const host = createVolumeHost({ real: true });
const cloud = useCloudyard({ volumeDriver: host });
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';

beforeEach(() => {
  host.admit();
  host.trouble();
  host.stillCopying = 0;
});

const newVolume = (changes: object = {}) =>
  cloud.post(volumes, { name: 'a volume', source: 'new-volume', size: 2, ...changes });
const newSnapshot = (volume_id: string) => cloud.post(snapshots, { name: 'a snapshot', volume_id });
const idOf = async (kind: 'volumes' | 'snapshots', answer: { body: { tasks: string[] } }): Promise<string> =>
  (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.created_resources[kind][0];
const done = async (kind: 'volumes' | 'snapshots', answer: Parameters<typeof cloud.ended>[0]) => {
  expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
  return idOf(kind, answer);
};
const until = async (condition: () => Promise<boolean> | boolean) => {
  const deadline = Date.now() + 20_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('the condition did not become true within 20 seconds');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const held = (id: string) => until(() => host.held.some((call) => call.id === id));
const statusOf = async (path: string) => (await cloud.get(path)).body.status as string;
/** Asserts a 409 response that names the task. */
const expectLockedBy = (answer: { status: number; body: any }, taskId: string) => {
  expect([answer.status, answer.body.exception_class, answer.body.errors?.[0]?.message]).toEqual([
    409,
    'ResourceLocked',
    taskId,
  ]);
};

describe('while a snapshot is being created', () => {
  it('its volume shows the task and rejects every operation that changes its bytes', async () => {
    const volume = await done('volumes', await newVolume());
    const release = host.hold();
    const created = await newSnapshot(volume);
    const id = await idOf('snapshots', created);
    const [task] = created.body.tasks as [string];
    await held(id);
    expect(await statusOf(`${snapshots}/${id}`)).toBe('creating');
    expect((await cloud.get(`${volumes}/${volume}`)).body.task_id).toBe(task);
    expectLockedBy(await cloud.post(`${volumes}/${volume}/extend`, { size: 9 }), task);
    expectLockedBy(await cloud.post(`${volumes}/${volume}/revert`), task);
    expectLockedBy(await cloud.post(`${volumes}/${volume}/retype`, { volume_type: 'standard' }), task);
    expectLockedBy(await cloud.delete(`${volumes}/${volume}?snapshots=${id}`), task);
    expectLockedBy(await cloud.patch(`${volumes}/${volume}`, { name: 'renamed' }), task);
    expectLockedBy(await cloud.patch(`${snapshots}/${id}`, { name: 'renamed' }), task);
    expectLockedBy(await cloud.delete(`${snapshots}/${id}`), task);
    expectLockedBy(await newVolume({ source: 'snapshot', snapshot_id: id, size: undefined }), task);
    const second = await newSnapshot(volume);
    release();
    for (const answer of [created, second]) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
    expect(host.overlap).toBe(1);
  });

  it('other volumes are not blocked', async () => {
    const volume = await done('volumes', await newVolume());
    host.stillCopying = 2;
    const slow = await newSnapshot(volume);
    await done('volumes', await newVolume());
    expect((await cloud.ended(slow)).body.state).toBe('FINISHED');
  });
});

describe('while a volume is being changed', () => {
  it('its snapshots are locked, a revert shows on both, and restores the newest successful snapshot', async () => {
    const volume = await done('volumes', await newVolume());
    const write = (bytes: string) => (host.contents.volumes.get(volume)!.bytes = bytes);
    const snapshotIds: string[] = [];
    for (const bytes of ['first', 'second']) {
      write(bytes);
      snapshotIds.push(await done('snapshots', await newSnapshot(volume)));
    }
    host.trouble(({ kind }) => (kind === 'snapshot' ? { error: terminal(), done: false } : null));
    expect((await cloud.ended(await newSnapshot(volume))).body.state).toBe('ERROR');
    host.trouble();
    write('changed');
    const release = host.hold();
    expect((await cloud.post(`${volumes}/${volume}/revert`)).status).toBe(200);
    await held(volume);
    const { status, task_id } = (await cloud.get(`${volumes}/${volume}`)).body;
    expect(status).toBe('reverting');
    expect(await statusOf(`${snapshots}/${snapshotIds[1]}`)).toBe('restoring');
    expect(await statusOf(`${snapshots}/${snapshotIds[0]}`)).toBe('available');
    for (const id of snapshotIds) expectLockedBy(await cloud.delete(`${snapshots}/${id}`), task_id);
    expectLockedBy(await newSnapshot(volume), task_id);
    release();
    await until(async () => (await statusOf(`${volumes}/${volume}`)) === 'available');
    expect(await statusOf(`${snapshots}/${snapshotIds[1]}`)).toBe('available');
    expect(host.contents.volumes.get(volume)).toEqual({ sizeGib: 2, bytes: 'second' });
  });

  it('a snapshot that is being copied to a volume cannot be deleted, but can be copied again', async () => {
    const volume = await done('volumes', await newVolume());
    const snapshot_id = await done('snapshots', await newSnapshot(volume));
    const release = host.hold();
    const from = { source: 'snapshot', snapshot_id, size: undefined };
    const copy = await newVolume(from);
    await held(await idOf('volumes', copy));
    const refused = [await cloud.delete(`${snapshots}/${snapshot_id}`), await cloud.delete(`${volumes}/${volume}`)];
    for (const answer of refused) {
      expectLockedBy(answer, copy.body.tasks[0]);
      expect(answer.body.message).toContain(`snapshot ${snapshot_id} is copied to a new volume by task `);
    }
    // Only the deletion has to wait.
    const renamed = await cloud.patch(`${snapshots}/${snapshot_id}`, { name: 'renamed' });
    expect(renamed).toMatchObject({ status: 200, body: { name: 'renamed', task_id: null } });
    const second = await newVolume(from);
    expect(second.status).toBe(200);
    release();
    for (const answer of [copy, second]) await done('volumes', answer);
    await cloud.ended(await cloud.delete(`${snapshots}/${snapshot_id}`));
  });

  it("a policy's run waits for the change and snapshots the changed volume", async () => {
    const volume = await done('volumes', await newVolume());
    const release = host.hold();
    const extension = await cloud.post(`${volumes}/${volume}/extend`, { size: 7 });
    await held(volume);
    const context = {
      actor: { tokenId: 1, clientId: 1, role: 'member' as const, projectIds: null, operator: false },
      requestId: 'a run',
    };
    const run = { volumeId: volume, lifecyclePolicyId: 1, scheduleId: randomUUID(), scheduledAt: new Date() };
    const [made] = await transaction(cloud.db, (tx) =>
      cloud.services.snapshots.createForRuns(tx, [{ ...run, context, name: 'by a run', tags: {} }]),
    );
    const { taskId, snapshotId } = made!;
    release();
    for (const id of [extension.body.tasks[0], taskId]) {
      expect((await cloud.get(`/cloud/v1/tasks/${id}?wait=20`)).body.state).toBe('FINISHED');
    }
    expect(host.contents.snapshots.get(snapshotId)).toMatchObject({ sizeGib: 7 });
  });
});

describe('a failed operation', () => {
  it('on create leaves a volume that can only be deleted, which releases its quota', async () => {
    const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body;
    const before = await usage();
    host.trouble(() => ({ error: terminal(), done: false }));
    const created = await newVolume();
    expect((await cloud.ended(created)).body).toMatchObject({
      state: 'ERROR',
      error: 'there is no space left on the host',
    });
    host.trouble();
    const path = `${volumes}/${await idOf('volumes', created)}`;
    expect(await statusOf(path)).toBe('error');
    for (const answer of [
      await cloud.post(`${path}/extend`, { size: 9 }),
      await newSnapshot(path.split('/').at(-1)!),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    }
    await cloud.ended(await cloud.delete(path));
    expect(await usage()).toEqual(before);
  });

  it('on delete, with the snapshot, succeeds when the deletion is repeated', async () => {
    const volume = await done('volumes', await newVolume());
    const snapshot = await done('snapshots', await newSnapshot(volume));
    host.trouble(({ kind, method }) =>
      kind === 'snapshot' && method === 'remove' ? { error: terminal(), done: false } : null,
    );
    const failed = await cloud.ended(await cloud.delete(`${volumes}/${volume}?snapshots=${snapshot}`));
    expect(failed.body).toMatchObject({ state: 'ERROR', error: expect.stringContaining(snapshot) });
    expect(await statusOf(`${volumes}/${volume}`)).toBe('error_deleting');
    host.trouble();
    expect((await cloud.ended(await cloud.delete(`${volumes}/${volume}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(`${snapshots}/${snapshot}`)).status).toBe(404);
  });

  it('is retried after a temporary error', async () => {
    let failures = 1;
    host.trouble(() => (failures-- > 0 ? { error: passing(), done: false } : null));
    await done('volumes', await newVolume());
  });
});

describe('a volume that the host has lost', () => {
  it('has status error until it reappears, and unknown volumes are moved aside', async () => {
    const volume = await done('volumes', await newVolume());
    const snapshot = await done('snapshots', await newSnapshot(volume));
    const { contents } = host;
    const kept = [contents.volumes.get(volume)!, contents.snapshots.get(snapshot)!] as const;
    contents.volumes.delete(volume);
    contents.snapshots.delete(snapshot);
    const stray = randomUUID();
    contents.volumes.set(stray, { sizeGib: 1, bytes: 'unknown' });
    await until(async () => (await statusOf(`${volumes}/${volume}`)) === 'error');
    await until(async () => (await statusOf(`${snapshots}/${snapshot}`)) === 'error');
    await until(() => contents.aside.has(stray));
    expect([contents.volumes.has(volume), contents.snapshots.has(snapshot)]).toEqual([false, false]);
    contents.volumes.set(volume, kept[0]);
    contents.snapshots.set(snapshot, kept[1]);
    await until(async () => (await statusOf(`${volumes}/${volume}`)) === 'available');
    await until(async () => (await statusOf(`${snapshots}/${snapshot}`)) === 'available');
  });

  it('is restored by a revert', async () => {
    const volume = await done('volumes', await newVolume());
    await done('snapshots', await newSnapshot(volume));
    host.contents.volumes.delete(volume);
    await until(async () => (await statusOf(`${volumes}/${volume}`)) === 'error');
    const extended = await cloud.post(`${volumes}/${volume}/extend`, { size: 50 });
    expect([extended.status, extended.body.message]).toEqual([409, expect.stringContaining('can only be reverted')]);
    await cloud.post(`${volumes}/${volume}/revert`);
    await until(async () => (await statusOf(`${volumes}/${volume}`)) === 'available');
    expect(host.contents.volumes.has(volume)).toBe(true);
  });
});
