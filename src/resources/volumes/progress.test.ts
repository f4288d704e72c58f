/** Tasks of copies show how much is done, where the driver knows it. */
import { beforeAll, describe, expect, it } from 'vitest';
import { readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/until.ts';
import { createSimulatedVolumeDriver } from '../../drivers/simulated/volume.ts';
import type { Progress } from '../../drivers/volume.ts';

const simulated = createSimulatedVolumeDriver();
/** What a running copy reports; null: copies complete at once. */
let progress: Progress | null = null;
const cloud = useCloudyard({
  volumeDriver: {
    ...simulated,
    apply: async (desired, signal) =>
      progress && desired.revertTo !== null ? { copying: true, progress } : simulated.apply(desired, signal),
    snapshots: {
      ...simulated.snapshots,
      apply: async (desired, signal) =>
        progress ? { copying: true, progress } : simulated.snapshots.apply(desired, signal),
    },
  },
});
let url: string;
beforeAll(async () => {
  url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
});

const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';

async function expectProgress(taskId: string): Promise<void> {
  const stream = await readEvents(url, cloud.admin, { query: '?kinds=task' });
  const shown = async () => (await cloud.get(`/cloud/v1/tasks/${taskId}`)).body;
  for (const doneBytes of [1, 2]) {
    progress = { doneBytes, totalBytes: 4 };
    await until(async () => (await shown()).data?.progress?.done_bytes === doneBytes, 20, `${doneBytes} bytes`);
    expect(await shown()).toMatchObject({ state: 'RUNNING', data: { progress: { total_bytes: 4 } } });
  }
  await stream.next({ kind: 'task', resource_id: taskId, change: 'updated' });
  stream.close();
  progress = null;
  const { body } = await cloud.get(`/cloud/v1/tasks/${taskId}?wait=20`);
  expect([body.state, body.data?.progress]).toEqual(['FINISHED', undefined]);
}

describe('the progress of a copy', () => {
  it('is shown by the tasks of a snapshot and of a revert, also as events, until they end', async () => {
    const created = await cloud.ended(await cloud.post(volumes, { name: 'volume', source: 'new-volume', size: 1 }));
    const volumeId = created.body.created_resources.volumes[0];
    progress = { doneBytes: 0, totalBytes: 4 };
    const taken = await cloud.post(snapshots, { name: 'snapshot', volume_id: volumeId });
    await expectProgress(taken.body.tasks[0]);
    progress = { doneBytes: 0, totalBytes: 4 };
    // The response to a revert names no task.
    expect((await cloud.post(`${volumes}/${volumeId}/revert`)).status).toBe(200);
    const { results } = (await cloud.get('/cloud/v1/tasks?state=NEW&state=RUNNING')).body;
    await expectProgress(results[0].id);
  });
});
