/** L7 policies and their rules: requests, positions, statuses, and what the host is asked to serve. */
import { describe, expect, it } from 'vitest';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import { DriverError } from '../../../errors/driver-error.ts';
import { useCloudyard } from '../../../../test/harness.ts';
import { balancers, builders, listeners, pools, unknownId } from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aListener, aPool, created } = builders(cloud);
const policies = '/cloud/v1/l7policies/1/1';

const aPolicy = async (listener_id: string, body: object = {}) =>
  created(await cloud.post(policies, { action: 'REJECT', listener_id, ...body }), 'l7polices');
const rule = { type: 'PATH', compare_type: 'STARTS_WITH', value: '/api' };
const aRule = async (policy: string, body: object = {}) =>
  created(await cloud.post(`${policies}/${policy}/rules`, { ...rule, ...body }), 'l7rules');
const getPolicy = async (id: string) => (await cloud.get(`${policies}/${id}`)).body;
const finished = async (answer: Parameters<typeof cloud.ended>[0]) =>
  expect((await cloud.ended(answer)).body).toMatchObject({ state: 'FINISHED', error: null });

async function setUp(more: object = {}) {
  const balancer = await aBalancer();
  return { balancer, listener: await aListener(balancer, more) };
}

/** The names of the policies of a listener by position, and the positions. */
async function order(listener: string): Promise<[string, number[]]> {
  const { results } = (await cloud.get(policies)).body;
  const own = results.filter((policy: any) => policy.listener_id === listener);
  own.sort((a: any, b: any) => a.position - b.position);
  return [own.map(({ name }: any) => name[0]).join(''), own.map(({ position }: any) => position)];
}

