import { describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { terminal } from '../../../test/drivers.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { balancers, builders, paths, v2 as asV2 } from './test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer: create } = builders(cloud);
const v2 = (id: string) => asV2(`${balancers}/${id}`);
const usage = async () => (await cloud.get('/cloud/v2/regional_quotas/1/1')).body.loadbalancer_count_usage as number;
const get = async (id: string) => (await cloud.get(`${balancers}/${id}`)).body;
const aBalancer = async (body: object = {}) => get(await create(body));

const member = { address: '10.0.0.1', protocol_port: 8080 };
const pool = { name: 'web pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [member] };
const nested = [
  { name: 'web', protocol: 'HTTP', protocol_port: 80, pools: [pool] },
  { name: 'other', protocol: 'TCP', protocol_port: 5432 },
];

describe('updating a load balancer', () => {
  it('v2 returns a finished task for changes of the row, and no task without a change', async () => {
    const { id } = await aBalancer({ tags: { keep: '1', drop: '1' } });
    const applied = host.log.length;
    expect((await cloud.patch(v2(id), {})).body).toEqual({ tasks: [] });
    expect((await cloud.patch(v2(id), { name: 'a balancer', admin_state_up: true })).body).toEqual({ tasks: [] });
    const logging = { enabled: true, topic_name: 'logs' };
    const answer = await cloud.patch(v2(id), { name: 'renamed', logging, tags: { drop: null, add: '2' } });
    const task = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'update_loadbalancer' });
    const after = await get(id);
    expect(after).toMatchObject({ name: 'renamed', logging: { ...logging, retention_policy: null } });
    expect(after.tags_v2.map((tag: any) => tag.key)).toEqual(['add', 'keep']);
    expect((await cloud.patch(v2(id), { logging })).body).toEqual({ tasks: [] });
    expect(host.log).toHaveLength(applied);
  });

  it('v2 disables and enables it on the host', async () => {
    const { id } = await aBalancer();
    const off = await cloud.ended(await cloud.patch(v2(id), { admin_state_up: false }));
    expect(off.body).toMatchObject({ state: 'FINISHED', task_type: 'update_loadbalancer' });
    expect(host.balancers.get(id)!.enabled).toBe(false);
    expect(await get(id)).toMatchObject({ admin_state_up: false, provisioning_status: 'ACTIVE', task_id: null });
    await expect.poll(async () => (await get(id)).operating_status).toBe('OFFLINE');
    await cloud.ended(await cloud.patch(v2(id), { admin_state_up: true }));
    expect(host.balancers.get(id)!.enabled).toBe(true);
  });

  it('v2 repeats a change that the host rejected', async () => {
    const { id } = await aBalancer();
    host.trouble(() => ({ error: terminal(), done: false }));
    const failed = await cloud.ended(await cloud.patch(v2(id), { admin_state_up: false }));
    host.trouble();
    expect(failed.body.state).toBe('ERROR');
    expect(await get(id)).toMatchObject({ admin_state_up: false, provisioning_status: 'ERROR' });
    expect(host.balancers.get(id)!.enabled).toBe(true);
    const again = await cloud.ended(await cloud.patch(v2(id), { admin_state_up: false }));
    expect(again.body.state).toBe('FINISHED');
    expect(host.balancers.get(id)!.enabled).toBe(false);
    expect((await cloud.patch(v2(id), { admin_state_up: false })).body).toEqual({ tasks: [] });
  });

  it('v1 returns the load balancer', async () => {
    const { id } = await aBalancer();
    const answer = await cloud.patch(`${balancers}/${id}`, { name: 'renamed', tags: { a: '1' } });
    expect(answer).toMatchObject({ status: 200, body: { id, name: 'renamed', tags_v2: [{ key: 'a' }] } });
    expect(answer.headers['deprecation']).toBe('true');
    const refused = await cloud.patch(`${balancers}/${id}`, { name: null, admin_state_up: false });
    expect([refused.status, new Set(paths(refused))]).toEqual([400, new Set(['name', 'admin_state_up'])]);
  });

  it('is rejected during a task, which the error names, for upper-case and lower-case ids', async () => {
    const { id } = await aBalancer();
    const release = host.hold();
    const failover = (await cloud.post(`${balancers}/${id}/failover`, {})).body.tasks[0];
    expect(await get(id)).toMatchObject({ task_id: failover, provisioning_status: 'PENDING_UPDATE' });
    for (const spelled of [id, id.toUpperCase()]) {
      const answers = [
        await cloud.patch(v2(spelled), { name: 'renamed' }),
        await cloud.post(`${v2(spelled)}/metadata`, { a: '1' }),
        await cloud.post(`${balancers}/${spelled}/resize`, { flavor: 'lb1-2-4' }),
        await cloud.delete(`${balancers}/${spelled}`),
      ];
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
        expect(answer.body.message).toContain(failover);
      }
    }
    release();
    expect((await cloud.get(`/cloud/v1/tasks/${failover}?wait=20`)).body.state).toBe('FINISHED');
    expect((await cloud.patch(v2(id), { name: 'renamed' })).status).toBe(200);
  });
});

