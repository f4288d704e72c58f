/** The operations of hosts. The agents themselves are tested in src/hosts/. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { transaction } from '../../platform/db.ts';
import { find, remove } from './store.ts';

const cloudyard = useCloudyard({ driver: null });
const hosts = '/cloudyard/v1/hosts';
const report = {
  drivers: [{ kind: 'load balancers', driver: 'haproxy', real: true, healthy: true, detail: 'HAProxy 2.6' }],
  heldGroups: ['addresses-0'],
  version: '1.2.3',
};

async function addHost(name: string, leaseSeconds: number, more: { state?: string; regionId?: number } = {}) {
  await cloudyard.db.$client.query(
    `insert into hosts (region_id, name, address, incarnation, lease_until, converged, report, joined_at, started_at, state)
     values ($1, $2, '10.77.0.1', $3, now() + $4 * interval '1 second', true, $5, now(), now(), $6)`,
    [more.regionId ?? 1, name, randomUUID(), leaseSeconds, JSON.stringify(report), more.state ?? 'active'],
  );
}

beforeEach(async () => {
  await cloudyard.db.$client.query('delete from hosts');
  await cloudyard.db.$client.query('delete from published_states');
});

describe('hosts', () => {
  it('are listed with their lease, drivers and pending changes', async () => {
    await addHost('h2', -60);
    await addHost('h1', 3600);
    await addHost('other', 3600, { regionId: 2 });
    await cloudyard.db.$client.query(
      `insert into published_states (region_id, kind, id, revision) values (1, 'load_balancer', 'a', 1)`,
    );
    const { status, body } = await cloudyard.get(`${hosts}?region_id=1`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      count: 2,
      results: [
        {
          name: 'h1',
          region_id: 1,
          lease_valid: true,
          converged: true,
          state: 'active',
          pending_changes: 1,
          held_groups: ['addresses-0'],
        },
        {
          name: 'h2',
          lease_valid: false,
          converged: false,
          held_groups: [],
          version: '1.2.3',
          drivers: report.drivers,
        },
      ],
    });
    expect((await cloudyard.get(hosts)).body.count).toBe(3);
    expect((await cloudyard.get(`${hosts}?limit=1&offset=2`)).body.results).toMatchObject([{ name: 'other' }]);
    expect((await cloudyard.get(`${hosts}/1/h1`)).body).toMatchObject({ name: 'h1', address: '10.77.0.1' });
    expect((await cloudyard.get(`${hosts}/1/unknown`)).status).toBe(404);
  });

  it('count the changes after their last report and those that they reported as failed', async () => {
    await addHost('h1', 3600);
    await cloudyard.db.$client.query(
      `insert into published_states (region_id, kind, id, revision)
       select 1, 'load_balancer', revision, revision from generate_series(4, 7) as revision`,
    );
    await cloudyard.db.$client.query(`update hosts set report = $1`, [
      JSON.stringify({ ...report, applied: { revision: 5, pending: 1 } }),
    ]);
    expect((await cloudyard.get(`${hosts}/1/h1`)).body).toMatchObject({ pending_changes: 3 });
  });

  it('renew their lease while an operator drains or forgets them', async () => {
    await addHost('h1', 3600);
    await transaction(cloudyard.db, async (tx) => {
      await find(tx, 1, 'h1');
      expect(await remove(tx, 1, 'h1')).toBe(false);
      await transaction(cloudyard.db, async (other) => {
        await other.$client.query(`set local lock_timeout = '5s'`);
        await other.$client.query(`update hosts set lease_until = now() + interval '1 hour'`);
      });
    });
  });

  it('are for admins of the operator only', async () => {
    await addHost('h1', 3600);
    const { token } = await cloudyard.newClient('admin');
    for (const [method, path] of [
      ['GET', hosts],
      ['GET', `${hosts}/1/h1`],
      ['POST', `${hosts}/1/h1/drain`],
      ['DELETE', `${hosts}/1/h1`],
    ] as const) {
      expect([path, (await cloudyard.request(method, path, undefined, { token })).status]).toEqual([path, 403]);
    }
  });

  it('drain and serve again; a repeated request changes nothing', async () => {
    await addHost('h1', 3600);
    expect((await cloudyard.post(`${hosts}/1/h1/drain`)).body).toMatchObject({ name: 'h1', state: 'draining' });
    await cloudyard.db.$client.query(`update hosts set state = 'drained'`);
    expect((await cloudyard.post(`${hosts}/1/h1/drain`)).body).toMatchObject({ state: 'drained' });
    expect((await cloudyard.post(`${hosts}/1/h1/undrain`)).body).toMatchObject({ state: 'active' });
    expect((await cloudyard.post(`${hosts}/1/h1/undrain`)).body).toMatchObject({ state: 'active' });
    expect((await cloudyard.post(`${hosts}/1/unknown/drain`)).status).toBe(404);
    const { body } = await cloudyard.get('/cloudyard/v1/audit?operation=drainHost');
    expect(body.results.at(-1).changes).toMatchObject([
      { table: 'hosts', before: { state: 'active' }, after: { state: 'draining' } },
    ]);
  });

  it('are returned again under the same Idempotency-Key', async () => {
    await addHost('h1', 3600);
    const drain = () => cloudyard.post(`${hosts}/1/h1/drain`, undefined, { headers: { 'idempotency-key': 'drain-1' } });
    const first = await drain();
    expect(first.body).toMatchObject({ name: 'h1', state: 'draining' });
    expect(await drain()).toMatchObject({ status: 200, body: first.body });
  });

  it('are forgotten only when they cannot serve', async () => {
    await addHost('h1', 3600);
    await addHost('h2', -1);
    await addHost('h3', -60);
    for (const name of ['h1', 'h2']) {
      const refused = await cloudyard.delete(`${hosts}/1/${name}`);
      expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining('has a valid lease') } });
    }
    expect((await cloudyard.delete(`${hosts}/1/h3`)).status).toBe(204);
    expect((await cloudyard.delete(`${hosts}/1/h3`)).status).toBe(404);
    expect((await cloudyard.get(hosts)).body.results.map(({ name }: { name: string }) => name)).toEqual(['h1', 'h2']);
  });

  it('are in the metrics', async () => {
    await addHost('h1', -60);
    const text = await cloudyard.services.metrics.text();
    expect(text).toMatch(/^cloudyard_host_lease_seconds\{region="1",host="h1"\} -6\d/m);
    expect(text).toMatch(/^cloudyard_host_pending_changes\{region="1",host="h1"\} 0$/m);
  });
});
