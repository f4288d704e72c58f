/** Statuses, statistics and metrics from readings of the proxy; rows are written only when they change. */
import { describe, expect, it } from 'vitest';
import type { ListenerCounters } from '../../drivers/load-balancer.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { createLoadBalancerReconciler } from './reconcile.ts';
import { createStatusRecorder, createTrafficRecorder } from './recorders.ts';
import { removeOld } from './traffic/store.ts';

// Without a worker: the tests run its duties.
const cloud = useCloudyard({ driver: null });
const host = createTestLoadBalancerHost();
const idle = { listeners: [{ name: 'web', protocol: 'TCP', protocol_port: 80 }] };

/** Creates a load balancer and reconciles it, as a worker would. */
async function createBalancer(changes: object = {}) {
  const path = '/cloud/v1/loadbalancers/1/1';
  const { tasks } = (await cloud.post(path, { name: 'a balancer', ...changes })).body;
  const created = (await cloud.get(`/cloud/v1/tasks/${tasks[0]}`)).body.created_resources;
  const [id] = created.loadbalancers;
  await reconcile(id);
  return { id, path: `${path}/${id}`, listeners: created.listeners ?? [], members: created.members ?? [] };
}

async function reconcile(id: string): Promise<void> {
  const reconciler = createLoadBalancerReconciler({
    ...cloud.services,
    driver: host,
    pemOf: cloud.services.secrets.pemOf,
  });
  await reconciler.reconcile(id, new AbortController().signal, () => {});
}

const pool = {
  name: 'a pool',
  protocol: 'TCP',
  lb_algorithm: 'ROUND_ROBIN',
  healthmonitor: { type: 'TCP', delay: 5, max_retries: 2, timeout: 3 },
  members: [
    { address: '10.0.0.1', protocol_port: 80 },
    { address: '10.0.0.2', protocol_port: 80 },
  ],
};
const served = { listeners: [{ name: 'web', protocol: 'TCP', protocol_port: 80, pools: [pool] }] };

/** The transaction that last wrote each row; it changes with every write. */
async function versionsOf(id: string): Promise<string[]> {
  const { rows } = await cloud.db.$client.query<{ version: string }>(
    `select 'lb ' || xmin as version from load_balancers where id = $1
     union all select 'listener ' || xmin from lb_listeners where load_balancer_id = $1
     union all select 'pool ' || xmin from lb_pools where load_balancer_id = $1
     union all select 'member ' || m.xmin from lb_members m join lb_pools p on p.id = m.pool_id where p.load_balancer_id = $1
     union all select 'counters ' || c.xmin from lb_listener_counters c join lb_listeners l on l.id = c.listener_id
       where l.load_balancer_id = $1
     order by 1`,
    [id],
  );
  return rows.map((row) => row.version);
}

