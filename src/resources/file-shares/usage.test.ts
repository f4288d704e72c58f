/** The used space of shares: the worker measures and records it, and requests read rows only. */
import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { createTestHost } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createUsageRecorder } from './reconcile.ts';

const host = createTestHost();
const cloud = useCloudyard({ driver: host });
const record = () => createUsageRecorder({ db: cloud.db, driver: host })();
const path = '/cloudyard/v1/file_shares/1/1/usage';

async function newShare(name: string): Promise<string> {
  const { body } = await cloud.get('/cloud/v1/networks/1/1');
  const network = { network_id: body.results[0].id };
  const created = await cloud.post('/cloud/v1/file_shares/1/1', { name, protocol: 'NFS', size: 1, network });
  return (await cloud.get(`/cloud/v1/tasks/${created.body.tasks[0]}`)).body.created_resources.file_shares[0];
}

afterEach(() => host.space.clear());

it('is listed for measured shares, in the order of the shares', async () => {
  const [first, second] = [await newShare('first'), await newShare('second'), await newShare('not measured')];
  host.space.set(second, { usedBytes: 20, totalBytes: 1000 }).set(first, { usedBytes: 10, totalBytes: 1000 });
  // Without a row: removed since, or unknown to Cloudyard.
  host.space.set(randomUUID(), { usedBytes: 1, totalBytes: 1 });
  await record();
  const [one, two] = [first, second].map((file_share_id, at) => ({
    ...{ file_share_id, used_bytes: (at + 1) * 10, total_bytes: 1000 },
  }));
  expect((await cloud.get(path)).body).toEqual({ count: 2, results: [one, two] });
  expect((await cloud.get(`${path}?limit=1&offset=1`)).body).toEqual({ count: 2, results: [two] });
  expect((await cloud.get(`${path}?file_share_id=${first}`)).body).toEqual({ count: 1, results: [one] });
  expect((await cloud.get(`${path}?file_share_id=${randomUUID()}`)).body).toEqual({ count: 0, results: [] });
  expect((await cloud.get(`${path}?file_share_id=1`)).status).toBe(400);

  host.space.set(first, { usedBytes: 11, totalBytes: 1000 });
  await record();
  expect((await cloud.get(path)).body.results[0].used_bytes).toBe(11);
  // A host that is not read keeps what it had.
  host.space.clear();
  await record();
  expect((await cloud.get(path)).body.count).toBe(2);
});

it('is visible to its project only', async () => {
  const id = await newShare('mine');
  host.space.set(id, { usedBytes: 5, totalBytes: 6 });
  await record();
  const { projectId, token } = await cloud.newClient();
  expect((await cloud.get(`/cloudyard/v1/file_shares/${projectId}/1/usage`, { token })).body.count).toBe(0);
  expect((await cloud.get(path, { token })).status).not.toBe(200);
});
