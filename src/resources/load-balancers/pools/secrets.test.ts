/** Pools and listeners with real secrets: they must have the right kind, and are kept while they are used. */
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { createTestLoadBalancerHost } from '../../../../test/load-balancer-host.ts';
import { aCertificate, secretV1 } from '../../secrets/test-certificates.ts';
import { balancers, builders, freshPort, listeners, paths, pools, v2 } from '../test-balancers.ts';

const host = createTestLoadBalancerHost();
const cloud = useCloudyard({ loadBalancerDriver: host });
const { aBalancer, aListener, aPool, created, getPool } = builders(cloud);
const secrets = '/cloud/v1/secrets/1/1';

const own = aCertificate();
async function createCertificate(): Promise<string> {
  const payload = { certificate: own.pem, certificate_chain: '', private_key: own.keyPem };
  return created(await cloud.post(v2(secrets), { name: 'a certificate', payload }), 'secrets');
}
async function createBundle(): Promise<string> {
  return created(await cloud.post(secrets, secretV1('certificate', own.pem)), 'secrets');
}

describe('a secret', () => {
  it('reaches the host, and cannot be deleted while a listener or a pool uses it', async () => {
    const balancer = await aBalancer();
    const [certificate, bundle] = [await createCertificate(), await createBundle()];
    const listener = await aListener(balancer, { protocol: 'TERMINATED_HTTPS', secret_id: certificate });
    const tls = { protocol: 'HTTPS', ca_secret_id: bundle, secret_id: certificate };
    const pool = await aPool({ listener_id: listener, ...tls });
    const onHost = host.balancers.get(balancer)!;
    expect(onHost.listeners[0]!.certificate).toEqual({ id: certificate, pem: expect.stringContaining('PRIVATE KEY') });
    expect(onHost.pools[0]).toMatchObject({ caBundle: expect.stringContaining('CERTIFICATE') });

    for (const [id, user] of [
      [certificate, 'listener'],
      [bundle, 'pool'],
    ]) {
      const refused = await cloud.delete(`${secrets}/${id}`);
      expect(refused).toMatchObject({ status: 409, body: { exception_class: 'InUse' } });
      expect(refused.body.message).toContain(user);
    }
    await cloud.ended(await cloud.patch(v2(`${pools}/${pool}`), { ca_secret_id: null, secret_id: null }));
    expect((await cloud.ended(await cloud.delete(`${secrets}/${bundle}`))).body.state).toBe('FINISHED');
    await cloud.ended(await cloud.delete(`${listeners}/${listener}`));
    expect((await cloud.ended(await cloud.delete(`${secrets}/${certificate}`))).body.state).toBe('FINISHED');
  });

  it('of the wrong kind is rejected, naming the field', async () => {
    const balancer = await aBalancer();
    const [certificate, bundle] = [await createCertificate(), await createBundle()];
    const pool = await aPool({ load_balancer_id: balancer, protocol: 'HTTPS' });
    const wrong = { ca_secret_id: certificate, crl_secret_id: bundle, secret_id: bundle };
    const answer = await cloud.patch(v2(`${pools}/${pool}`), wrong);
    expect([answer.status, paths(answer).sort()]).toEqual([400, Object.keys(wrong)]);
    expect(await getPool(pool)).toMatchObject({ ca_secret_id: null, crl_secret_id: null, secret_id: null });
    const tls = { name: 'tls', protocol: 'TERMINATED_HTTPS', protocol_port: freshPort(), secret_id: bundle };
    const nested = await cloud.post(balancers, { name: 'a balancer', listeners: [tls] });
    expect([nested.status, paths(nested)]).toEqual([400, ['listeners.0.secret_id']]);
  });

  it('is used by a new load balancer while one connection to the database is free', async () => {
    const tls = { name: 'tls', protocol: 'TERMINATED_HTTPS', protocol_port: freshPort() };
    const nested = { ...tls, secret_id: await createCertificate() };
    const { $client } = cloud.db;
    const others = await Promise.all(Array.from({ length: $client.options.max - 1 }, () => $client.connect()));
    const answer = await cloud
      .post(balancers, { name: 'a balancer', listeners: [nested] })
      .finally(() => others.forEach((connection) => connection.release()));
    expect(answer).toMatchObject({ status: 200 });
  });

  it('of another client is not found', async () => {
    const certificate = await createCertificate();
    const { projectId, token } = await cloud.newClient();
    const path = (kind: string) => `/cloud/v1/${kind}/${projectId}/1`;
    const made = await cloud.post(path('loadbalancers'), { name: 'theirs' }, { token });
    const [balancer] = (await cloud.ended(made, { token })).body.created_resources.loadbalancers;
    const body = { name: 'tls', protocol: 'TERMINATED_HTTPS', protocol_port: 443, load_balancer_id: balancer };
    const answer = await cloud.post(path('lblisteners'), { ...body, secret_id: certificate }, { token });
    expect([answer.status, paths(answer)]).toEqual([400, ['secret_id']]);
  });

  it('that is deleted during an update is either used or deleted', async () => {
    const balancer = await aBalancer();
    for (let n = 0; n < 10; n++) {
      const bundle = await createBundle();
      const pool = await aPool({ load_balancer_id: balancer, protocol: 'HTTPS' });
      const [updated, deleted] = await Promise.all([
        cloud.patch(v2(`${pools}/${pool}`), { ca_secret_id: bundle }),
        cloud.delete(`${secrets}/${bundle}`),
      ]);
      expect([
        [200, 409],
        [400, 200],
      ]).toContainEqual([updated.status, deleted.status]);
      if (updated.status === 200) expect((await cloud.ended(updated)).body.state).toBe('FINISHED');
    }
  });
});
