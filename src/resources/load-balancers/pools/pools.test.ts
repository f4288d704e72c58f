import { beforeAll, describe, expect, it, vi } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import { builders, knownSecrets, member, monitor, paths, pools, unknownId, v2 } from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aListener, aPool, created, getPool } = builders(cloud);
const valid = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
const isId = expect.stringMatching(/^[0-9a-f-]{36}$/);

let balancer: string;
beforeAll(async () => {
  balancer = await aBalancer();
});

describe('creating a pool', () => {
  it('returns one task that names the created parts; when it has finished, the host has the pool', async () => {
    const listener = await aListener(balancer);
    const answer = await cloud.post(pools, {
      ...valid,
      listener_id: listener,
      load_balancer_id: balancer,
      lb_algorithm: 'LEAST_CONNECTIONS',
      members: [member(2, { weight: 7 }), member(1, { backup: true, admin_state_up: false, monitor_port: 8080 })],
      healthmonitor: monitor({ type: 'HTTP', url_path: '/healthz', expected_codes: '200-299', http_method: 'GET' }),
      session_persistence: { type: 'APP_COOKIE', cookie_name: 'session' },
      timeout_client_data: 0,
      timeout_member_connect: 86_400_000,
    });
    const task = await cloud.ended(answer);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_lbpool', error: null });
    const made = task.body.created_resources;
    expect(made).toEqual({ pools: [isId], members: [isId, isId], healthmonitors: [isId] });
    const statuses = { provisioning_status: 'ACTIVE', operating_status: expect.any(String) };
    expect(await getPool(made.pools[0])).toEqual({
      ...valid,
      ...statuses,
      id: made.pools[0],
      lb_algorithm: 'LEAST_CONNECTIONS',
      admin_state_up: true,
      ca_secret_id: null,
      crl_secret_id: null,
      secret_id: null,
      creator_task_id: task.body.id,
      task_id: null,
      healthmonitor: {
        ...monitor({ type: 'HTTP', url_path: '/healthz', expected_codes: '200-299', http_method: 'GET' }),
        ...statuses,
        id: made.healthmonitors[0],
        admin_state_up: true,
        max_retries_down: 3,
        domain_name: null,
        http_version: null,
      },
      session_persistence: {
        type: 'APP_COOKIE',
        cookie_name: 'session',
        persistence_granularity: null,
        persistence_timeout: null,
      },
      listeners: [{ id: listener }],
      loadbalancers: [{ id: balancer }],
      members: [
        {
          ...member(2),
          ...statuses,
          id: made.members[0],
          weight: 7,
          backup: false,
          admin_state_up: true,
          monitor_address: null,
          monitor_port: null,
          subnet_id: null,
        },
        {
          ...member(1),
          ...statuses,
          id: made.members[1],
          weight: 1,
          backup: true,
          admin_state_up: false,
          monitor_address: null,
          monitor_port: 8080,
          subnet_id: null,
        },
      ],
      timeout_client_data: 0,
      timeout_member_connect: 86_400_000,
      timeout_member_data: null,
    });
    const onHost = host.balancers.get(balancer)!;
    expect(onHost.pools.find((pool) => pool.id === made.pools[0])!.members.map((m) => m.id)).toEqual(made.members);
    expect(onHost.listeners.find(({ id }) => id === listener)!.defaultPoolId).toBe(made.pools[0]);
  });

  it('accepts the load balancer in both spellings, in capitals, and without a listener', async () => {
    for (const named of [
      { load_balancer_id: balancer },
      { loadbalancer_id: balancer.toUpperCase() },
      { load_balancer_id: balancer, loadbalancer_id: balancer, listener_id: null },
    ]) {
      const pool = await getPool(await aPool(named));
      expect(pool).toMatchObject({
        loadbalancers: [{ id: balancer }],
        listeners: [],
        members: [],
        healthmonitor: null,
      });
    }
  });

  it('accepts only a listener, and uses its load balancer', async () => {
    const listener = await aListener(balancer);
    expect(await getPool(await aPool({ listener_id: listener.toUpperCase() }))).toMatchObject({
      listeners: [{ id: listener }],
      loadbalancers: [{ id: balancer }],
    });
  });

  it('rejects a listener with a default pool, naming the pool', async () => {
    const listener = await aListener(balancer);
    const first = await aPool({ listener_id: listener });
    const second = await cloud.post(pools, { ...valid, listener_id: listener });
    expect(second).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect(second.body.message).toContain(first);
    expect(second.headers['x-should-retry']).toBe('false');
  });

  it('creates one for repeated requests with an Idempotency-Key', async () => {
    const options = { headers: { 'idempotency-key': 'a pool, once' } };
    const body = { ...valid, name: 'made once', load_balancer_id: balancer };
    const answers = await Promise.all(Array.from({ length: 4 }, () => cloud.post(pools, body, options)));
    await cloud.ended(answers[0]!);
    const again = await cloud.post(pools, body, options);
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: again.body });
    expect((await cloud.get(`${pools}?name=made once`)).body.count).toBe(1);
  });

  it('stores addresses in canonical spelling', async () => {
    const members = [
      { address: '::FFFF:10.1.2.3', protocol_port: 1 },
      { address: '2001:DB8:0:0::1', protocol_port: 2, monitor_address: '0:0::1' },
    ];
    const pool = await getPool(await aPool({ load_balancer_id: balancer, members }));
    expect(pool['members']).toMatchObject([
      { address: '10.1.2.3' },
      { address: '2001:db8::1', monitor_address: '::1' },
    ]);
  });

  it('ignores fields of responses that clients send back', async () => {
    const sent = { id: 'x', operating_status: 'ONLINE', provisioning_status: 'ERROR' };
    const body = { members: [member(1, sent)], healthmonitor: monitor({ id: unknownId }) };
    const pool = await getPool(await aPool({ load_balancer_id: balancer, ...body }));
    expect(pool['members'][0]).toMatchObject({ id: isId, provisioning_status: 'ACTIVE' });
    expect(pool['healthmonitor'].id).not.toBe(unknownId);
  });
});

