/** The largest valid requests succeed within the bounds of request-cost.test.ts. */
import { describe, expect, it } from 'vitest';
import type { Received } from './http-sender.ts';
import { problemOf, useMeasuredCloud } from './measured-cloud.ts';

const { cloud, send, measure } = useMeasuredCloud();

describe('the largest valid requests succeed without blocking the event loop', () => {
  const long = (i: number) => ({ name: `c${i}`.padEnd(64, 'x'), namespace: `n${i}`.padEnd(255, 'é') });

  it('an API key with 10,000 containers is created, read, listed, updated and deleted', async () => {
    const owner = await cloud.newClient('admin');
    const path = `/cloud/v1/caas/keys/${owner.projectId}/1`;
    const containers = Array.from({ length: 10_000 }, (_, i) => ({ ...long(i), namespace: `n${i}`.padEnd(255, 'n') }));
    const created = JSON.stringify({ name: 'key', containers });
    const orders = [containers.toReversed(), containers].map((order) => JSON.stringify({ containers: order }));
    const create = () => send('POST', path, created, owner.token);
    const remove = () => send('DELETE', `${path}/key`, undefined, owner.token);
    let changes = 0;
    // Preparations make a repeated request as large as the first one, and keep one key.
    for (const [action, request, prepare] of [
      ['create', create, remove],
      ['read', () => send('GET', `${path}/key`, undefined, owner.token)],
      ['list', () => send('GET', path, undefined, owner.token)],
      ['change', () => send('PATCH', `${path}/key`, orders[changes++ % 2], owner.token)],
      ['delete', remove, create],
    ] as [string, () => Promise<Received>, (() => Promise<unknown>)?][]) {
      const measured = await measure(
        async () => [await request()],
        async () => void (await prepare?.()),
      );
      expect([action, problemOf(measured)]).toEqual([action, undefined]);
      expect([200, 204]).toContain(measured.received[0]!.status);
    }
  });

  it('a pool with 1,000 members, and a load balancer with 51 listeners', async () => {
    const owner = await cloud.newClient('admin');
    const at = `${owner.projectId}/1`;
    const members = Array.from({ length: 1000 }, (_, i) => ({
      address: `10.${Math.floor(i / 250)}.0.${1 + (i % 250)}`,
      protocol_port: 80,
      weight: 5,
      monitor_port: 81,
    }));
    const pool = (name: string) => ({ name, protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN' });
    const listeners = Array.from({ length: 51 }, (_, i) => ({
      ...{ name: `listener ${i}`, protocol: 'TCP', protocol_port: 1000 + i },
      pools: [{ ...pool(`pool ${i}`), members: members.slice(0, 60) }],
    }));
    let made = 0;
    const post = (path: string, body: () => object) => async () => [
      await send('POST', path, JSON.stringify(body()), owner.token),
    ];
    const balancer = await measure(
      post(`/cloud/v1/loadbalancers/${at}`, () => ({ name: `balancer ${++made}`, flavor: 'lb1-1-2', listeners })),
    );
    expect(problemOf(balancer)).toBe(undefined);
    expect(balancer.received[0]!.status).toBe(200);
    let load_balancer_id = '';
    const createEmptyBalancer = async () => {
      const alone = await cloud.post(`/cloud/v1/loadbalancers/${at}`, { name: 'empty', flavor: 'lb1-1-2' }, owner);
      load_balancer_id = (await cloud.ended(alone, owner)).body.created_resources.loadbalancers[0];
    };
    const requests = post(`/cloud/v1/lbpools/${at}`, () => ({ ...pool('pool'), load_balancer_id, members }));
    const measured = await measure(requests, createEmptyBalancer);
    expect(problemOf(measured)).toBe(undefined);
    expect(measured.received[0]!.status).toBe(200);
  });

  it('a lifecycle policy of 10,000 nonexistent volumes reports 100 of them', async () => {
    const owner = await cloud.newClient('admin');
    const volume_ids = Array.from(
      { length: 10_000 },
      (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    );
    const body = JSON.stringify({ name: 'policy', action: 'volume_snapshot', volume_ids });
    const path = `/cloud/v1/lifecycle_policy/${owner.projectId}/1`;
    for (const to of [path, `${path}/estimate_max_policy_usage`]) {
      const measured = await measure(async () => [await send('POST', to, body, owner.token)]);
      expect(problemOf(measured)).toBe(undefined);
      expect(measured.received[0]).toMatchObject({ status: 400, errorCount: 100 });
    }
  });

  it('a lifecycle policy of 10,000 volumes is created and estimated, and its volumes are removed and added', async () => {
    const owner = await cloud.newClient('admin');
    const at = `/cloud/v1/lifecycle_policy/${owner.projectId}/1`;
    const { rows } = await cloud.db.$client.query<{ id: string }>(
      `insert into volumes (id, project_id, region_id, client_id, name, type_name, size, status, tags, creator_task_id, created_at, updated_at, generation, observed_generation)
       select gen_random_uuid(), $1, 1, $2, 'volume ' || i, 'standard', 1, 'available', '{}', gen_random_uuid(), now(), now(), 1, 1
       from generate_series(1, 10000) i returning id`,
      [owner.projectId, owner.clientId],
    );
    const volume_ids = rows.map(({ id }) => id);
    const policy = { name: 'policy', action: 'volume_snapshot', volume_ids };
    let last = 0;
    for (const [method, path, body, status] of [
      ['POST', () => at, policy, 200],
      ['POST', () => `${at}/estimate_max_policy_usage`, policy, 200],
      ['PUT', () => `${at}/${last}/remove_volumes_from_policy`, { volume_ids }, 200],
      ['PUT', () => `${at}/${last}/add_volumes_to_policy?need_volumes=true`, { volume_ids }, 200],
    ] as const) {
      const measured = await measure(async () => [await send(method, path(), JSON.stringify(body), owner.token)]);
      expect([path(), problemOf(measured)]).toEqual([path(), undefined]);
      expect(measured.received[0]!.status).toBe(status);
      if (path() === at) last = JSON.parse(measured.received[0]!.text).id;
    }
  });
});
