/** Updates of pools: changed and kept fields, concurrency, and failures of the host. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { terminal } from '../../../../test/drivers.ts';
import { type Answer, useCloudyard } from '../../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import { builders, listeners, member, monitor, pools, v2 } from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aListener, aPool, counts, getPool } = builders(cloud);
const update = (id: string, body: unknown) => cloud.patch(v2(`${pools}/${id}`), body);
const onHost = (balancer: string, id: string) => host.balancers.get(balancer)!.pools.find((pool) => pool.id === id)!;

/** The pool after a scan of the proxy, when its statuses no longer change. */
async function settled(id: string): Promise<Record<string, any>> {
  await expect.poll(async () => (await getPool(id))['operating_status'], { timeout: 30_000 }).toBe('ONLINE');
  return getPool(id);
}

let balancer: string;
beforeAll(async () => {
  balancer = await aBalancer();
});
let release = () => {};
const hold = () => {
  release = host.hold();
};
afterEach(() => {
  release();
  host.trouble();
});

const full = {
  members: [member(1, { weight: 5 }), member(2)],
  healthmonitor: monitor({ type: 'HTTP', url_path: '/a', domain_name: 'a.example', http_version: '1.1' }),
  session_persistence: { type: 'APP_COOKIE', cookie_name: 'session' },
  timeout_client_data: 1000,
  timeout_member_connect: 2000,
  timeout_member_data: 0,
};

describe('fields of an update', () => {
  it('that are absent are kept; null removes; nested objects are replaced', async () => {
    const id = await aPool({ load_balancer_id: balancer, ...full });
    const before = await settled(id);
    const task = await cloud.ended(await update(id, { name: 'renamed' }));
    expect(task.body).toMatchObject({
      state: 'FINISHED',
      task_type: 'patch_lbpool',
      created_resources: { pools: [id] },
    });
    expect(await getPool(id)).toEqual({ ...before, name: 'renamed' });

    await cloud.ended(
      await update(id, { healthmonitor: { delay: 3, timeout: 2, max_retries: 1 }, timeout_client_data: null }),
    );
    const changed = await getPool(id);
    expect(changed['healthmonitor']).toMatchObject({
      id: before['healthmonitor'].id,
      type: 'HTTP',
      delay: 3,
      url_path: '/',
      domain_name: null,
      http_version: null,
      max_retries_down: 3,
    });
    expect(changed).toMatchObject({ timeout_client_data: null, timeout_member_connect: 2000, timeout_member_data: 0 });

    const cleared = { healthmonitor: null, session_persistence: null, members: null, timeout_member_connect: null };
    await cloud.ended(await update(id, cleared));
    expect(await getPool(id)).toMatchObject({
      ...cleared,
      members: [],
      session_persistence: null,
      healthmonitor: null,
    });
    expect(onHost(balancer, id)).toMatchObject({ members: [], monitor: null, persistence: null });
  });

  it('are not blocked by a monitor of an earlier version, whose timeout was its delay', async () => {
    const id = await aPool({ load_balancer_id: balancer, healthmonitor: monitor({ delay: 5, timeout: 4 }) });
    await cloud.db.$client.query(
      `update lb_pools set health_monitor = health_monitor || '{"timeout": 5}' where id = '${id}'`,
    );
    await cloud.ended(await update(id, { name: 'renamed' }));
    expect(await getPool(id)).toMatchObject({ name: 'renamed', healthmonitor: { timeout: 5 } });
    expect((await update(id, { healthmonitor: monitor({ delay: 6, timeout: 6 }) })).status).toBe(400);
  });

  it('change everything else of a pool', async () => {
    const id = await aPool({ load_balancer_id: balancer });
    const body = { admin_state_up: false, lb_algorithm: 'SOURCE_IP', protocol: 'TCP', name: 'other', ...full };
    const { healthmonitor, session_persistence, ...rest } = body;
    await cloud.ended(await update(id, { ...rest, session_persistence: { type: 'SOURCE_IP' } }));
    expect(await getPool(id)).toMatchObject({ ...rest, session_persistence: { type: 'SOURCE_IP' } });
    expect(onHost(balancer, id)).toMatchObject({ enabled: false, algorithm: 'SOURCE_IP', protocol: 'TCP' });
    expect([healthmonitor.type, session_persistence.type]).toEqual(['HTTP', 'APP_COOKIE']);
  });

  it('are the same on v1, which is marked as deprecated', async () => {
    const id = await aPool({ load_balancer_id: balancer, ...full });
    const answer = await cloud.patch(`${pools}/${id}`, { members: [] });
    expect(answer.headers['deprecation']).toBe('true');
    expect((await cloud.ended(answer)).body).toMatchObject({ state: 'FINISHED', task_type: 'patch_lbpool' });
    expect((await getPool(id))['members']).toEqual([]);
    expect((await update(id, {})).headers['deprecation']).toBeUndefined();
  });
});

