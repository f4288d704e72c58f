/** A change of a part that waits for the lock of its load balancer decides by what the previous holder wrote. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { balancers, builders, listeners, member, pools, v2 } from './test-balancers.ts';

const cloud = useCloudyard({ loadBalancerDriver: createTestLoadBalancerHost() });
const { aBalancer, aListener, aPool, created } = builders(cloud);

const waiting = `select from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock' and query like 'select locked.%'`;

/** The answer to a request that waits for the lock of the load balancer until `write` is committed. */
async function answerAfter(
  balancer: string,
  send: () => Promise<Answer>,
  write: (holder: pg.PoolClient) => Promise<unknown>,
): Promise<Answer> {
  const holder = await cloud.db.$client.connect();
  try {
    await holder.query('begin');
    await holder.query('select from load_balancers where id = $1 for update', [balancer]);
    const answer = send();
    await expect.poll(async () => (await cloud.db.$client.query(waiting)).rowCount, { timeout: 10_000 }).toBe(1);
    await write(holder);
    await holder.query('commit');
    return await answer;
  } finally {
    holder.release(true);
  }
}

it('a change sees members, tasks and deletions that were committed while it waited', async () => {
  const balancer = await aBalancer();
  const pool = await aPool({ load_balancer_id: balancer, members: [member(1)] });
  const path = `${pools}/${pool}`;
  const addMember = () => cloud.post(`${path}/member`, member(2));
  const known = randomUUID();

  const doubled = await answerAfter(balancer, addMember, (holder) =>
    holder.query(
      `insert into lb_members (id, pool_id, position, address, protocol_port, weight, backup, admin_state_up, operating_status)
       values ($1, $2, 1, '10.0.0.3', 80, 1, false, true, 'OFFLINE')`,
      [known, pool],
    ),
  );
  expect(doubled).toMatchObject({ status: 409, body: { message: expect.stringContaining(`: ${known}`) } });

  const taskId = randomUUID();
  const lockIt = (holder: pg.PoolClient) =>
    holder.query(
      `insert into tasks (id, client_id, user_id, task_type, state, resource, resource_id, generation, created_on, updated_on)
       values ($1, 1, 1, 'resize_loadbalancer', 'RUNNING', 'load_balancer', $2, 1000000, now(), now())`,
      [taskId, balancer],
    );
  const rename = (path: string) => () => cloud.patch(path, { name: 'other' });
  for (const send of [rename(v2(path)), rename(`${balancers}/${balancer}`)]) {
    const locked = await answerAfter(balancer, send, lockIt);
    expect(locked).toMatchObject({ status: 409, body: { message: expect.stringContaining(taskId) } });
    await cloud.db.$client.query('delete from tasks where id = $1', [taskId]);
  }

  const deleted = await answerAfter(
    balancer,
    () => cloud.patch(v2(path), { name: 'other' }),
    (holder) => holder.query('update lb_pools set deleted_at = now() where id = $1', [pool]),
  );
  expect(deleted).toMatchObject({ status: 409, body: { message: expect.stringContaining('deletion of pool') } });

  const gone = await answerAfter(
    balancer,
    () => cloud.patch(v2(path), { name: 'other' }),
    (holder) => holder.query('delete from lb_pools where id = $1', [pool]),
  );
  expect(gone.status).toBe(404);
});

it('an L7 rule that becomes a regular expression while its value changes does not get an unchecked pattern', async () => {
  const balancer = await aBalancer();
  const policies = '/cloud/v1/l7policies/1/1';
  const reject = { action: 'REJECT', listener_id: await aListener(balancer) };
  const rules = `${policies}/${await created(await cloud.post(policies, reject), 'l7polices')}/rules`;
  const anyPath = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/x' };
  const rule = await created(await cloud.post(rules, anyPath), 'l7rules');
  const answer = await answerAfter(
    balancer,
    () => cloud.request('PUT', `${rules}/${rule}`, { value: '(bad' }),
    (holder) => holder.query(`update lb_l7_rules set compare_type = 'REGEX' where id = $1`, [rule]),
  );
  expect(answer).toMatchObject({ status: 409, body: { message: expect.stringContaining('at the same time') } });
});

it('a part whose deletion failed is named as such', async () => {
  const balancer = await aBalancer();
  const listener = await aListener(balancer, { protocol_port: 81 });
  await cloud.db.$client.query(`update lb_listeners set deleted_at = now() where id = $1`, [listener]);
  const message = async (answer: Promise<Answer>) => (await answer).body.message;
  const failed = `the deletion of listener ${listener} failed; delete it again`;
  const web = { protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', name: 'a pool' };
  expect(await message(cloud.post(pools, { ...web, listener_id: listener }))).toBe(failed);
  const reject = { action: 'REJECT', listener_id: listener };
  expect(await message(cloud.post('/cloud/v1/l7policies/1/1', reject))).toBe(failed);
  const same = { name: 'another', protocol: 'HTTP', protocol_port: 81, load_balancer_id: balancer };
  expect(await message(cloud.post(listeners, same))).toContain(`${listener}, whose deletion failed; delete it again`);
});
