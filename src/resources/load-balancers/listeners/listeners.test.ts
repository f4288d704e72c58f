import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { terminal } from '../../../../test/drivers.ts';
import { useCloudyard } from '../../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import {
  balancers,
  builders,
  freshPort,
  knownSecrets,
  listeners,
  member,
  paths,
  pools,
  unknownId,
  v2,
} from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aListener, aPool, counts, getListener, getPool } = builders(cloud);
const update = (id: string, body: unknown) => cloud.patch(v2(`${listeners}/${id}`), body);
const onHost = (id: string) => host.balancers.get(balancer)!.listeners.find((listener) => listener.id === id);
const hash = `$6$saltsalt$${'a'.repeat(86)}`;
const users = [{ username: 'alice', encrypted_password: hash }];
const [own, other] = ['a', 'b'].map((digit) => unknownId.replaceAll('1', digit)) as [string, string];

let balancer: string;
beforeAll(async () => {
  balancer = await aBalancer();
});
afterEach(() => {
  host.trouble();
});

describe('creating a listener', () => {
  it('returns one task; when it has finished, the host has the listener', async () => {
    const port = freshPort();
    const answer = await cloud.post(listeners, {
      name: 'web',
      protocol: 'HTTP',
      protocol_port: port,
      loadbalancer_id: balancer,
    });
    const task = await cloud.ended(answer);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'create_lblistener', error: null });
    const [id] = task.body.created_resources.listeners;
    expect(task.body.created_resources).toEqual({ listeners: [id] });
    expect(await getListener(id)).toEqual({
      id,
      name: 'web',
      admin_state_up: true,
      allowed_cidrs: null,
      connection_limit: 100_000,
      creator_task_id: task.body.id,
      insert_headers: {},
      load_balancer_id: balancer,
      operating_status: expect.any(String),
      pool_count: 0,
      protocol: 'HTTP',
      protocol_port: port,
      provisioning_status: 'ACTIVE',
      secret_id: null,
      sni_secret_id: [],
      stats: null,
      task_id: null,
      timeout_client_data: null,
      timeout_member_connect: null,
      timeout_member_data: null,
      user_list: [],
    });
    expect(onHost(id)).toMatchObject({ protocol: 'HTTP', port, connectionLimit: 100_000, allowedNetworks: null });
  });

  it('stores all settings', async () => {
    const settings = {
      allowed_cidrs: ['10.0.0.0/8', '1.2.3.4', '2001:db8::/32', '::1'],
      connection_limit: 0,
      timeout_client_data: 0,
      timeout_member_connect: 86_400_000,
      timeout_member_data: 1,
      user_list: users,
    };
    const id = await aListener(balancer, {
      ...settings,
      insert_x_forwarded: true,
      secret_id: '',
      sni_secret_id: [],
    });
    const insert_headers = { 'X-Forwarded-For': 'true', 'X-Forwarded-Port': 'true', 'X-Forwarded-Proto': 'true' };
    expect(await getListener(id)).toMatchObject({ ...settings, insert_headers, secret_id: null, sni_secret_id: [] });
    expect(onHost(id)).toMatchObject({ connectionLimit: 0, insertXForwarded: true });
  });

  it('reads a connection limit of -1 back as the default of 100,000, also in an update', async () => {
    const id = await aListener(balancer, { connection_limit: -1 });
    expect((await getListener(id))['connection_limit']).toBe(100_000);
    expect((await update(id, { connection_limit: -1 })).body).toEqual({ tasks: [] });
    await cloud.ended(await update(id, { connection_limit: 7 }));
    await cloud.ended(await update(id, { connection_limit: -1 }));
    expect((await getListener(id))['connection_limit']).toBe(100_000);
    expect(onHost(id)).toMatchObject({ connectionLimit: 100_000 });
  });

  it('stores networks in canonical spelling and keeps a missing prefix', async () => {
    const id = await aListener(balancer, { allowed_cidrs: ['2001:DB8:0::/032', '10.0.0.1/32', '10.0.0.1'] });
    expect((await getListener(id))['allowed_cidrs']).toEqual(['2001:db8::/32', '10.0.0.1/32', '10.0.0.1']);
  });

  it('accepts a pool that no other listener uses', async () => {
    const pool = await aPool({ load_balancer_id: balancer });
    const id = await aListener(balancer, { default_pool_id: pool.toUpperCase() });
    expect(await getListener(id)).toMatchObject({ pool_count: 1 });
    expect((await getPool(pool))['listeners']).toEqual([{ id }]);
    expect(onHost(id)!.defaultPoolId).toBe(pool);
    const body = { name: 'second', protocol: 'HTTP', protocol_port: freshPort(), load_balancer_id: balancer };
    const second = await cloud.post(listeners, { ...body, default_pool_id: pool });
    expect(second).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect(second.body.message).toContain(id);
  });

  it('resolves the secrets of TERMINATED_HTTPS as certificates', async () => {
    const requested = knownSecrets(cloud, { [own]: 'certificate', [other]: 'certificate' });
    const tls = { protocol: 'TERMINATED_HTTPS', secret_id: own, sni_secret_id: [other, own.toUpperCase()] };
    const id = await aListener(balancer, tls);
    expect(await getListener(id)).toMatchObject({ secret_id: own, sni_secret_id: [other, own] });
    expect(requested.map(({ kind, path }) => [path, kind])).toEqual([
      ['secret_id', 'certificate'],
      ['sni_secret_id.0', 'certificate'],
      ['sni_secret_id.1', 'certificate'],
    ]);
    const requestedAgain = knownSecrets(cloud, {});
    expect((await update(id, { secret_id: own, sni_secret_id: [other, own] })).body).toEqual({ tasks: [] });
    await cloud.ended(await update(id, { sni_secret_id: [own] }));
    expect(requestedAgain).toEqual([]);
    const unknown = await update(id, { secret_id: unknownId, sni_secret_id: [own, unknownId] });
    expect([unknown.status, paths(unknown)]).toEqual([400, ['secret_id', 'sni_secret_id.1']]);
    await cloud.ended(await update(id, { sni_secret_id: null }));
    expect(await getListener(id)).toMatchObject({ secret_id: own, sni_secret_id: [] });
    const none = await update(id, { secret_id: null });
    expect([none.status, paths(none)]).toEqual([400, ['secret_id']]);
  });

  it('serves metrics with certificates and users, which can be removed', async () => {
    knownSecrets(cloud, { [own]: 'certificate', [other]: 'certificate' });
    const settings = { secret_id: own, sni_secret_id: [other], user_list: users };
    const id = await aListener(balancer, { protocol: 'PROMETHEUS', ...settings });
    expect(await getListener(id)).toMatchObject({ protocol: 'PROMETHEUS', ...settings, pool_count: 0 });
    expect(onHost(id)).toMatchObject({
      certificate: { id: own },
      sniCertificates: [{ id: other }],
      users: users.map(({ username, encrypted_password }) => ({
        name: username,
        encryptedPassword: encrypted_password,
      })),
    });
    const unnamed = await update(id, { secret_id: null });
    expect([unnamed.status, paths(unnamed)]).toEqual([400, ['sni_secret_id']]);
    await cloud.ended(await update(id, { secret_id: null, sni_secret_id: null, user_list: [] }));
    expect(await getListener(id)).toMatchObject({ secret_id: null, sni_secret_id: [], user_list: [] });
    expect(onHost(id)).toMatchObject({ certificate: null, sniCertificates: [], users: [] });
  });

  it('creates one for repeated requests with an Idempotency-Key', async () => {
    const options = { headers: { 'idempotency-key': 'a listener, once' } };
    const body = { name: 'made once', protocol: 'TCP', protocol_port: freshPort(), load_balancer_id: balancer };
    const answers = await Promise.all(Array.from({ length: 4 }, () => cloud.post(listeners, body, options)));
    await cloud.ended(answers[0]!);
    const again = await cloud.post(listeners, body, options);
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: again.body });
    expect((await cloud.get(`${listeners}?name=made once`)).body.count).toBe(1);
  });
});