describe('a policy', () => {
  it('is created, read, changed and deleted', async () => {
    const { listener, balancer } = await setUp();
    const body = {
      action: 'REDIRECT_TO_URL',
      redirect_url: 'https://example.com/x',
      name: 'to example',
      tags: ['b', 'a'],
    };
    const id = await aPolicy(listener, body);
    expect(await getPolicy(id)).toEqual({
      id,
      action: 'REDIRECT_TO_URL',
      listener_id: listener,
      name: 'to example',
      operating_status: expect.any(String),
      position: 1,
      project_id: 1,
      provisioning_status: 'ACTIVE',
      redirect_http_code: 302,
      redirect_pool_id: null,
      redirect_prefix: null,
      redirect_url: 'https://example.com/x',
      region: 'local',
      region_id: 1,
      rules: [],
      tags: ['b', 'a'],
      task_id: null,
    });
    const ruleId = await aRule(id, { invert: true, tags: ['x'] });
    const change = { action: 'REDIRECT_PREFIX', redirect_prefix: 'https://example.com', redirect_http_code: 308 };
    await finished(await cloud.patch(`${policies}/${id}`, change));
    expect(await getPolicy(id)).toMatchObject({
      ...{
        action: 'REDIRECT_PREFIX',
        redirect_prefix: 'https://example.com',
        redirect_http_code: 308,
        redirect_url: null,
      },
      rules: [{ id: ruleId, project_id: 1, region: 'local', region_id: 1 }],
      name: 'to example',
    });
    expect(host.balancers.get(balancer)!.listeners[0]!.l7Policies).toMatchObject([
      { id, redirectPrefix: 'https://example.com', rules: [{ id: ruleId, value: '/api', invert: true }] },
    ]);
    const elsewhere = { action: 'REDIRECT_PREFIX', redirect_prefix: 'https://example.org' };
    await finished(await cloud.patch(`${policies}/${id}`, elsewhere));
    expect(await getPolicy(id)).toMatchObject({ ...elsewhere, redirect_http_code: 308 });
    // Older official clients send PUT.
    await finished(await cloud.request('PUT', `${policies}/${id}`, { action: 'REJECT' }));
    const kept = { name: 'to example', tags: ['b', 'a'] };
    expect(await getPolicy(id)).toMatchObject({ ...kept, redirect_http_code: null, redirect_prefix: null });
    expect(await cloud.patch(`${policies}/${id}`, { action: 'REJECT' })).toMatchObject({ body: { tasks: [] } });
    await finished(await cloud.delete(`${policies}/${id}`));
    expect(await cloud.get(`${policies}/${id}`)).toMatchObject({ status: 404 });
    expect(await cloud.get(`${policies}/${id}/rules/${ruleId}`)).toMatchObject({ status: 404 });
    expect(host.balancers.get(balancer)!.listeners[0]!.l7Policies).toEqual([]);
  });

  it('without a name may be updated with the empty name that it reads, and one with a name may not', async () => {
    const { listener } = await setUp();
    const [unnamed, named] = [await aPolicy(listener), await aPolicy(listener, { name: 'with a name' })];
    const { action, name, tags } = await getPolicy(unnamed);
    expect(name).toBe('');
    expect(await cloud.patch(`${policies}/${unnamed}`, { action, name, tags })).toMatchObject({ body: { tasks: [] } });
    const refused = await cloud.patch(`${policies}/${named}`, { action, name });
    expect([refused.status, refused.body.errors]).toEqual([
      400,
      [{ path: 'name', message: expect.stringMatching(/^must be 3 to 63 letters/) }],
    ]);
  });

  it('keeps positions without gaps', async () => {
    const { listener } = await setUp();
    const ids: Record<string, string> = {};
    const add = async (name: string, position?: number) => {
      ids[name] = await aPolicy(listener, { name: `${name}-policy`, ...(position && { position }) });
    };
    const moveTo = async (name: string, position: number) =>
      finished(await cloud.patch(`${policies}/${ids[name]}`, { action: 'REJECT', position }));
    await add('a');
    await add('b');
    await add('c', 1);
    await add('d', 2);
    await add('e', 1_000_000_000);
    expect(await order(listener)).toEqual(['cdabe', [1, 2, 3, 4, 5]]);
    await moveTo('c', 4);
    expect(await order(listener)).toEqual(['dabce', [1, 2, 3, 4, 5]]);
    await moveTo('e', 1);
    expect(await order(listener)).toEqual(['edabc', [1, 2, 3, 4, 5]]);
    await moveTo('e', 99);
    expect(await order(listener)).toEqual(['dabce', [1, 2, 3, 4, 5]]);
    await finished(await cloud.delete(`${policies}/${ids['a']}`));
    expect(await order(listener)).toEqual(['dbce', [1, 2, 3, 4]]);
  });

  it('may be created at one position by concurrent requests', async () => {
    const { listener } = await setUp();
    const body = { action: 'REJECT', listener_id: listener, position: 1 };
    const answers = await Promise.all(
      ['a', 'b', 'c', 'd'].map((n) => cloud.post(policies, { ...body, name: `${n}-policy` })),
    );
    for (const answer of answers) await finished(answer);
    const [names, positions] = await order(listener);
    expect([...names].sort().join('')).toBe('abcd');
    expect(positions).toEqual([1, 2, 3, 4]);
  });

  it('queues behind changes of other policies, rules and pools of the load balancer', async () => {
    const { balancer, listener } = await setUp();
    const pool = await aPool({ load_balancer_id: balancer });
    const release = host.hold();
    const first = await cloud.post(policies, { action: 'REJECT', listener_id: listener });
    const second = await cloud.patch(`${pools}/${pool}`, { name: 'renamed pool', lb_algorithm: 'SOURCE_IP' });
    const third = await cloud.post(policies, { action: 'REJECT', listener_id: listener });
    const refused = await cloud.patch(`${listeners}/${listener}`.replace('v1', 'v2'), { connection_limit: 5 });
    release();
    for (const answer of [first, second, third]) await finished(answer);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
  });

  it('is locked while its deletion is under way', async () => {
    const { listener } = await setUp();
    const id = await aPolicy(listener);
    const release = host.hold();
    const deletion = await cloud.delete(`${policies}/${id}`);
    const refused = [await cloud.post(`${policies}/${id}/rules`, rule), await cloud.delete(`${policies}/${id}`)];
    release();
    await finished(deletion);
    const locked = { status: 409, body: { exception_class: 'ResourceLocked' } };
    expect(refused).toMatchObject([locked, locked]);
    expect(await cloud.post(`${policies}/${id}/rules`, rule)).toMatchObject({ status: 404 });
  });

  it('protects its pool, and its listener deletes it', async () => {
    const { balancer, listener } = await setUp();
    const pool = await aPool({ load_balancer_id: balancer, name: 'target' });
    const id = await aPolicy(listener, { action: 'REDIRECT_TO_POOL', redirect_pool_id: pool });
    const refused = await cloud.delete(`${pools}/${pool}`);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    expect(refused.body.message).toContain(id);
    expect(await cloud.patch(`${pools}/${pool}`, { protocol: 'TCP' })).toMatchObject({ status: 400 });
    expect((await cloud.get(`${listeners}/${listener}`)).body.pool_count).toBe(1);
    await finished(await cloud.delete(`${listeners}/${listener}`));
    expect(await cloud.get(`${policies}/${id}`)).toMatchObject({ status: 404 });
    await finished(await cloud.delete(`${pools}/${pool}`));
  });

  it('of another listener protects the default pool of a listener', async () => {
    const { balancer, listener } = await setUp();
    const pool = await aPool({ listener_id: listener });
    const other = await aListener(balancer);
    const id = await aPolicy(other, { action: 'REDIRECT_TO_POOL', redirect_pool_id: pool });
    await aPolicy(listener, { action: 'REDIRECT_TO_POOL', redirect_pool_id: pool });
    const refused = await cloud.delete(`${listeners}/${listener}?delete_default_pool=true`);
    expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
    await finished(await cloud.delete(`${policies}/${id}`));
    await finished(await cloud.delete(`${listeners}/${listener}?delete_default_pool=true`));
    expect(await cloud.get(`${pools}/${pool}`)).toMatchObject({ status: 404 });
  });

  it('is deleted with its load balancer', async () => {
    const { balancer, listener } = await setUp();
    const pool = await aPool({ load_balancer_id: balancer });
    await aRule(await aPolicy(listener, { action: 'REDIRECT_TO_POOL', redirect_pool_id: pool }));
    await finished(await cloud.delete(`${balancers}/${balancer}`));
    expect((await cloud.get(policies)).body.results.filter((each: any) => each.listener_id === listener)).toEqual([]);
  });

  it('appears in the status tree with its rules', async () => {
    const { balancer, listener } = await setUp();
    const id = await aPolicy(listener, { name: 'a policy' });
    const ruleId = await aRule(id);
    const statuses = { operating_status: expect.any(String), provisioning_status: 'ACTIVE' };
    const tree = [
      {
        id,
        name: 'a policy',
        action: 'REJECT',
        position: 1,
        ...statuses,
        rules: [{ id: ruleId, type: 'PATH', ...statuses }],
      },
    ];
    expect((await cloud.get(`${balancers}/${balancer}/status`)).body.listeners[0].l7policies).toEqual(tree);
    const { results } = (await cloud.get(`${balancers}/status`)).body;
    expect(results.find((each: any) => each.id === balancer).listeners[0].l7policies).toEqual(tree);
  });

  it('in ERROR is repaired by the same update or deleted', async () => {
    const { listener } = await setUp();
    const id = await aPolicy(listener);
    const error = new DriverError('for a test', { customerMessage: 'for a test', retryable: false });
    host.trouble(() => ({ error, done: false }));
    const failed = await cloud.ended(await cloud.patch(`${policies}/${id}`, { action: 'REJECT', name: 'renamed' }));
    host.trouble();
    expect(failed.body.state).toBe('ERROR');
    expect(await getPolicy(id)).toMatchObject({ provisioning_status: 'ERROR', name: 'renamed' });
    await finished(await cloud.patch(`${policies}/${id}`, { action: 'REJECT', name: 'renamed' }));
    expect(await getPolicy(id)).toMatchObject({ provisioning_status: 'ACTIVE' });
  });
});

