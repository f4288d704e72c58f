/** A change of a part that waits for the lock of its load balancer decides by what the previous holder wrote. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { Answer } from '../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../test/load-balancer-host.ts';
import { balancers, builders, member, pools, v2 } from './test-balancers.ts';

const cloud = useCloudyard({ loadBalancerDriver: createTestLoadBalancerHost() });
const { aBalancer, aPool } = builders(cloud);

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