describe('statuses', () => {
  it('show what the proxy reports for every part', async () => {
    const scan = createStatusRecorder({ db: cloud.db, driver: host, regionIds: [1] });
    const { id, path, listeners, members } = await createBalancer({ ...served, tags: { a: '1' } });
    host.health.set(members[1], 'DOWN');
    await scan();
    const tree = await cloud.get(`${path}/status`);
    const statuses = (operating_status: string) => ({ operating_status, provisioning_status: 'ACTIVE' });
    const member = (i: number, status: string) => ({
      id: members[i],
      address: `10.0.0.${i + 1}`,
      protocol_port: 80,
      ...statuses(status),
    });
    expect(tree.body).toEqual({
      id,
      name: 'a balancer',
      ...statuses('DEGRADED'),
      listeners: [
        {
          id: listeners[0],
          name: 'web',
          ...statuses('DEGRADED'),
          l7policies: [],
          pools: [
            {
              id: expect.any(String),
              name: 'a pool',
              ...statuses('DEGRADED'),
              health_monitor: { id: expect.any(String), type: 'TCP', ...statuses('ONLINE') },
              members: [member(0, 'ONLINE'), member(1, 'ERROR')],
            },
          ],
        },
      ],
      tags: [{ key: 'a', value: '1', read_only: false }],
    });
    const all = await cloud.get('/cloud/v1/loadbalancers/1/1/status');
    expect(all.body.results.find((status: any) => status.id === id)).toEqual(tree.body);
    expect(all.body.count).toBe(all.body.results.length);
    expect((await cloud.get(path)).body.operating_status).toBe('DEGRADED');
  });

  it('are written only when they change', async () => {
    const scan = createStatusRecorder({ db: cloud.db, driver: host, regionIds: [1] });
    const { id, path, members } = await createBalancer(served);
    await scan();
    const settled = await versionsOf(id);
    for (let i = 0; i < 100; i++) await scan();
    expect(await versionsOf(id)).toEqual(settled);
    host.health.set(members[0], 'DRAIN');
    await scan();
    const after = await versionsOf(id);
    expect(after.filter((version) => !settled.includes(version))).toEqual([expect.stringMatching(/^member /)]);
    await cloud.patch(path.replace('/v1/', '/v2/'), { admin_state_up: false });
    await reconcile(id);
    await scan();
    expect((await cloud.get(`${path}/status`)).body).toMatchObject({
      operating_status: 'OFFLINE',
      listeners: [{ operating_status: 'OFFLINE', pools: [{ operating_status: 'OFFLINE' }] }],
    });
  });

  it('are kept while the proxy is briefly unavailable, and become OFFLINE when it fails', async () => {
    const scan = createStatusRecorder({ db: cloud.db, driver: host, regionIds: [1] });
    const { path } = await createBalancer(idle);
    const status = async () => (await cloud.get(path)).body.operating_status;
    await scan();
    expect(await status()).toBe('ONLINE');
    host.answers = false;
    await scan();
    expect(await status()).toBe('ONLINE');
    await expect.poll(async () => (await scan(), await status()), { timeout: 30_000, interval: 100 }).toBe('OFFLINE');
    host.answers = true;
    await scan();
    expect(await status()).toBe('ONLINE');
  });
});