describe('a port', () => {
  const create = (protocol: string, protocol_port: number) =>
    cloud.post(listeners, { name: 'another', protocol, protocol_port, load_balancer_id: balancer });

  it('is used by one listener of a load balancer and transport', async () => {
    const port = freshPort();
    const id = await aListener(balancer, { protocol_port: port });
    for (const protocol of ['HTTP', 'TCP', 'PROMETHEUS']) {
      const taken = await create(protocol, port);
      expect(taken).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
      expect(taken.body.message).toContain(id);
    }
    await aListener(balancer, { protocol: 'UDP', protocol_port: port });
    expect((await create('UDP', port)).status).toBe(409);
    await aListener(await aBalancer(), { protocol_port: port });
  });

  it('is unavailable after a failed deletion of its listener, and free when it is deleted', async () => {
    const port = freshPort();
    const id = await aListener(balancer, { protocol_port: port });
    host.trouble(() => ({ error: terminal(), done: false }));
    expect((await cloud.ended(await cloud.delete(`${listeners}/${id}`))).body.state).toBe('ERROR');
    host.trouble();
    expect(await getListener(id)).toMatchObject({ provisioning_status: 'ERROR' });
    const taken = await create('TCP', port);
    expect(taken).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect(taken.body.message).toContain(`${id}, whose deletion failed; delete it again`);
    const changed = await update(id, { name: 'other' });
    expect(changed).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    expect((await cloud.ended(await cloud.delete(`${listeners}/${id}`))).body.state).toBe('FINISHED');
    await aListener(balancer, { protocol: 'TCP', protocol_port: port });
  });
});

