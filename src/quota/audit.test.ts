/** The quota audit with counters that were modified, and its repair during concurrent requests. */
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { transaction } from '../platform/db.ts';

const cloud = useCloudyard();
const scopeOf = (clientId: number) => ({ clientId, regionId: 1 });
const set = (clientId: number, kind: string, usage: number) =>
  cloud.db.$client.query(
    `insert into quota_counters (client_id, region_id, kind, usage) values ($1, 1, $2, $3)
     on conflict (client_id, region_id, kind) do update set usage = excluded.usage`,
    [clientId, kind, usage],
  );

/** A client with one resource of each kind. */
async function tenant() {
  const client = await cloud.newClient();
  const path = (name: string) => `/cloud/v1/${name}/${client.projectId}/1`;
  const [network] = (await cloud.get(path('networks'), client)).body.results;
  const share = { name: 'share', protocol: 'NFS', size: 3, network: { network_id: network.id } };
  await cloud.ended(await cloud.post(path('file_shares'), share, client), client);
  await cloud.ended(await cloud.post(path('loadbalancers'), { name: 'balancer' }, client), client);
  const secret = {
    name: 'secret',
    secret_type: 'opaque',
    payload: 'AAAA',
    payload_content_type: 'text/plain',
    payload_content_encoding: 'base64',
  };
  await cloud.ended(await cloud.post(path('secrets'), secret, client), client);
  return { ...client, path };
}

describe('the quota audit', () => {
  it('finds no drift if counters only changed with their rows', async () => {
    const { clientId } = await tenant();
    expect(await cloud.services.quotaAudit.find()).toEqual([]);
    const { rows } = await cloud.db.$client.query(
      'select kind, usage from quota_counters where client_id = $1 and usage > 0 order by kind',
      [clientId],
    );
    expect(Object.fromEntries(rows.map(({ kind, usage }) => [kind, usage]))).toEqual({
      loadbalancer_count: 1,
      network_count: 1,
      project_count: 1,
      secret_count: 1,
      sfs_count: 1,
      sfs_size: 3,
      subnet_count: 1,
    });
  });

  it('finds counters that are too high, too low, missing or without rows, and repairs them', async () => {
    const { clientId } = await tenant();
    await set(clientId, 'sfs_size', 5);
    await set(clientId, 'network_count', 0);
    await set(clientId, 'volume_count', 2);
    await cloud.db.$client.query(
      `delete from quota_counters where client_id = $1 and kind in ('secret_count', 'project_count')`,
      [clientId],
    );
    const drifts = [
      { clientId, regionId: 0, kind: 'project_count', counted: 0, inRows: 1 },
      { clientId, regionId: 1, kind: 'network_count', counted: 0, inRows: 1 },
      { clientId, regionId: 1, kind: 'secret_count', counted: 0, inRows: 1 },
      { clientId, regionId: 1, kind: 'sfs_size', counted: 5, inRows: 3 },
      { clientId, regionId: 1, kind: 'volume_count', counted: 2, inRows: 0 },
    ];
    expect(await cloud.services.quotaAudit.find()).toEqual(drifts);
    const { body } = await cloud.get('/cloudyard/v1/quota_audit');
    const shown = body.results.map((each: { in_use: number }) => each.in_use);
    expect([body.count, shown]).toEqual([drifts.length, drifts.map(({ inRows }) => Number(inRows))]);
    expect(await cloud.services.quotaAudit.repair()).toEqual(drifts);
    expect(await cloud.services.quotaAudit.find()).toEqual([]);
    expect(await cloud.services.quotaAudit.repair()).toEqual([]);
  });

  it('keeps limits in a repair, and notifies of the thresholds that the repaired usage reaches', async () => {
    const client = await tenant();
    const { clientId } = client;
    await transaction(cloud.db, (tx) => cloud.services.quota.setLimits(tx, scopeOf(clientId), { sfs_size: 4 }));
    await cloud.request('PUT', `/cloud/v2/client_quotas/${clientId}/notification_threshold`, { threshold: 75 }, client);
    const feed = async () => (await cloud.get(`/cloudyard/v1/clients/${clientId}/notifications`, client)).body.count;
    await expect.poll(feed).toBe(1);
    await set(clientId, 'sfs_size', 0);
    await cloud.db.$client.query(`update quota_counters set alerted_at = null where client_id = $1`, [clientId]);
    await cloud.services.quotaAudit.repair();
    await expect.poll(feed).toBe(2);
    const { body } = await cloud.get(`/cloud/v2/regional_quotas/${clientId}/1`, client);
    expect(body).toMatchObject({ sfs_size_limit: 4, sfs_size_usage: 3 });
  });

  it('repairs during concurrent requests without losing any of their changes', async () => {
    const client = await cloud.newClient();
    const path = `/cloud/v1/networks/${client.projectId}/1`;
    let [working, repairs] = [true, 0];
    const work = async (worker: number) => {
      const mine: string[] = [];
      for (let i = 0; i < 25; i++) {
        const answer = await cloud.post(path, { name: `network ${worker} ${i}` }, client);
        expect(answer.status).toBe(200);
        const task = await cloud.ended(answer, client);
        mine.push(task.body.created_resources.networks[0]);
        if (i % 2 === 0) expect((await cloud.delete(`${path}/${mine.pop()}`, client)).status).toBe(200);
      }
    };
    const disturb = async () => {
      while (working) {
        // Upwards, because a counter cannot go below zero.
        await cloud.db.$client.query(
          `update quota_counters set usage = usage + 3 where client_id = $1 and kind = 'network_count'`,
          [client.clientId],
        );
        repairs += (await cloud.services.quotaAudit.repair()).length;
      }
    };
    const disturbing = disturb();
    await Promise.all([0, 1, 2, 3].map(work)).finally(() => (working = false));
    await disturbing;
    expect(repairs).toBeGreaterThan(0);
    expect(await cloud.services.quotaAudit.find()).toEqual([]);
  }, 120_000);
});