describe('resize, failover, delete', () => {
  it('resize changes the flavor', async () => {
    const { id } = await aBalancer();
    expect((await cloud.post(`${balancers}/${id}/resize`, { flavor: 'lb1-1-2' })).body).toEqual({ tasks: [] });
    const task = await cloud.ended(await cloud.post(`${balancers}/${id}/resize`, { flavor: 'lb1-4-8' }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'resize_loadbalancer' });
    expect((await get(id)).flavor).toEqual({ flavor_id: 'lb1-4-8', flavor_name: 'lb1-4-8', vcpus: 4, ram: 8192 });
    const unknown = await cloud.post(`${balancers}/${id}/resize`, { flavor: 'huge' });
    expect([unknown.status, paths(unknown)]).toEqual([400, ['flavor']]);
  });

  it('failover repairs the host', async () => {
    const { id } = await aBalancer();
    await cloud.ended(await cloud.post(`${balancers}/${id}/failover`));
    host.balancers.delete(id);
    const task = await cloud.ended(await cloud.post(`${balancers}/${id}/failover`, { force: true }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'failover_loadbalancer' });
    expect(host.balancers.has(id)).toBe(true);
  });

  it('delete removes all parts and releases quota and address', async () => {
    const before = await usage();
    const { id, listeners } = await aBalancer({ listeners: nested });
    const network = (await cloud.get('/cloud/v1/networks/1/1')).body.results[0].id;
    const inUse = await cloud.delete(`/cloud/v1/networks/1/1/${network}`);
    expect(inUse).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(inUse.body.message).toMatch(/load balancer/);
    const task = await cloud.ended(await cloud.delete(`${balancers}/${id}`));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_loadbalancer' });
    expect((await cloud.get(`${balancers}/${id}`)).status).toBe(404);
    expect((await cloud.delete(`${balancers}/${id}`)).status).toBe(404);
    expect((await cloud.get(`/cloud/v1/lblisteners/1/1/${listeners[0].id}`)).status).toBe(404);
    expect(host.balancers.has(id)).toBe(false);
    expect(await usage()).toBe(before);
  });

  it('blocks the deletion of its project', async () => {
    const { projectId, token } = await cloud.newClient();
    const made = (await cloud.post('/cloud/v1/projects', { name: 'a project' }, { token })).body.id;
    expect(made).not.toBe(projectId);
    const path = `/cloud/v1/loadbalancers/${made}/1`;
    await cloud.ended(await cloud.post(`/cloud/v1/networks/${made}/1`, { name: 'a network' }, { token }), { token });
    const [network] = (await cloud.get(`/cloud/v1/networks/${made}/1`, { token })).body.results;
    const subnet = { name: 'a subnet', network_id: network.id, cidr: '10.1.0.0/24' };
    await cloud.ended(await cloud.post(`/cloud/v1/subnets/${made}/1`, subnet, { token }), { token });
    await cloud.ended(await cloud.post(path, { name: 'a balancer' }, { token }), { token });
    const refused = await cloud.delete(`/cloud/v1/projects/${made}`, { token });
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toMatch(/1 load balancer \(/);
    const bySubnet = await cloud.delete(`/cloud/v1/subnets/${made}/1/${await subnetOf(made, token)}`, { token });
    expect(bySubnet.body.message).toMatch(/1 load balancer \(/);
  });

  const subnetOf = async (project: number, token: string) =>
    (await cloud.get(`/cloud/v1/subnets/${project}/1`, { token })).body.results[0].id as string;
});

describe('metadata of a load balancer', () => {
  const keys = (balancer: Record<string, any>) => balancer['tags_v2'].map((tag: any) => `${tag.key}=${tag.value}`);

  it('v2 returns a finished task, and no task without a change', async () => {
    const { id } = await aBalancer({ tags: { a: '1' } });
    const path = `${v2(id)}/metadata`;
    const finished = async (answer: Answer, task_type: string) => {
      const { body } = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`);
      expect(body).toMatchObject({ state: 'FINISHED', task_type });
    };
    await finished(await cloud.post(path, { b: '2', 'any key at all': '', ['__proto__']: 'x' }), 'update_lbmetadata');
    expect(keys(await get(id))).toEqual(['__proto__=x', 'a=1', 'any key at all=', 'b=2']);
    expect((await cloud.post(path, { b: '2' })).body).toEqual({ tasks: [] });
    await finished(await cloud.request('PUT', path, { c: '3' }), 'replace_lbmetadata');
    expect(keys(await get(id))).toEqual(['c=3']);
    expect((await cloud.request('PUT', path, { c: '3' })).body).toEqual({ tasks: [] });
    expect((await cloud.delete(`${path}_item?key=a`)).status).toBe(404);
    expect((await cloud.delete(`${path}_item`)).body).toEqual({ tasks: [] });
    await finished(await cloud.delete(`${path}_item?key=c`), 'delete_lbmetadata');
    expect(keys(await get(id))).toEqual([]);
  });

  it('v1 returns the tags, or nothing', async () => {
    const { id } = await aBalancer({ tags: { a: '1' } });
    const path = `${balancers}/${id}/metadata`;
    expect((await cloud.post(path, { b: '2' })).status).toBe(204);
    expect((await cloud.get(path)).body).toEqual({
      count: 2,
      results: [
        { key: 'a', value: '1', read_only: false },
        { key: 'b', value: '2', read_only: false },
      ],
    });
    expect((await cloud.request('PUT', path, { c: '3', d: null })).status).toBe(204);
    expect((await cloud.get(`${path}_item?key=c`)).body).toEqual({ key: 'c', value: '3', read_only: false });
    expect((await cloud.get(`${path}_item?key=a`)).status).toBe(404);
    expect((await cloud.get(`${path}_item`)).status).toBe(400);
    expect((await cloud.delete(`${path}_item?key=c`)).status).toBe(204);
    expect((await cloud.delete(`${path}_item?key=c`)).status).toBe(404);
    const options = { headers: { 'idempotency-key': 'v1 metadata' } };
    const twice = [await cloud.post(path, { e: '5' }, options), await cloud.post(path, { e: '5' }, options)];
    expect(twice.map(({ status, body }) => [status, body])).toEqual([
      [204, ''],
      [204, ''],
    ]);
  });

  it('takes any key and value, which an update of the load balancer does not', async () => {
    const { id } = await aBalancer();
    const odd = { 'a key = odd': '', ' padded ': ' x ' };
    for (const path of [`${v2(id)}/metadata`, `${balancers}/${id}/metadata`]) {
      expect((await cloud.post(path, odd)).status).toBeLessThan(300);
    }
    expect(keys(await get(id))).toEqual([' padded = x ', 'a key = odd=']);
    expect((await cloud.patch(v2(id), { tags: odd })).status).toBe(400);
    expect(await cloud.delete(`${balancers}/${id}/metadata_item?key=a%20key%20%3D%20odd`)).toMatchObject({
      status: 204,
    });
    expect(keys(await get(id))).toEqual([' padded = x ']);
  });

  it('rejects read-only, reserved, invalid and too many tags', async () => {
    const { id } = await aBalancer();
    const tags = { fixed: { value: '1', read_only: true }, mine: { value: '1', read_only: false } };
    await cloud.db.$client.query('update load_balancers set tags = $2 where id = $1', [id, tags]);
    const many = Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`k${i}`, 'v']));
    const cases: [object, string[]][] = [
      [{ fixed: '2', other: '2' }, ['fixed']],
      [{ 'cloudyard:x': '1', fixed: '1' }, ['cloudyard:x', 'fixed']],
      [{ a: 1 }, ['a']],
      [{ a: null }, ['a']],
      [{ a: { b: 'c' } }, ['a']],
      [{ '': 'x' }, ['']],
      [{ ['k'.repeat(256)]: 'v' }, ['k'.repeat(256)]],
      [{ a: 'v'.repeat(256) }, ['a']],
      [many, ['']],
    ];
    for (const [body, fields] of cases) {
      for (const path of [`${v2(id)}/metadata`, `${balancers}/${id}/metadata`]) {
        const answer = await cloud.post(path, body);
        expect([answer.status, paths(answer)]).toEqual([400, fields]);
      }
    }
    const refused = await cloud.delete(`${v2(id)}/metadata_item?key=fixed`);
    expect(refused.status).toBe(400);
    await cloud.request('PUT', `${v2(id)}/metadata`, {});
    expect(keys(await get(id))).toEqual(['fixed=1']);
  });
});