describe('secrets of a pool', () => {
  const [ca, crl, own] = ['a', 'b', 'c'].map((digit) => unknownId.replaceAll('1', digit)) as [string, string, string];
  const named = { ca_secret_id: ca, crl_secret_id: crl, secret_id: own };

  it('are resolved by kind and shown', async () => {
    const requested = knownSecrets(cloud, { [ca]: 'ca', [crl]: 'crl', [own]: 'certificate' });
    const id = await aPool({
      load_balancer_id: balancer,
      protocol: 'HTTPS',
      ...named,
      secret_id: own.toUpperCase(),
    });
    expect(await getPool(id)).toMatchObject(named);
    expect(requested.map(({ kind, path }) => [path, kind])).toEqual([
      ['ca_secret_id', 'ca'],
      ['crl_secret_id', 'crl'],
      ['secret_id', 'certificate'],
    ]);
  });

  it('are not checked again by an update with the same or no secrets', async () => {
    knownSecrets(cloud, { [ca]: 'ca', [crl]: 'crl', [own]: 'certificate' });
    const id = await aPool({ load_balancer_id: balancer, protocol: 'HTTPS', ...named });
    const requested = knownSecrets(cloud, { [own]: 'ca' });
    expect((await cloud.patch(v2(`${pools}/${id}`), { ...named, ca_secret_id: ca.toUpperCase() })).body.tasks).toEqual(
      [],
    );
    await cloud.ended(await cloud.patch(v2(`${pools}/${id}`), { name: 'renamed' }));
    expect(requested).toEqual([]);
    await cloud.ended(await cloud.patch(v2(`${pools}/${id}`), { ca_secret_id: own, crl_secret_id: null }));
    expect(requested).toEqual([{ id: own, kind: 'ca', path: 'ca_secret_id' }]);
    expect(await getPool(id)).toMatchObject({ ca_secret_id: own, crl_secret_id: null, secret_id: own });
  });

  it('are rejected together with all other errors when they are unknown', async () => {
    knownSecrets(cloud, { [own]: 'ca' });
    const body = { ...valid, protocol: 'HTTPS', load_balancer_id: balancer, ...named, members: [member(1), member(1)] };
    const answer = await cloud.post(pools, body);
    expect([answer.status, paths(answer).sort()]).toEqual([
      400,
      ['ca_secret_id', 'crl_secret_id', 'members.1', 'secret_id'],
    ]);
  });
});

