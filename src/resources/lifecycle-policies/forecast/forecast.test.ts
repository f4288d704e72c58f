/** The forecast of a policy, compared with what its runs then do. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';

const cloud = useCloudyard({ driver: null, pollSeconds: 0.05 });
let client: { clientId: number; projectId: number; token: string };
const at = (what: string) => `/cloud/v1/${what}/${client.projectId}/1`;
const soon = { timeout: 30_000, interval: 20 };

beforeAll(async () => {
  cloud.clock.set(new Date('2026-06-01T12:00:00Z'));
  await cloud.startWorker();
});
beforeEach(async () => {
  client = await cloud.newClient();
});

async function newVolume(): Promise<string> {
  const answer = await cloud.post(at('volumes'), { name: 'data', size: 3, source: 'new-volume' }, client);
  return (await cloud.ended(answer, client)).body.created_resources.volumes[0];
}

async function newPolicy(schedules: object[], volume_ids: string[] = []): Promise<{ id: number; schedules: any[] }> {
  const body = { action: 'volume_snapshot', name: 'policy', schedules, volume_ids };
  return (await cloud.post(at('lifecycle_policy'), body, client)).body;
}

const forecast = (id: number, query = '') =>
  cloud.get(`/cloudyard/v1/lifecycle_policy/${client.projectId}/1/${id}/forecast${query}`, client);
const pathOf = (id: number) => `${at('lifecycle_policy')}/${id}`;

/** Advances the clock by an hour and waits for the runs and deletions. */
async function hours(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    cloud.clock.advance(3600);
    await expect.poll(() => cloud.services.lifecyclePolicyRuns.countOpen([1]), soon).toBe(0);
  }
}
const snapshotIds = async (volume: string): Promise<string[]> =>
  (await cloud.get(`${at('snapshots')}?volume_id=${volume}`, client)).body.results.map(({ id }: { id: string }) => id);

describe('the forecast of a lifecycle policy', () => {
  it('lists the next runs of all schedules in the order of time, with the local time', async () => {
    cloud.clock.set(new Date('2026-07-01T12:00:00Z'));
    const daily = { type: 'cron', hour: '3', timezone: 'Europe/Berlin' };
    const { id, schedules } = await newPolicy([daily, { type: 'interval', hours: 10 }]);
    const { status, body } = await forecast(id, '?count=2');
    expect(status).toBe(200);
    expect(body).toEqual({
      runs: [
        { schedule_id: schedules[1].id, utc: '2026-07-01T22:00:00Z', local: '2026-07-01T22:00:00+00:00' },
        { schedule_id: schedules[0].id, utc: '2026-07-02T01:00:00Z', local: '2026-07-02T03:00:00+02:00' },
        { schedule_id: schedules[1].id, utc: '2026-07-02T08:00:00Z', local: '2026-07-02T08:00:00+00:00' },
        { schedule_id: schedules[0].id, utc: '2026-07-03T01:00:00Z', local: '2026-07-03T03:00:00+02:00' },
      ],
      expiring: [],
    });
    await cloud.patch(pathOf(id), { status: 'paused' }, client);
    expect((await forecast(id)).body).toEqual({ runs: [], expiring: [] });
  });

  it('names the snapshots that the next runs delete because of the number', async () => {
    const volume = await newVolume();
    const { id, schedules } = await newPolicy([{ type: 'interval', hours: 1, max_quantity: 2 }], [volume]);
    await hours(2);
    const [first, second] = await snapshotIds(volume);
    const { runs, expiring } = (await forecast(id, '?count=2')).body;
    const shared = { volume_id: volume, schedule_id: schedules[0].id, size: 3, name: expect.any(String) };
    expect(expiring).toEqual([
      { ...shared, snapshot_id: first, expires_at: runs[0].utc },
      { ...shared, snapshot_id: second, expires_at: runs[1].utc },
    ]);
    expect((await forecast(id, '?count=1&limit=1')).body.expiring).toMatchObject([{ snapshot_id: first }]);
    await hours(1);
    expect(await snapshotIds(volume)).not.toContain(first);
    expect(await snapshotIds(volume)).toContain(second);
    await cloud.delete(pathOf(id), client);
  });

  it('names the snapshots that expire by age, and the newest one only with the run that replaces it', async () => {
    const volume = await newVolume();
    const schedule = { type: 'interval', hours: 1, max_quantity: 100, retention_time: { minutes: 90 } };
    const { id } = await newPolicy([schedule], [volume]);
    await hours(2);
    const ids = await snapshotIds(volume);
    const { runs, expiring } = (await forecast(id, '?count=3')).body;
    expect(expiring.map(({ snapshot_id }: { snapshot_id: string }) => snapshot_id)).toEqual(ids);
    const minutes = expiring.map(
      ({ expires_at }: { expires_at: string }) => (Date.parse(expires_at) - Date.parse(runs[0].utc)) / 60_000,
    );
    expect(minutes[0]).toBeCloseTo(-30, 0);
    expect(minutes[1]).toBeCloseTo(30, 0);
    await cloud.request('PUT', `${pathOf(id)}/remove_volumes_from_policy`, { volume_ids: [volume] }, client);
    expect((await forecast(id)).body.expiring).toEqual([]);
    await cloud.delete(pathOf(id), client);
  });

  it('names snapshots until the last run of their own schedule', async () => {
    const volume = await newVolume();
    const often = { type: 'interval', hours: 1, max_quantity: 4, retention_time: { hours: 9 } };
    const { id, schedules } = await newPolicy([often, { type: 'interval', days: 1 }], [volume]);
    await hours(4);
    const ids = await snapshotIds(volume);
    const { runs, expiring } = (await forecast(id, '?count=2')).body;
    expect(expiring.map(({ snapshot_id }: { snapshot_id: string }) => snapshot_id)).toEqual(ids.slice(0, 2));
    const own = runs.filter(({ schedule_id }: { schedule_id: string }) => schedule_id === schedules[0]!.id);
    expect(expiring.map(({ expires_at }: { expires_at: string }) => expires_at)).toEqual(
      own.map(({ utc }: { utc: string }) => utc),
    );
    await cloud.delete(pathOf(id), client);
  });

  it('rejects a count outside its bounds and a policy of another project', async () => {
    const { id } = await newPolicy([{ type: 'interval', hours: 1 }]);
    for (const query of ['?count=0', '?count=101', '?limit=1001', '?count=x']) {
      expect((await forecast(id, query)).status).toBe(400);
    }
    client = await cloud.newClient();
    expect((await forecast(id)).status).toBe(404);
  });
});