describe('traffic', () => {
  const recorder = () => createTrafficRecorder({ db: cloud.db, clock: cloud.clock, driver: host });
  const setCounters = (listenerId: string, counters: Partial<ListenerCounters>) =>
    host.traffic.set(listenerId, counters);
  const stats = async (path: string) => (await cloud.get(`${path}?show_stats=true`)).body.stats;

  it('is added up over processes of the proxy and workers', async () => {
    const { path, listeners } = await createBalancer({
      listeners: [...idle.listeners, { name: 'two', protocol: 'TCP', protocol_port: 81 }],
    });
    expect((await cloud.get(path)).body.stats).toBeNull();
    expect(await stats(path)).toEqual({
      active_connections: 0,
      bytes_in: 0,
      bytes_out: 0,
      request_errors: 0,
      total_connections: 0,
    });
    const first = recorder();
    setCounters(listeners[0], {
      activeConnections: 3,
      totalConnections: 10,
      bytesIn: 100,
      bytesOut: 1000,
      requestErrors: 1,
    });
    setCounters(listeners[1], { activeConnections: 1, totalConnections: 1, bytesIn: 5, bytesOut: 50 });
    await first();
    setCounters(listeners[0], {
      activeConnections: 2,
      totalConnections: 12,
      bytesIn: 150,
      bytesOut: 1500,
      requestErrors: 1,
    });
    await first();
    // Another worker, with the same proxy process.
    const second = recorder();
    await second();
    // Then the proxy restarts.
    setCounters(listeners[0], { activeConnections: 0, totalConnections: 1, bytesIn: 7, bytesOut: 70 });
    await second();
    expect(await stats(path)).toEqual({
      active_connections: 1,
      bytes_in: 162,
      bytes_out: 1620,
      request_errors: 1,
      total_connections: 14,
    });
    const listener = await cloud.get(`/cloud/v1/lblisteners/1/1/${listeners[0]}?show_stats=true`);
    expect(listener.body.stats).toMatchObject({ bytes_in: 157, total_connections: 13 });
    const list = (await cloud.get('/cloud/v1/loadbalancers/1/1?show_stats=true')).body.results;
    expect(list.find((balancer: any) => path.endsWith(balancer.id)).stats.bytes_in).toBe(162);
  });

  it('is not written while it is unchanged', async () => {
    const { id, listeners } = await createBalancer(idle);
    const scan = recorder();
    setCounters(listeners[0], { totalConnections: 1, bytesIn: 10, bytesOut: 10 });
    await scan();
    const settled = await versionsOf(id);
    for (let i = 0; i < 5; i++) await scan();
    expect(await versionsOf(id)).toEqual(settled);
    host.answers = false;
    await scan();
    host.answers = true;
    expect(await versionsOf(id)).toEqual(settled);
  });

  it('is returned as metrics by one minute, ten minutes and one hour', async () => {
    cloud.clock.set(new Date('2026-03-01T10:00:00Z'));
    const { id, path, listeners } = await createBalancer(idle);
    const scan = recorder();
    const metrics = async (time_interval: number, time_unit: string) =>
      (await cloud.post(`${path}/metrics`, { time_interval, time_unit })).body;
    expect(await metrics(1, 'hour')).toEqual({ count: 0, results: [] });
    let bytes = 0;
    const pass = async (at: string, more: number) => {
      cloud.clock.set(new Date(at));
      bytes += more;
      setCounters(listeners[0], { totalConnections: 1, bytesIn: bytes, bytesOut: bytes * 10 });
      await scan();
    };
    await pass('2026-03-01T10:00:30Z', 600);
    await pass('2026-03-01T10:02:10Z', 60);
    await pass('2026-03-01T10:02:50Z', 60);
    await pass('2026-03-01T10:03:10Z', 6000);
    // `ingress` is in bytes per second, the response in bits.
    const point = (time: string, ingress: number) => ({
      cpu_util: null,
      memory_util: null,
      network_Bps_egress: ingress * 10 * 8,
      network_Bps_ingress: ingress * 8,
      network_pps_egress: null,
      network_pps_ingress: null,
      time,
    });
    expect(await metrics(1, 'hour')).toEqual({
      count: 3,
      results: [point('2026-03-01T10:00:00Z', 10), point('2026-03-01T10:01:00Z', 0), point('2026-03-01T10:02:00Z', 2)],
    });
    cloud.clock.set(new Date('2026-03-01T12:00:00Z'));
    const day = await metrics(1, 'day');
    expect([day.count, day.results[0]]).toEqual([12, point('2026-03-01T10:00:00Z', 6720 / 600)]);
    const week = await metrics(7, 'day');
    expect([week.count, week.results[0]]).toEqual([2, point('2026-03-01T10:00:00Z', 6720 / 3600)]);
    cloud.clock.set(new Date('2026-03-09T10:00:00Z'));
    await removeOld(cloud.db, cloud.clock.now());
    expect((await metrics(30, 'day')).count).toBe(7 * 24);
    const { rows } = await cloud.db.$client.query('select from load_balancer_traffic where load_balancer_id = $1', [
      id,
    ]);
    expect(rows).toEqual([]);
    cloud.clock.set(null);
  });

  it('is returned as history of the load balancer and of each listener', async () => {
    cloud.clock.set(new Date('2026-03-01T10:00:00Z'));
    const { id, path, listeners } = await createBalancer({
      listeners: [...idle.listeners, { name: 'two', protocol: 'TCP', protocol_port: 81 }],
    });
    const scan = recorder();
    const history = async (query: string) =>
      (await cloud.get(`/cloudyard/v1/loadbalancers/1/1/${id}/traffic${query}`)).body;
    const pass = async (at: string, listener: number, counters: Partial<ListenerCounters>) => {
      cloud.clock.set(new Date(at));
      setCounters(listeners[listener], counters);
      await scan();
    };
    await pass('2026-03-01T10:00:10Z', 0, { activeConnections: 5, totalConnections: 5, requests: 20, serverErrors: 2 });
    await pass('2026-03-01T10:00:20Z', 1, { activeConnections: 1, totalConnections: 3, requestErrors: 1, bytesIn: 9 });
    await pass('2026-03-01T10:00:30Z', 0, { activeConnections: 2, totalConnections: 6, requests: 21, serverErrors: 2 });
    // Open connections count without other traffic.
    await pass('2026-03-01T10:01:30Z', 1, { activeConnections: 1, totalConnections: 3, requestErrors: 1, bytesIn: 9 });
    cloud.clock.set(new Date('2026-03-01T10:02:00Z'));
    const point = (time: string, counts: object) => ({
      ...{ time, requests: 0, connections: 0, open_connections: 0, bytes_in: 0, bytes_out: 0 },
      ...{ request_errors: 0, server_errors: 0 },
      ...counts,
    });
    const [first, second] = ['2026-03-01T10:00:00Z', '2026-03-01T10:01:00Z'];
    const all = { requests: 21, connections: 9, open_connections: 6, bytes_in: 9, request_errors: 1, server_errors: 2 };
    expect(await history('')).toEqual({
      count: 2,
      step_seconds: 60,
      results: [point(first, all), point(second, { open_connections: 3 })],
    });
    expect((await history(`?listener_id=${listeners[0]}`)).results).toEqual([
      point(first, { requests: 21, connections: 6, open_connections: 5, server_errors: 2 }),
      point(second, { open_connections: 2 }),
    ]);
    expect((await history('?hours=48')).step_seconds).toBe(600);
    const { body: other } = await cloud.get(`/cloudyard/v1/loadbalancers/1/1/${id}/traffic?listener_id=${id}`);
    expect(other.message).toContain('listener');
    expect((await cloud.get(`/cloudyard/v1/loadbalancers/1/1/${id}/traffic?hours=169`)).status).toBe(400);
    await cloud.delete(`/cloud/v1/lblisteners/1/1/${listeners[0]}`);
    await reconcile(id);
    expect((await history('')).results[0]).toEqual(point(first, all));
    expect((await cloud.get(path)).status).toBe(200);
    cloud.clock.set(null);
  });

  it('has no negative counts after a restart of the proxy that another counter hides', async () => {
    cloud.clock.set(new Date('2026-03-01T10:00:00Z'));
    const { id, listeners } = await createBalancer(idle);
    const scan = recorder();
    setCounters(listeners[0], { totalConnections: 5, requests: 20, serverErrors: 7 });
    await scan();
    setCounters(listeners[0], { totalConnections: 9, requests: 10, serverErrors: 8 });
    await scan();
    setCounters(listeners[0], { totalConnections: 9, requests: 10, serverErrors: 3 });
    await scan();
    cloud.clock.set(new Date('2026-03-01T10:01:00Z'));
    const { body } = await cloud.get(`/cloudyard/v1/loadbalancers/1/1/${id}/traffic`);
    expect(body.results).toMatchObject([{ connections: 14, requests: 30, server_errors: 18 }]);
    cloud.clock.set(null);
  });

  it('of an invalid time or unit is rejected', async () => {
    const { path } = await createBalancer(idle);
    for (const body of [
      {},
      { time_interval: 0, time_unit: 'hour' },
      { time_interval: 1, time_unit: 'week' },
      { time_interval: 8761, time_unit: 'hour' },
      { time_interval: '1', time_unit: 'hour' },
    ]) {
      expect((await cloud.post(`${path}/metrics`, body)).status).toBe(400);
    }
  });
});
