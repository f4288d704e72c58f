/**
 * The requests of the Ansible collection `gcore.cloud` (1.x), and the response fields that it reads. Written from its source.
 * It finds the resource of a task in `data`, by the name of the resource, and sends booleans as Python prints them.
 */
import { describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../harness.ts';

const cloud = useCloudyard();

/** A task in its final state. */
async function ended(answer: Answer): Promise<Record<string, any>> {
  expect(answer.status).toBe(200);
  const { body } = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}?wait=20`);
  expect(body).toMatchObject({ state: 'FINISHED', error: null });
  return body;
}

async function createdId(answer: Answer, kind: string): Promise<string> {
  const { created_resources } = await ended(answer);
  return created_resources[kind][0];
}

/** Deletes it as the collection does, which fails if `data` lacks the ID. */
async function remove(path: string, data: Record<string, string>): Promise<void> {
  expect((await ended(await cloud.delete(path))).data).toMatchObject(data);
}

describe('the tasks', () => {
  it('of volumes and snapshots name them', async () => {
    const volume = await createdId(
      await cloud.post('/cloud/v1/volumes/1/1', { name: 'a volume', size: 1, source: 'new-volume' }),
      'volumes',
    );
    const path = `/cloud/v1/volumes/1/1/${volume}`;
    expect((await ended(await cloud.post(`${path}/extend`, { size: 2 }))).data).toMatchObject({ volume_id: volume });
    const made = await cloud.post('/cloud/v1/snapshots/1/1', { name: 'a snapshot', volume_id: volume });
    const snapshot = await createdId(made, 'snapshots');
    await remove(`/cloud/v1/snapshots/1/1/${snapshot}`, { snapshot_id: snapshot });
    await remove(path, { volume_id: volume });
  });

  it('of networks, subnets and secrets name them', async () => {
    const network = await createdId(await cloud.post('/cloud/v1/networks/1/1', { name: 'a network' }), 'networks');
    const body = { name: 'a subnet', network_id: network, cidr: '10.0.0.0/24' };
    const subnet = await createdId(await cloud.post('/cloud/v1/subnets/1/1', body), 'subnets');
    await remove(`/cloud/v1/subnets/1/1/${subnet}`, { subnet_id: subnet });
    await remove(`/cloud/v1/networks/1/1/${network}`, { network_id: network });
    const payload = { payload: 'dGV4dA==', payload_content_encoding: 'base64', payload_content_type: 'text/plain' };
    const made = await cloud.post('/cloud/v1/secrets/1/1', { name: 'a secret', secret_type: 'opaque', ...payload });
    const secret = await createdId(made, 'secrets');
    await remove(`/cloud/v1/secrets/1/1/${secret}`, { resource_id: secret });
  });

  it('of load balancers, listeners, pools and members name them', async () => {
    const made = await cloud.post('/cloud/v1/loadbalancers/1/1', { name: 'a balancer' });
    const loadBalancer = await createdId(made, 'loadbalancers');
    const listenerBody = { name: 'a listener', protocol: 'TCP', protocol_port: 80, loadbalancer_id: loadBalancer };
    const listener = await createdId(await cloud.post('/cloud/v1/lblisteners/1/1', listenerBody), 'listeners');
    const poolBody = { name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', listener_id: listener };
    const pool = await createdId(await cloud.post('/cloud/v1/lbpools/1/1', poolBody), 'pools');
    const members = `/cloud/v1/lbpools/1/1/${pool}/member`;
    const added = await ended(await cloud.post(members, { address: '10.0.0.1', protocol_port: 80 }));
    // Of a new member it reads the pool.
    expect(added['data']).toMatchObject({ pool_id: pool });
    const member = added['created_resources'].members[0];
    await remove(`${members}/${member}`, { member_id: member, pool_id: pool });
    await remove(`/cloud/v1/lbpools/1/1/${pool}`, { pool_id: pool, loadbalancer_id: loadBalancer });
    await remove(`/cloud/v1/lblisteners/1/1/${listener}`, { listener_id: listener, loadbalancer_id: loadBalancer });
    await remove(`/cloud/v1/loadbalancers/1/1/${loadBalancer}`, { loadbalancer_id: loadBalancer });
  });
});

describe('the info modules', () => {
  it('read booleans as Python prints them', async () => {
    const body = { name: 'a policy', action: 'volume_snapshot' };
    const { id } = (await cloud.post('/cloud/v1/lifecycle_policy/1/1', body)).body;
    const path = `/cloud/v1/lifecycle_policy/1/1/${id}`;
    expect((await cloud.get(`${path}?need_volumes=True`)).body).toMatchObject({ volumes: [] });
    expect((await cloud.get(`${path}?need_volumes=False`)).body.volumes).toBeUndefined();
    const mixed = await cloud.get(`${path}?need_volumes=tru`);
    expect(mixed).toMatchObject({ status: 400, body: { message: 'need_volumes: must be true or false' } });
  });

  it('repeat the ID of a load balancer in the query', async () => {
    const made = await cloud.post('/cloud/v1/loadbalancers/1/1', { name: 'a balancer' });
    const id = await createdId(made, 'loadbalancers');
    const path = `/cloud/v1/loadbalancers/1/1/${id}`;
    expect(await cloud.get(`${path}?loadbalancer_id=${id}&show_stats=True`)).toMatchObject({
      status: 200,
      body: { id },
    });
    await remove(path, { loadbalancer_id: id });
  });
});