describe('listing pools', () => {
  it('the filter by listener does not search the listeners of each pool', async () => {
    const query = vi.spyOn(cloud.db.$client, 'query');
    expect((await cloud.get(`${pools}?listener_id=${unknownId}`)).body.count).toBe(0);
    const sent = query.mock.calls.map(([statement]) => statement as unknown as { text: string; values: unknown[] });
    query.mockRestore();
    const list = sent.find(({ text }) => text?.includes('from "lb_pools"'))!;
    const { rows } = await cloud.db.$client.query(`explain ${list.text}`, list.values);
    const filters = rows.map((row) => row['QUERY PLAN']).filter((line) => line.includes('Filter:'));
    expect(filters.join()).not.toContain('SubPlan');
  });

  it('filters, pages, counts all matches, and has a stable order', async () => {
    const other = await aBalancer();
    const listener = await aListener(other);
    const ids = [
      await aPool({ listener_id: listener, name: 'alpha one' }),
      await aPool({ load_balancer_id: other, name: 'alpha two', members: [member(3), member(1), member(2)] }),
      await aPool({ load_balancer_id: other, name: 'beta one' }),
    ];
    const list = async (query: string) => {
      const { body } = await cloud.get(`${pools}?${query}`);
      return [body.count, ...body.results.map((pool: { name: string }) => pool.name)];
    };
    const mine = `load_balancer_id=${other}`;
    expect(await list(mine)).toEqual([3, 'alpha one', 'alpha two', 'beta one']);
    expect(await list(`loadbalancer_id=${other.toUpperCase()}&limit=1&offset=1`)).toEqual([3, 'alpha two']);
    expect(await list(`${mine}&name=alpha&limit=1`)).toEqual([2, 'alpha one']);
    expect(await list(`${mine}&name=%25`)).toEqual([0]);
    expect(await list(`listener_id=${listener}`)).toEqual([1, 'alpha one']);
    expect(await list(`listener_id=${unknownId}`)).toEqual([0]);
    expect(await list(`load_balancer_id=${unknownId}`)).toEqual([0]);
    expect(await list(`${mine}&loadbalancer_id=${unknownId}`)).toEqual([0]);
    for (const query of ['limit=0', 'limit=1001', 'offset=-1', 'listener_id=x', 'load_balancer_id=x', 'details=2']) {
      expect((await cloud.get(`${pools}?${query}`)).status).toBe(400);
    }
    // A new pool is OFFLINE until the driver reports it.
    await expect.poll(async () => (await getPool(ids[1]!))['operating_status'], { timeout: 10_000 }).toBe('NO_MONITOR');
    const whole = await getPool(ids[1]!);
    const [, brief] = (await cloud.get(`${pools}?${mine}`)).body.results;
    expect(brief.members).toEqual(whole['members'].map(({ id }: { id: string }) => ({ id })));
    const [, detailed] = (await cloud.get(`${pools}?${mine}&details=true`)).body.results;
    expect(detailed).toEqual(whole);
    expect(whole['members'].map((m: { address: string }) => m.address)).toEqual(['10.0.0.4', '10.0.0.2', '10.0.0.3']);
  });
});

describe('single members', () => {
  it('are added at the end by a task that names them, and removed', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(5)] });
    const added = await created(await cloud.post(`${pools}/${id}/member`, member(1, { weight: 256 })), 'members');
    const pool = await getPool(id);
    expect(pool['members']).toMatchObject([member(5), { ...member(1), id: added, weight: 256 }]);
    const removed = await cloud.ended(await cloud.delete(`${pools}/${id}/member/${added.toUpperCase()}`));
    expect(removed.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_lbmember' });
    expect((await getPool(id))['members']).toMatchObject([member(5)]);
    expect((await cloud.delete(`${pools}/${id}/member/${added}`)).status).toBe(404);
    expect(host.balancers.get(balancer)!.pools.find((found) => found.id === id)!.members).toHaveLength(1);
  });

  it('are rejected for a duplicate endpoint, or in a pool with a thousand members', async () => {
    const members = Array.from({ length: 1000 }, (_, n) => member(n));
    const id = await aPool({ load_balancer_id: balancer, members });
    const same = await cloud.post(`${pools}/${id}/member`, member(7));
    expect(same).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    const more = await cloud.post(`${pools}/${id}/member`, member(1000));
    expect(more).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect((await getPool(id))['members']).toHaveLength(1000);
  });

  it('are found in their own pool only', async () => {
    const [mine, other] = [
      await aPool({ load_balancer_id: balancer, members: [member(1)] }),
      await aPool({ load_balancer_id: balancer }),
    ];
    const [{ id }] = (await getPool(mine))['members'];
    expect((await cloud.delete(`${pools}/${other}/member/${id}`)).status).toBe(404);
  });
});