describe('updating a listener', () => {
  it('keeps absent fields, removes null, and replaces lists', async () => {
    const id = await aListener(balancer, {
      allowed_cidrs: ['10.0.0.0/8'],
      timeout_client_data: 5,
      user_list: users,
    });
    const before = await getListener(id);
    const task = await cloud.ended(await update(id, { name: 'renamed', connection_limit: 7, admin_state_up: false }));
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'patch_lblistener' });
    expect(await getListener(id)).toMatchObject({
      ...before,
      name: 'renamed',
      connection_limit: 7,
      admin_state_up: false,
      operating_status: expect.any(String),
    });
    expect(onHost(id)).toMatchObject({ enabled: false, connectionLimit: 7 });
    await cloud.ended(await update(id, { allowed_cidrs: null, user_list: null, timeout_client_data: null }));
    expect(await getListener(id)).toMatchObject({ allowed_cidrs: null, user_list: [], timeout_client_data: null });
    await cloud.ended(await update(id, { allowed_cidrs: [], user_list: users }));
    expect(onHost(id)).toMatchObject({ allowedNetworks: [], users: [{ name: 'alice', encryptedPassword: hash }] });
  });

  it('returns no task and writes nothing without a change', async () => {
    const id = await aListener(balancer, { allowed_cidrs: ['2001:db8::/32'], user_list: users });
    const before = [await counts(), host.log.length];
    for (const body of [
      { name: 'a listener', admin_state_up: true, connection_limit: 100_000, secret_id: null, sni_secret_id: null },
      { allowed_cidrs: ['2001:DB8::/32'], user_list: users, timeout_client_data: null },
    ]) {
      expect((await update(id, body)).body).toEqual({ tasks: [] });
    }
    expect([await counts(), host.log.length]).toEqual(before);
  });

  it('returns a finished task for an empty body, and does not reach the host', async () => {
    const id = await aListener(balancer);
    // A worker records the operating status at any time.
    const state = async () => [{ ...(await getListener(id)), operating_status: undefined }, host.log.length];
    const before = await state();
    const { tasks } = (await update(id, {})).body;
    const task = await cloud.get(`/cloud/v1/tasks/${tasks[0]}`);
    expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'patch_lblistener', resource_id: balancer });
    expect(await state()).toEqual(before);
  });

  it('retries after a failure', async () => {
    const id = await aListener(balancer);
    host.trouble(() => ({ error: terminal('no'), done: false }));
    expect((await cloud.ended(await update(id, { connection_limit: 3 }))).body).toMatchObject({
      state: 'ERROR',
      error: 'no',
    });
    host.trouble();
    expect(await getListener(id)).toMatchObject({ provisioning_status: 'ERROR', connection_limit: 3, task_id: null });
    expect((await cloud.ended(await update(id, { connection_limit: 3 }))).body.state).toBe('FINISHED');
    expect(await getListener(id)).toMatchObject({ provisioning_status: 'ACTIVE' });
  });

  it('on v1 renames at once, returns the listener, and is marked as deprecated', async () => {
    const id = await aListener(balancer);
    const applied = host.log.length;
    const updatedAt = async () =>
      (await cloud.db.$client.query('select updated_at from load_balancers where id = $1', [balancer])).rows[0]
        .updated_at;
    const before = await updatedAt();
    const answer = await cloud.patch(`${listeners}/${id}`, { name: 'renamed' });
    expect(answer).toMatchObject({ status: 200, body: { id, name: 'renamed', task_id: null } });
    expect(answer.headers['deprecation']).toBe('true');
    expect(await getListener(id)).toMatchObject({ name: 'renamed', provisioning_status: 'ACTIVE' });
    expect(await updatedAt()).not.toEqual(before);
    expect(host.log.length).toBe(applied);
    expect(paths(await cloud.patch(`${listeners}/${id}`, { connection_limit: 1 })).sort()).toEqual([
      'connection_limit',
      'name',
    ]);
  });
});