describe('an update without a change', () => {
  it('returns no task and writes nothing, in any spelling', async () => {
    const id = await aPool({
      load_balancer_id: balancer,
      ...full,
      members: [member(1), { address: '::1', protocol_port: 9 }],
    });
    const { id: _, ...monitorAsShown } = (await settled(id))['healthmonitor'];
    const { operating_status: _o, provisioning_status: _p, ...sameMonitor } = monitorAsShown;
    const before = [await counts(), await getPool(id), host.log.length];
    for (const body of [
      {},
      { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', admin_state_up: true },
      { ca_secret_id: null, crl_secret_id: null, secret_id: null },
      { members: [member(1, { weight: 1, backup: false, subnet_id: null }), { address: '0:0::1', protocol_port: 9 }] },
      { healthmonitor: sameMonitor },
      { healthmonitor: { ...full.healthmonitor, type: null } },
      { session_persistence: { ...full.session_persistence, persistence_timeout: null } },
      { timeout_client_data: 1000, timeout_member_data: 0 },
    ]) {
      expect([body, (await update(id, body)).body]).toEqual([body, { tasks: [] }]);
    }
    expect([await counts(), await getPool(id), host.log.length]).toEqual(before);
  });
});

describe('members in the old and the new list', () => {
  it('keep their ids while others are added and removed', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1), member(2), member(3), member(4)] });
    const idOf = new Map<string, string>((await getPool(id))['members'].map((m: any) => [m.address, m.id]));
    const next = [
      member(9),
      member(3, { weight: 9, backup: true, monitor_port: 1, monitor_address: '10.9.9.9', admin_state_up: false }),
      member(1),
      member(2, { protocol_port: 81 }),
    ];
    const task = await cloud.ended(await update(id, { members: next }));
    const after = (await getPool(id))['members'];
    expect(after).toMatchObject(next);
    expect(after[1].id).toBe(idOf.get('10.0.0.4'));
    expect(after[2].id).toBe(idOf.get('10.0.0.2'));
    for (const fresh of [after[0], after[3]]) expect([...idOf.values()]).not.toContain(fresh.id);
    // The Terraform provider reads the first one.
    expect(task.body.created_resources).toEqual({ pools: [id], members: after.map((m: any) => m.id) });
    expect(onHost(balancer, id).members.map((m) => m.id)).toEqual(after.map((m: any) => m.id));
  });

  it('keep the status that the proxy reported', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1)], healthmonitor: monitor() });
    const status = async () => (await getPool(id))['members'][0].operating_status;
    await expect.poll(status).toBe('ONLINE');
    await cloud.ended(await update(id, { members: [member(2), member(1, { weight: 3 })] }));
    expect((await getPool(id))['members'][1]).toMatchObject({ weight: 3, operating_status: 'ONLINE' });
  });

  it('are replaced: omitted fields get their defaults', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1, { weight: 7, backup: true })] });
    await cloud.ended(await update(id, { members: [member(1)] }));
    expect((await getPool(id))['members'][0]).toMatchObject({ weight: 1, backup: false });
  });
});

