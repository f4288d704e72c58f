/** The life cycle of a load balancer on real HAProxy, over the API and with HTTP through its address. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['haproxy', 'root'] as const;
const balancers = '/cloud/v1/loadbalancers/1/1';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'load balancers over the API and HTTP', () => {
  let yard: Yard;
  let server: Running;
  let port: number;
  let address: string;
  let path: string;
  const members: Server[] = [];

  const member = async (name: string): Promise<number> => {
    const listening = createServer((_request, response) => void response.end(name));
    members.push(listening);
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    return (listening.address() as AddressInfo).port;
  };
  const end = (i: number) =>
    new Promise<unknown>((resolve) => {
      members[i]!.closeAllConnections();
      members[i]!.close(resolve);
    });
  const through = async () => (await fetch(`http://${address}:${port}/`, { headers: { connection: 'close' } })).text();
  const answers = async () => new Set(await Promise.all(Array.from({ length: 8 }, through)));
  const shown = async () => (await yard.get(path)).body;

  beforeAll(async () => {
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy',
    });
    server = await yard.start(['start']);
    port = await freePort();
  });
  afterAll(async () => {
    yard?.cleanUp();
    for (const listening of members) listening.close();
  });

  it('reports the driver of load balancers as real', async () => {
    expect(server.stdout()).toMatch(/load balancers +haproxy +real +load balancers by HAProxy/);
    expect((await yard.get('/healthz/drivers')).body.drivers).toMatchObject([
      { driver: 'simulated' },
      { driver: 'haproxy', real: true, healthy: true },
      { driver: 'simulated' },
      { driver: 'simulated' },
      { driver: 'simulated', real: false, region_ids: [] },
      { driver: 'webhook', real: true, healthy: true, region_ids: [] },
    ]);
  });

  it('balances traffic when its create task has finished', async () => {
    const monitor = { type: 'HTTP', delay: 2, timeout: 1, max_retries: 1, max_retries_down: 1, url_path: '/' };
    const pool = {
      name: 'a pool',
      protocol: 'HTTP',
      lb_algorithm: 'ROUND_ROBIN',
      healthmonitor: monitor,
      members: [
        { address: '127.0.0.1', protocol_port: await member('one') },
        { address: '127.0.0.1', protocol_port: await member('two') },
      ],
    };
    const listeners = [{ name: 'web', protocol: 'HTTP', protocol_port: port, pools: [pool] }];
    const task = await yard.ended(await yard.post(balancers, { name: 'a balancer', listeners }));
    expect(task).toMatchObject({ state: 'FINISHED', task_type: 'create_loadbalancer', error: null });
    path = `${balancers}/${task.created_resources.loadbalancers[0]}`;
    address = (await shown()).vip_address;
    expect(address).toMatch(/^127\.64\./);
    expect(await answers()).toEqual(new Set(['one', 'two']));
    await until(async () => (await shown()).operating_status === 'ONLINE', 5, 'online');
  });

  it('names a port that another program has on its task, and listens when the port is free', async () => {
    const stranger = createServer();
    const busy = await freePort();
    await new Promise<void>((resolve) => stranger.listen(busy, address, resolve));
    const listener = { name: 'busy', load_balancer_id: path.split('/').at(-1), protocol: 'TCP', protocol_port: busy };
    const { tasks } = (await yard.post('/cloud/v1/lblisteners/1/1', listener)).body;
    const task = async () => (await yard.get(`/cloud/v1/tasks/${tasks[0]}`)).body;
    await until(async () => (await task()).data?.last_error !== undefined, 30, 'the error');
    expect(await task()).toMatchObject({
      state: 'RUNNING',
      data: { last_error: `another program of the host uses port ${busy}` },
    });
    await new Promise((resolve) => stranger.close(resolve));
    expect((await yard.get(`/cloud/v1/tasks/${tasks[0]}?wait=60`)).body).toMatchObject({ state: 'FINISHED' });
    const { id } = (await yard.get('/cloud/v1/lblisteners/1/1')).body.results.find((each: any) => each.name === 'busy');
    expect((await yard.ended(await yard.delete(`/cloud/v1/lblisteners/1/1/${id}`))).state).toBe('FINISHED');
  });

  it('shows a failed member within two seconds of its health check, and counts traffic', async () => {
    await end(1);
    await until(async () => (await shown()).operating_status === 'DEGRADED', 4, 'degraded');
    expect(await answers()).toEqual(new Set(['one']));
    const tree = (await yard.get(`${path}/status`)).body;
    const statuses = tree.listeners[0].pools[0].members.map((part: any) => part.operating_status);
    expect(statuses).toEqual(['ONLINE', 'ERROR']);
    const stats = async () => (await yard.get(`${path}?show_stats=true`)).body.stats;
    await until(async () => (await stats()).total_connections >= 16, 15, 'counted');
    expect((await stats()).bytes_out).toBeGreaterThan(16 * 'one'.length);
  });

  it('can be disabled and enabled', async () => {
    const patch = async (up: boolean) =>
      yard.ended(await yard.patch(path.replace('/v1/', '/v2/'), { admin_state_up: up }));
    expect((await patch(false)).state).toBe('FINISHED');
    await expect(through()).rejects.toThrow();
    await until(async () => (await shown()).operating_status === 'OFFLINE', 4, 'offline');
    expect((await patch(true)).state).toBe('FINISHED');
    expect(await through()).toBe('one');
  });

  it('keeps serving while the server is killed and restarted', async () => {
    const killed = server.kill();
    expect(await through()).toBe('one');
    await killed;
    expect(await through()).toBe('one');
    server = await yard.start(['start']);
    expect(await through()).toBe('one');
    expect((await yard.ended(await yard.post(`${path}/failover`, {}))).state).toBe('FINISHED');
    expect(await through()).toBe('one');
  });

  it('is removed when its delete task has finished', async () => {
    expect((await yard.ended(await yard.delete(path))).state).toBe('FINISHED');
    expect((await yard.get(path)).status).toBe(404);
    await expect(through()).rejects.toThrow();
  });

  it('is not served by a start with the simulated driver and is served again by the next start', async () => {
    const pool = {
      name: 'a pool',
      protocol: 'HTTP',
      lb_algorithm: 'ROUND_ROBIN',
      members: [{ address: '127.0.0.1', protocol_port: await member('three') }],
    };
    const listeners = [{ name: 'web', protocol: 'HTTP', protocol_port: port, pools: [pool] }];
    const task = await yard.ended(await yard.post(balancers, { name: 'a balancer', listeners }));
    address = (await yard.get(`${balancers}/${task.created_resources.loadbalancers[0]}`)).body.vip_address;
    expect(await through()).toBe('three');
    expect((await server.stop()).code).toBe(0);
    await expect(through()).rejects.toThrow();
    const simulated = await yard.start(['start'], { CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated' });
    expect(simulated.stdout()).toMatch(/load balancers +simulated +SIMULATED/);
    await expect(through()).rejects.toThrow();
    expect((await simulated.stop()).code).toBe(0);
    await yard.start(['start']);
    expect(await through()).toBe('three');
  });
});