describe('during a task', () => {
  it('a listener shows the task, and other changes are rejected with its id', async () => {
    const id = await aListener(balancer);
    const release = host.hold();
    const [task] = (await update(id, { connection_limit: 9 })).body.tasks;
    expect(await getListener(id)).toMatchObject({ provisioning_status: 'PENDING_UPDATE', task_id: task });
    const body = { name: 'another', protocol: 'TCP', protocol_port: freshPort(), load_balancer_id: balancer };
    for (const answer of [
      await update(id, { connection_limit: 8 }),
      await cloud.patch(`${listeners}/${id}`, { name: 'other' }),
      await cloud.delete(`${listeners}/${id}`),
      await cloud.post(listeners, body),
      await cloud.post(pools, { name: 'new', protocol: 'HTTP', lb_algorithm: 'SOURCE_IP', listener_id: id }),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
      expect(answer.body.message).toContain(task);
    }
    release();
    await cloud.ended({ status: 200, body: { tasks: [task] }, headers: {} });
  });
});

describe('deleting a listener', () => {
  it('keeps its pool, or deletes it on request', async () => {
    for (const along of [false, true]) {
      const id = await aListener(balancer);
      const pool = await aPool({ listener_id: id, members: [member(1)] });
      const release = host.hold();
      const deleting = await cloud.delete(`${listeners}/${id}?delete_default_pool=${along}`);
      expect(await getListener(id)).toMatchObject({ provisioning_status: 'PENDING_DELETE' });
      expect((await getPool(pool))['provisioning_status']).toBe(along ? 'PENDING_DELETE' : 'ACTIVE');
      release();
      expect((await cloud.ended(deleting)).body).toMatchObject({ state: 'FINISHED', task_type: 'delete_lblistener' });
      expect((await cloud.get(`${listeners}/${id}`)).status).toBe(404);
      expect((await cloud.delete(`${listeners}/${id}`)).status).toBe(404);
      expect((await cloud.get(`${pools}/${pool}`)).status).toBe(along ? 404 : 200);
      expect(onHost(id)).toBeUndefined();
      if (!along) expect((await getPool(pool))['listeners']).toEqual([]);
    }
  });
});

describe('listing listeners', () => {
  it('filters, pages, counts all matches, has a stable order, and shows counters on request', async () => {
    const mine = await aBalancer();
    const ids: string[] = [];
    for (const name of ['alpha one', 'alpha two', 'beta one']) ids.push(await aListener(mine, { name }));
    const list = async (query: string) => {
      const { body } = await cloud.get(`${listeners}?${query}`);
      return [body.count, ...body.results.map((listener: { name: string }) => listener.name)];
    };
    expect(await list(`load_balancer_id=${mine}`)).toEqual([3, 'alpha one', 'alpha two', 'beta one']);
    expect(await list(`loadbalancer_id=${mine}&limit=1&offset=1`)).toEqual([3, 'alpha two']);
    expect(await list(`load_balancer_id=${mine}&name=alpha&limit=1`)).toEqual([2, 'alpha one']);
    expect(await list(`load_balancer_id=${mine}&name=%25`)).toEqual([0]);
    expect(await list(`load_balancer_id=${unknownId}`)).toEqual([0]);
    for (const query of ['limit=0', 'limit=1001', 'offset=-1', 'load_balancer_id=x', 'show_stats=2']) {
      expect((await cloud.get(`${listeners}?${query}`)).status).toBe(400);
    }
    // The worker may have read the listener's counters already, or read them now.
    host.traffic.set(ids[0]!, { activeConnections: 1 });
    await cloud.db.$client.query(
      `insert into lb_listener_counters values ($1, 1, 2, 3, 4, 5, 0, 0, 0, 0) on conflict (listener_id) do update
         set active_connections = 1, total_connections = 2, bytes_in = 3, bytes_out = 4, request_errors = 5`,
      [ids[0]],
    );
    const stats = { active_connections: 1, total_connections: 2, bytes_in: 3, bytes_out: 4, request_errors: 5 };
    const { results } = (await cloud.get(`${listeners}?load_balancer_id=${mine}&show_stats=true`)).body;
    expect(results[0].stats).toEqual(stats);
    expect((await cloud.get(`${listeners}/${ids[0]}?show_stats=true`)).body.stats).toEqual(stats);
    expect((await getListener(ids[0]!))['stats']).toBeNull();
  });
});

describe('a listener of another client', () => {
  it('is not found, at its own path or at that of the caller', async () => {
    const id = await aListener(balancer);
    const pool = await aPool({ load_balancer_id: balancer });
    const { projectId, token } = await cloud.newClient();
    const options = { token };
    for (const path of [`${listeners}/${id}`, `/cloud/v1/lblisteners/${projectId}/1/${id}`]) {
      for (const answer of [
        await cloud.get(path, options),
        await cloud.patch(path, { name: 'mine now' }, options),
        await cloud.patch(v2(path), { name: 'mine now' }, options),
        await cloud.delete(path, options),
      ]) {
        expect(answer).toMatchObject({ status: 404, body: { exception_class: 'NotFound' } });
      }
    }
    const theirs = await cloud.ended(
      await cloud.post(balancers.replace('/1/1', `/${projectId}/1`), { name: 'theirs' }, options),
      options,
    );
    const [theirBalancer] = theirs.body.created_resources.loadbalancers;
    const body = { name: 'mine', protocol: 'HTTP', protocol_port: 80 };
    for (const [named, field] of [
      [{ load_balancer_id: balancer }, 'load_balancer_id'],
      [{ load_balancer_id: theirBalancer, default_pool_id: pool }, 'default_pool_id'],
    ] as const) {
      const answer = await cloud.post(`/cloud/v1/lblisteners/${projectId}/1`, { ...body, ...named }, options);
      expect([answer.status, paths(answer)]).toEqual([400, [field]]);
    }
    expect((await cloud.get(`/cloud/v1/lblisteners/${projectId}/1`, options)).body.count).toBe(0);
    expect(await getListener(id)).toMatchObject({ name: 'a listener' });
  });
});