describe('concurrent updates of pools', () => {
  it('all finish in the order of acceptance, twenty of one pool, and the last one wins', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(0)] });
    const kept = (await getPool(id))['members'][0].id;
    const bodies = Array.from({ length: 20 }, (_, n) => ({ members: [member(n + 1), member(0, { weight: n + 2 })] }));
    const answers = await Promise.all(bodies.map((body) => update(id, body)));
    const tasks = await Promise.all(answers.map((answer) => cloud.ended(answer)));
    for (const task of tasks) expect(task.body).toMatchObject({ state: 'FINISHED', task_type: 'patch_lbpool' });

    const { rows } = await cloud.db.$client.query<{ id: string; finished_on: Date }>(
      `select id, finished_on from tasks where id = any($1) order by generation`,
      [tasks.map((task) => task.body.id)],
    );
    const times = rows.map((row) => row.finished_on.getTime());
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const accepted = rows.map((row) => bodies[answers.findIndex((answer) => answer.body.tasks[0] === row.id)]!);
    expect((await getPool(id))['members']).toMatchObject(accepted.at(-1)!.members);
    expect(onHost(balancer, id).members.map((m) => m.address)).toEqual(
      accepted.at(-1)!.members.map((m) => m['address']),
    );
    expect((await getPool(id))['members'][1].id).toBe(kept);
    // The host never applied an older update after a newer one.
    const weights = host.log.flatMap(
      (applied) => applied.pools.find((pool) => pool.id === id)?.members[1]?.weight ?? [],
    );
    const order = accepted.map((body) => body.members[1]!['weight']);
    const places = weights.map((weight) => order.indexOf(weight));
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  it('are accepted while the host applies one, of this pool or another', async () => {
    const [first, second] = [await aPool({ load_balancer_id: balancer }), await aPool({ load_balancer_id: balancer })];
    hold();
    const answers: Answer[] = [];
    for (const id of [first, second, first]) answers.push(await update(id, { members: [member(answers.length)] }));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    expect(await getPool(first)).toMatchObject({
      provisioning_status: 'PENDING_UPDATE',
      task_id: answers[0]!.body.tasks[0],
    });
    release();
    for (const answer of answers) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
    expect((await getPool(first))['members']).toMatchObject([member(2)]);
    expect(onHost(balancer, first).members).toMatchObject([{ address: member(2)['address'] }]);
    expect(await getPool(first)).toMatchObject({ provisioning_status: 'ACTIVE', task_id: null });
  });

  it('are accepted behind a task that version 0.2.0 has left', async () => {
    const id = await aPool({ load_balancer_id: balancer });
    hold();
    const old = await update(id, { name: 'old' });
    await cloud.db.$client.query(`update tasks set task_type = 'update_lbpool' where id = $1`, [old.body.tasks[0]]);
    const answer = await update(id, { members: [member(1)] });
    release();
    for (const each of [old, answer]) expect((await cloud.ended(each)).body.state).toBe('FINISHED');
  });

  it('are accepted together with changes of single members and monitors', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1)], healthmonitor: monitor() });
    const [{ id: first }] = (await getPool(id))['members'];
    hold();
    const answers = await Promise.all([2, 3, 4].map((n) => cloud.post(`${pools}/${id}/member`, member(n))));
    answers.push(await cloud.delete(`${pools}/${id}/member/${first}`));
    const removal = cloud.delete(`${pools}/${id}/healthmonitor`);
    await expect.poll(async () => (await getPool(id))['healthmonitor']).toBeNull();
    answers.push(await cloud.post(`${pools}/${id}/healthmonitor`, monitor({ max_retries: 7 })));
    const shown = await getPool(id);
    expect(shown).toMatchObject({ provisioning_status: 'PENDING_UPDATE' });
    expect(answers.map((answer) => answer.body.tasks[0])).toContain(shown['task_id']);
    release();
    for (const answer of answers) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
    expect((await removal).status).toBe(204);
    expect(onHost(balancer, id).members).toHaveLength(3);
    expect(onHost(balancer, id).monitor).toMatchObject({ maxRetries: 7 });
  });

  it('are accepted together with the deletion of a monitor', async () => {
    const id = await aPool({
      load_balancer_id: balancer,
      healthmonitor: monitor(),
      session_persistence: { type: 'SOURCE_IP' },
    });
    hold();
    const first = await update(id, { name: 'first' });
    const removal = cloud.delete(`${pools}/${id}/healthmonitor`);
    await expect.poll(async () => (await getPool(id))['healthmonitor']).toBeNull();
    const last = await update(id, { session_persistence: null });
    release();
    expect((await removal).status).toBe(204);
    for (const answer of [first, last]) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
    expect(onHost(balancer, id)).toMatchObject({ monitor: null, persistence: null });
  });
});

