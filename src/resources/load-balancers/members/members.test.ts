/** Members and monitors as resources, for newer clients. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import { balancers, builders, member, monitor, paths, pools, unknownId } from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aPool, created, getPool } = builders(cloud);
const of = (pool: string) => `${balancers}/pools/${pool}/members`;
const onHost = (balancer: string, id: string) => host.balancers.get(balancer)!.pools.find((pool) => pool.id === id)!;

let balancer: string;
beforeAll(async () => {
  balancer = await aBalancer();
});

describe('a member', () => {
  it('is added, shown as in its pool, and removed', async () => {
    const pool = await aPool({ load_balancer_id: balancer });
    const id = await created(await cloud.post(of(pool), member(1, { weight: 3 })), 'members');
    const shown = (await cloud.get(`${of(pool)}/${id.toUpperCase()}`)).body;
    expect(shown).toEqual((await getPool(pool))['members'][0]);
    expect(shown).toMatchObject({ id, weight: 3, provisioning_status: 'ACTIVE' });
    expect((await cloud.ended(await cloud.delete(`${of(pool)}/${id}`))).body.state).toBe('FINISHED');
    for (const answer of [await cloud.get(`${of(pool)}/${id}`), await cloud.delete(`${of(pool)}/${id}`)]) {
      expect(answer.status).toBe(404);
    }
  });

  it('is updated: absent fields are kept, null removes, and an update without changes returns no task', async () => {
    const pool = await aPool({
      load_balancer_id: balancer,
      members: [member(1, { monitor_port: 81 }), member(2)],
    });
    const [{ id }, other] = (await getPool(pool))['members'];
    const change = (body: unknown) => cloud.patch(`${of(pool)}/${id}`, body);
    const task = await cloud.ended(await change({ weight: 9, monitor_address: '::ffff:10.9.9.9' }));
    expect(task.body).toMatchObject({ task_type: 'update_lbmember', created_resources: { members: [id] } });
    const changed = { id, weight: 9, monitor_address: '10.9.9.9', monitor_port: 81 };
    await expect.poll(async () => (await getPool(pool))['members']).toMatchObject([changed, { id: other.id }]);
    expect(onHost(balancer, pool).members[0]).toMatchObject({ weight: 9, monitorAddress: '10.9.9.9' });
    expect((await change({ weight: 9 })).body).toEqual({ tasks: [] });
    expect((await change({})).body).toEqual({ tasks: [] });
    await cloud.ended(await change({ monitor_address: null, monitor_port: null }));
    expect((await getPool(pool))['members'][0]).toMatchObject({ monitor_address: null, monitor_port: null });
    const refused = await change({ weight: 0, backup: 'no', address: '10.0.0.9', monitor_port: 0 });
    expect([refused.status, paths(refused).sort()]).toEqual([400, ['address', 'backup', 'monitor_port', 'weight']]);
    expect(paths(await change({ monitor_address: '0.0.0.0' }))).toEqual(['monitor_address']);
    expect((await cloud.patch(`${of(pool)}/${unknownId}`, {})).status).toBe(404);
  });
});

describe('a member of a pool without a monitor', () => {
  const statuses = async (pool: string) =>
    (await getPool(pool))['members'].map((each: { operating_status: string }) => each.operating_status);
  const list = [member(1), member(2, { admin_state_up: false })];

  it('is NO_MONITOR from the first read, unless it is disabled', async () => {
    const body = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', load_balancer_id: balancer };
    const answer = await cloud.post(pools, { ...body, members: list });
    const [task] = (await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`)).body.created_resources.pools;
    expect(await statuses(task)).toEqual(['NO_MONITOR', 'OFFLINE']);
    await cloud.ended(answer);
    await cloud.ended(await cloud.post(of(task), member(3)));
    expect(await statuses(task)).toEqual(['NO_MONITOR', 'OFFLINE', 'NO_MONITOR']);
  });

  it('is OFFLINE at first where a monitor checks it', async () => {
    const pool = await aPool({ load_balancer_id: await aBalancer(), members: list, healthmonitor: monitor() });
    expect((await statuses(pool))[1]).toBe('OFFLINE');
    expect(await statuses(pool)).not.toContain('NO_MONITOR');
  });
});

describe('a health monitor', () => {
  it('is overwritten whole, its type included, by another one', async () => {
    const body = monitor({ type: 'HTTP', url_path: '/a', expected_codes: '200,300-302', max_retries_down: 7 });
    const pool = await aPool({ load_balancer_id: balancer, healthmonitor: body });
    const { id } = (await getPool(pool))['healthmonitor'];
    for (const replace of [
      () => cloud.patch(`${pools.replace('v1', 'v2')}/${pool}`, { healthmonitor: monitor({ type: 'TCP' }) }),
      () => cloud.post(`${pools}/${pool}/healthmonitor`, monitor({ type: 'HTTPS', timeout: 3 })),
    ]) {
      const task = await cloud.ended(await replace());
      expect(task.body).toMatchObject({ state: 'FINISHED' });
      expect((await getPool(pool))['healthmonitor']).toMatchObject({ id, max_retries_down: 3 });
      expect(onHost(balancer, pool).monitor).toMatchObject({ urlPath: null, expectedCodes: null });
    }
    expect((await getPool(pool))['healthmonitor']).toMatchObject({ type: 'HTTPS', timeout: 3 });
    expect(onHost(balancer, pool).monitor).toMatchObject({ type: 'HTTPS', timeout: 3000, urlPath: null });
  });

  it('is shown and updated: absent fields are kept, null removes, and an update without changes returns no task', async () => {
    const body = monitor({ type: 'HTTP', url_path: '/a', domain_name: 'a.example', admin_state_up: false });
    const pool = await aPool({ load_balancer_id: balancer, healthmonitor: body });
    const path = `${pools}/${pool}/healthmonitor`;
    const { id } = (await cloud.get(path)).body;
    expect((await cloud.get(path)).body).toEqual((await getPool(pool))['healthmonitor']);
    const task = await cloud.ended(await cloud.patch(path, { delay: 20, url_path: null }));
    expect(task.body).toMatchObject({ state: 'FINISHED', created_resources: { healthmonitors: [id] } });
    const changed = { ...body, id, delay: 20, url_path: '/' };
    expect((await cloud.get(path)).body).toMatchObject(changed);
    expect(onHost(balancer, pool).monitor).toMatchObject({ delay: 20_000, urlPath: null, enabled: false });
    expect((await cloud.patch(path, { delay: 20 })).body).toEqual({ tasks: [] });
    const refused = await cloud.patch(path, { type: 'SCTP', delay: 0 });
    expect([refused.status, paths(refused).sort()]).toEqual([400, ['delay', 'type']]);
    expect(paths(await cloud.patch(path, { timeout: 21 }))).toEqual(['timeout']);
    // A TCP check has no domain name.
    expect(paths(await cloud.patch(path, { type: 'TCP' }))).toEqual(['domain_name']);
    expect((await cloud.patch(path, { type: null })).body).toEqual({ tasks: [] });
    await cloud.ended(await cloud.patch(path, { type: 'TCP', domain_name: null }));
    expect((await cloud.get(path)).body).toMatchObject({ ...changed, type: 'TCP', domain_name: null, url_path: null });
    expect(onHost(balancer, pool).monitor).toMatchObject({ type: 'TCP' });
    expect((await cloud.delete(path)).status).toBe(204);
    expect(onHost(balancer, pool).monitor).toBeNull();
    expect((await getPool(pool))['task_id']).toBeNull();
    for (const answer of [await cloud.get(path), await cloud.patch(path, {})]) expect(answer.status).toBe(404);
  });
});

describe('a health monitor that sends requests', () => {
  const defaults = { http_method: 'GET', url_path: '/', expected_codes: '200' };
  const none = { http_method: null, url_path: null, expected_codes: null };

  it.each(['HTTP', 'HTTPS', 'K8S'])('shows the defaults of its requests, which change nothing: %s', async (type) => {
    const pool = await aPool({ load_balancer_id: balancer, healthmonitor: monitor({ type }) });
    expect((await getPool(pool))['healthmonitor']).toMatchObject(defaults);
    const path = `${pools}/${pool}/healthmonitor`;
    expect((await cloud.patch(path, defaults)).body).toEqual({ tasks: [] });
    expect((await cloud.patch(path, none)).body).toEqual({ tasks: [] });
    await cloud.ended(await cloud.patch(path, { expected_codes: '204' }));
    expect((await cloud.get(path)).body).toMatchObject({ ...defaults, expected_codes: '204' });
    await cloud.ended(await cloud.patch(path, { type: 'TCP', expected_codes: null }));
    expect((await cloud.get(path)).body).toMatchObject({ type: 'TCP', ...none });
  });

  it('becomes one of TCP by what a client read, with another type', async () => {
    const pool = await aPool({ load_balancer_id: balancer, healthmonitor: monitor({ type: 'HTTP' }) });
    const path = `${pools}/${pool}/healthmonitor`;
    const read = (await cloud.get(path)).body;
    await cloud.ended(await cloud.patch(path, { ...read, type: 'TCP' }));
    expect((await cloud.get(path)).body).toMatchObject({ id: read.id, type: 'TCP', ...none });
    await cloud.ended(await cloud.patch(`${pools.replace('v1', 'v2')}/${pool}`, { healthmonitor: read }));
    expect((await cloud.get(path)).body).toMatchObject(defaults);
    await cloud.ended(await cloud.post(path, { ...read, type: 'PING' }));
    expect((await cloud.get(path)).body).toMatchObject({ type: 'PING', ...none });
  });

  it('of an earlier version, which stored the defaults, has them unset', async () => {
    const pool = await aPool({ load_balancer_id: balancer, healthmonitor: monitor({ type: 'HTTP' }) });
    await cloud.db.$client.query('update lb_pools set health_monitor = health_monitor || $1 where id = $2', [
      defaults,
      pool,
    ]);
    const path = `${pools}/${pool}/healthmonitor`;
    const read = (await cloud.get(path)).body;
    for (const same of [defaults, none, read, {}]) {
      expect((await cloud.patch(path, same)).body).toEqual({ tasks: [] });
    }
    const pathOfPool = `${pools.replace('v1', 'v2')}/${pool}`;
    expect((await cloud.patch(pathOfPool, { healthmonitor: read })).body).toEqual({ tasks: [] });
    await cloud.ended(await cloud.patch(path, { type: 'TCP' }));
    expect((await cloud.get(path)).body).toMatchObject({ type: 'TCP', ...none });
  });
});

describe('the members of a pool', () => {
  it('are listed by address, or in the requested order', async () => {
    const pool = await aPool({ load_balancer_id: balancer, members: [member(2), member(1), member(3)] });
    const list = async (query = '') => (await cloud.get(`${of(pool)}${query}`)).body;
    const addresses = async (query = '') =>
      (await list(query)).results.map((each: { address: string }) => each.address);
    const [one, two, three] = [1, 2, 3].map((n) => member(n)['address']);
    expect(await addresses()).toEqual([one, two, three]);
    expect(await addresses('?order_by=address.desc')).toEqual([three, two, one]);
    expect(await addresses('?order_by=created_at.asc')).toEqual([two, one, three]);
    expect(await list('?limit=1&offset=1')).toMatchObject({ count: 3, results: [{ address: two }] });
    expect((await cloud.get(`${of(pool)}?order_by=weight`)).status).toBe(400);
    expect((await cloud.get(of(unknownId))).status).toBe(404);
  });

  it('are replaced as a list, and members in both lists are kept', async () => {
    const pool = await aPool({ load_balancer_id: balancer, members: [member(1), member(2)] });
    const [, kept] = (await getPool(pool))['members'];
    await cloud.ended(await cloud.request('PUT', of(pool), [member(3), member(2)]));
    expect((await getPool(pool))['members']).toMatchObject([member(3), { id: kept.id }]);
    expect((await cloud.request('PUT', of(pool), [member(3), member(2)])).body).toEqual({ tasks: [] });
    expect((await cloud.request('PUT', of(pool), [member(3), member(3)])).status).toBe(400);
    await cloud.ended(await cloud.request('PUT', of(pool), []));
    expect(onHost(balancer, pool).members).toEqual([]);
  });

  it('use their subnets, which cannot be deleted', async () => {
    const subnets = '/cloud/v1/subnets/1/1';
    const { id: network_id } = (await cloud.get('/cloud/v1/networks/1/1')).body.results[0];
    const subnet = await created(
      await cloud.post(subnets, { name: 'lan', network_id, cidr: '10.78.0.0/24' }),
      'subnets',
    );
    const pool = await aPool({ load_balancer_id: balancer, members: [member(1, { subnet_id: subnet })] });
    const refused = await cloud.delete(`${subnets}/${subnet}`);
    expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining('1 pool member (') } });
    await cloud.ended(await cloud.request('PUT', of(pool), []));
    expect((await cloud.delete(`${subnets}/${subnet}`)).status).toBe(200);
  });

  it('are listed by the numbers of their addresses', async () => {
    const addresses = ['10.0.0.9', '2001:db8::1', '10.0.0.100', '10.0.0.10'];
    const pool = await aPool({
      load_balancer_id: balancer,
      members: addresses.map((address) => member(1, { address })),
    });
    const listed = (await cloud.get(of(pool))).body.results.map((each: { address: string }) => each.address);
    expect(listed).toEqual(['10.0.0.9', '10.0.0.10', '10.0.0.100', '2001:db8::1']);
  });
});