describe('the health monitor', () => {
  it('is created, replaced with the same id, and deleted', async () => {
    const id = await aPool({ load_balancer_id: balancer });
    const path = `${pools}/${id}/healthmonitor`;
    const made = await created(
      await cloud.post(path, monitor({ type: 'PING', max_retries_down: 10 })),
      'healthmonitors',
    );
    expect((await getPool(id))['healthmonitor']).toMatchObject({ id: made, type: 'PING', max_retries_down: 10 });
    const again = await created(await cloud.post(path, monitor({ type: 'HTTPS', url_path: '/' })), 'healthmonitors');
    expect(again).toBe(made);
    expect((await getPool(id))['healthmonitor']).toMatchObject({ type: 'HTTPS', url_path: '/', max_retries_down: 3 });
    const removed = await cloud.delete(path);
    expect([removed.status, removed.body]).toEqual([204, '']);
    expect((await getPool(id))['healthmonitor']).toBeNull();
    expect(await cloud.delete(path)).toMatchObject({ status: 404, body: { exception_class: 'NotFound' } });
    await expect.poll(() => host.balancers.get(balancer)!.pools.find((p) => p.id === id)!.monitor).toBeNull();
  });
});

describe('deleting a pool', () => {
  it('detaches it from the listener, and it is 404 afterwards', async () => {
    const listener = await aListener(balancer);
    const id = await aPool({ listener_id: listener, members: [member(1)] });
    const task = await cloud.ended(await cloud.delete(`${pools}/${id}`));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'delete_lbpool' });
    expect((await cloud.get(`${pools}/${id}`)).status).toBe(404);
    expect((await cloud.delete(`${pools}/${id}`)).status).toBe(404);
    expect(host.balancers.get(balancer)!.pools.some((pool) => pool.id === id)).toBe(false);
    expect(await getPool(await aPool({ listener_id: listener }))).toMatchObject({ listeners: [{ id: listener }] });
  });
});

describe('a pool of another client', () => {
  it('is not found, at its own path or at that of the caller', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1)], healthmonitor: monitor() });
    const [{ id: memberId }] = (await getPool(id))['members'];
    const { projectId, token } = await cloud.newClient();
    const options = { token };
    for (const path of [`${pools}/${id}`, `/cloud/v1/lbpools/${projectId}/1/${id}`]) {
      for (const answer of [
        await cloud.get(path, options),
        await cloud.patch(path, { name: 'mine now' }, options),
        await cloud.patch(v2(path), { name: 'mine now' }, options),
        await cloud.delete(path, options),
        await cloud.post(`${path}/healthmonitor`, monitor(), options),
        await cloud.delete(`${path}/healthmonitor`, options),
        await cloud.post(`${path}/member`, member(9), options),
        await cloud.delete(`${path}/member/${memberId}`, options),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { exception_class: 'NotFound' } });
      }
    }
    const listed = await cloud.get(`/cloud/v1/lbpools/${projectId}/1?load_balancer_id=${balancer}`, options);
    expect(listed.body).toEqual({ count: 0, results: [] });
    const stolen = await cloud.post(
      `/cloud/v1/lbpools/${projectId}/1`,
      { ...valid, load_balancer_id: balancer },
      options,
    );
    expect([stolen.status, paths(stolen)]).toEqual([400, ['load_balancer_id']]);
    expect(await getPool(id)).toMatchObject({ name: 'a pool', members: [{ id: memberId }] });
  });
});