describe('the lock', () => {
  it('rejects all other changes during the update of a pool, naming the task', async () => {
    const id = await aPool({ load_balancer_id: balancer, members: [member(1)] });
    const listener = await aListener(balancer);
    hold();
    const [task] = (await update(id, { name: 'held' })).body.tasks;
    const refused = [
      await cloud.delete(`${pools}/${id}`),
      await cloud.post(pools, { name: 'new', protocol: 'TCP', lb_algorithm: 'SOURCE_IP', load_balancer_id: balancer }),
      await cloud.patch(v2(`${listeners}/${listener}`), { name: 'new' }),
      await cloud.patch(`${listeners}/${listener}`, { name: 'new' }),
      await cloud.delete(`${listeners}/${listener}`),
    ];
    for (const answer of refused) {
      expect(answer).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
      expect(answer.body.message).toContain(task);
      // The lock ends with the task, so clients may retry.
      expect(answer.headers['x-should-retry']).toBeUndefined();
    }
    release();
    await cloud.ended({ status: 200, body: { tasks: [task] }, headers: {} });
  });

  it('rejects updates of pools during other changes of the same load balancer', async () => {
    const id = await aPool({ load_balancer_id: balancer });
    const listener = await aListener(balancer);
    const elsewhere = await aPool({ load_balancer_id: await aBalancer() });
    hold();
    const making = await cloud.patch(v2(`${listeners}/${listener}`), { connection_limit: 7 });
    expect(await getPool(id)).toMatchObject({ task_id: making.body.tasks[0] });
    const refused = [
      await update(id, { name: 'other' }),
      await cloud.post(`${pools}/${id}/member`, member(2)),
      await cloud.post(`${pools}/${id}/healthmonitor`, monitor()),
      await cloud.delete(`${pools}/${id}/healthmonitor`),
    ];
    for (const answer of refused) {
      expect(answer).toMatchObject({ status: 409, body: { exception_class: 'ResourceLocked' } });
      expect(answer.body.message).toContain(making.body.tasks[0]);
    }
    const other = await update(elsewhere, { name: 'other' });
    release();
    for (const answer of [making, other]) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
  });

  it('covers the creation and the deletion of a pool, which stays visible', async () => {
    hold();
    const body = { name: 'pending', protocol: 'TCP', lb_algorithm: 'SOURCE_IP', members: [member(1)] };
    const creating = await cloud.post(pools, { ...body, load_balancer_id: balancer, healthmonitor: monitor() });
    const { results } = (await cloud.get(`${pools}?name=pending`)).body;
    const pool = await getPool(results[0].id);
    expect(pool).toMatchObject({
      provisioning_status: 'PENDING_CREATE',
      task_id: creating.body.tasks[0],
      members: [{ provisioning_status: 'PENDING_CREATE', operating_status: 'OFFLINE' }],
      healthmonitor: { provisioning_status: 'PENDING_CREATE' },
    });
    expect((await update(pool['id'], { name: 'other' })).status).toBe(409);
    release();
    await cloud.ended(creating);

    hold();
    const deleting = await cloud.delete(`${pools}/${pool['id']}`);
    expect(await getPool(pool['id'])).toMatchObject({ provisioning_status: 'PENDING_DELETE' });
    expect((await update(pool['id'], { name: 'other' })).status).toBe(409);
    release();
    expect((await cloud.ended(deleting)).body.state).toBe('FINISHED');
    expect((await cloud.get(`${pools}/${pool['id']}`)).status).toBe(404);
  });
});

describe('after a permanent failure of the host', () => {
  it('the task reports it, the pool is in ERROR with the requested settings, and the same update retries it', async () => {
    const own = await aBalancer();
    const id = await aPool({ load_balancer_id: own });
    host.trouble(() => ({ error: terminal('the proxy refuses it'), done: false }));
    const body = { members: [member(1)] };
    const failed = await cloud.ended(await update(id, body));
    expect(failed.body).toMatchObject({ state: 'ERROR', error: 'the proxy refuses it' });
    expect(await getPool(id)).toMatchObject({ provisioning_status: 'ERROR', task_id: null, members: [member(1)] });
    host.trouble();
    expect((await cloud.ended(await update(id, body))).body.state).toBe('FINISHED');
    expect(await getPool(id)).toMatchObject({ provisioning_status: 'ACTIVE' });
    expect((await update(id, body)).body).toEqual({ tasks: [] });
  });

  it('a pool whose deletion failed can only be deleted again', async () => {
    const own = await aBalancer();
    const id = await aPool({ load_balancer_id: own });
    host.trouble(() => ({ error: terminal(), done: false }));
    expect((await cloud.ended(await cloud.delete(`${pools}/${id}`))).body.state).toBe('ERROR');
    host.trouble();
    for (const answer of [
      await update(id, { name: 'other' }),
      await cloud.post(`${pools}/${id}/member`, member(1)),
      await cloud.delete(`${pools}/${id}/healthmonitor`),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { exception_class: 'Conflict' } });
    }
    expect((await cloud.ended(await cloud.delete(`${pools}/${id}`))).body.state).toBe('FINISHED');
    expect((await cloud.get(`${pools}/${id}`)).status).toBe(404);
  });
});