describe('a rule', () => {
  it('is locked while its deletion is under way', async () => {
    const { listener } = await setUp();
    const policy = await aPolicy(listener);
    const id = await aRule(policy);
    const release = host.hold();
    const deletion = await cloud.delete(`${policies}/${policy}/rules/${id}`);
    const repeated = await cloud.delete(`${policies}/${policy}/rules/${id}`);
    release();
    await finished(deletion);
    expect(repeated).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
    expect(repeated.body.message).toContain(deletion.body.tasks[0]);
  });

  it('is read, listed, changed and deleted', async () => {
    const { listener } = await setUp();
    const policy = await aPolicy(listener);
    const id = await aRule(policy);
    const path = `${policies}/${policy}/rules/${id}`;
    const first = {
      ...{ id, project_id: 1, region: 'local', region_id: 1, type: 'PATH', compare_type: 'STARTS_WITH', value: '/api' },
      ...{ invert: false, key: null, tags: [], task_id: null, operating_status: expect.any(String) },
      provisioning_status: 'ACTIVE',
    };
    expect((await cloud.get(path)).body).toEqual(first);
    expect((await cloud.get(`${policies}/${policy}/rules`)).body).toEqual({ count: 1, results: [first] });
    await finished(await cloud.request('PUT', path, { type: 'HEADER', key: 'X-Tier', value: 'gold' }));
    expect((await cloud.get(path)).body).toMatchObject({ type: 'HEADER', key: 'X-Tier', compare_type: 'STARTS_WITH' });
    expect(await cloud.request('PUT', path, { type: 'PATH', key: 'X-Tier' })).toMatchObject({ status: 400 });
    await finished(await cloud.request('PUT', path, { type: 'PATH' }));
    expect((await cloud.get(path)).body).toMatchObject({ type: 'PATH', key: null, value: 'gold' });
    expect(await cloud.request('PUT', path, { type: 'HEADER' })).toMatchObject({ status: 400 });
    await finished(await cloud.request('PUT', path, { type: 'HEADER', key: 'X-Tier' }));
    await finished(await cloud.request('PUT', path, { type: 'PATH', key: '' }));
    expect(await cloud.request('PUT', path, {})).toMatchObject({ body: { tasks: [] } });
    await finished(await cloud.delete(path));
    expect(await cloud.get(path)).toMatchObject({ status: 404 });
  });

  it('belongs to its policy', async () => {
    const { listener } = await setUp();
    const [policy, other] = [await aPolicy(listener), await aPolicy(listener)];
    const id = await aRule(policy);
    expect(await cloud.get(`${policies}/${other}/rules/${id}`)).toMatchObject({ status: 404 });
    expect(await cloud.request('PUT', `${policies}/${other}/rules/${id}`, { value: '/x' })).toMatchObject({
      status: 404,
    });
    expect(await cloud.delete(`${policies}/${other}/rules/${id}`)).toMatchObject({ status: 404 });
    expect(await cloud.get(`${policies}/${unknownId}/rules`)).toMatchObject({ status: 404 });
  });
});
