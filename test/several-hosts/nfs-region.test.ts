/** File shares through the API: a region of two hosts with its server, worker and agents as processes, and one host dies. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../harness.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';
import { startCephCluster, type CephCluster } from './ceph-cluster.ts';
import { createLab, labWorks, type Lab, type LabNode } from './lab.ts';
import { CAPABILITIES, GROUP, startWriter, type Writer } from './nfs-hosts.ts';
import { startOn } from './servers.ts';

const parts = [
  'ceph',
  'ceph-mds',
  'nfs-ganesha',
  'nfs-ganesha-ceph',
  'iputils-arping',
  'haproxy',
  'curl',
  'root',
] as const;
const runs = requires(...parts) && labWorks();
const TOKEN = 'ci$a-token-of-this-test';
const SHARES = '/cloud/v1/file_shares/1/1';

describe.skipIf(!runs)(skipReason(...parts) ?? 'file shares of a region of two hosts', () => {
  let lab: Lab;
  let cluster: CephCluster;
  let client: LabNode;
  let writer: Writer;
  let dropDatabase: () => Promise<void>;
  let id: string;

  beforeAll(async () => {
    lab = await createLab({ hosts: 2, clients: 1 });
    [client] = lab.clients as [LabNode];
    const { services, hosts } = lab;
    const prefix = services.command('env', []);
    cluster = await startCephCluster({ address: services.address, prefix: [prefix.file, ...prefix.args] });
    await cluster.addUser('cloudyard', CAPABILITIES);
    const { connection, drop } = await cloneDatabase(inject('postgres'));
    dropDatabase = drop;
    const { host = '127.0.0.1', port = 5432, user = 'postgres', database } = connection;
    await lab.forward(5432, host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`);
    const env = {
      DATABASE_URL: `postgres://${user}@${services.address}:5432/${database}`,
      CLOUDYARD_REGIONS_FILE: regionsFile(services.folder, cluster),
      CLOUDYARD_KEY_FILE: join(services.folder, 'secret.keys'),
      CLOUDYARD_BOOTSTRAP_TOKEN: TOKEN,
      CLOUDYARD_HOST: services.address,
      CLOUDYARD_PORT: '8080',
      CLOUDYARD_CONSOLE: '0',
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
      CLOUDYARD_VOLUME_DRIVER: 'simulated',
      CLOUDYARD_REGISTRY_DRIVER: 'simulated',
    };
    await startOn(services, ['serve'], env);
    await startOn(services, ['worker', '--region', '1'], env);
    for (const each of hosts) {
      const own = { CLOUDYARD_HOST_NAME: each.name, CLOUDYARD_HOST_ADDRESS: each.address };
      await startOn(each, ['host', '--region', '1'], { ...env, ...own });
    }
  }, 240_000);
  afterAll(async () => {
    await cluster?.stop();
    await lab?.remove();
    await dropDatabase?.();
  }, 60_000);

  const request = async (method: string, path: string, body?: object): Promise<any> => {
    const data = body ? ['-H', 'content-type: application/json', '-d', JSON.stringify(body)] : [];
    const url = `http://${lab.services.address}:8080${path}`;
    const { stdout } = await client.run('curl', [
      '-s',
      '-X',
      method,
      '-H',
      `authorization: apikey ${TOKEN}`,
      ...data,
      url,
    ]);
    return stdout === '' ? null : JSON.parse(stdout);
  };
  /** Resolves when the task of a request has ended. */
  const done = async (answer: { tasks?: string[] }): Promise<any> => {
    expect(answer).toHaveProperty('tasks');
    for (;;) {
      const task = await request('GET', `/cloud/v1/tasks/${answer.tasks![0]}?wait=20`);
      if (task.state === 'FINISHED' || task.state === 'ERROR') return task;
    }
  };
  const dead = new Set<LabNode>();
  /** The host that clients reach; null: none. */
  const serving = async (): Promise<LabNode | null> => {
    for (const host of lab.hosts) if (!dead.has(host) && (await host.addresses()).includes(GROUP)) return host;
    return null;
  };

  it('creates a share that a client writes to when the task has finished', async () => {
    const networks = await request('GET', '/cloud/v1/networks/1/1');
    const task = await done(
      await request('POST', SHARES, {
        ...{ name: 'shared', protocol: 'NFS', size: 1, network: { network_id: networks.results[0].id } },
        access: [{ ip_address: '10.77.0.0/16', access_mode: 'rw' }],
      }),
    );
    expect(task).toMatchObject({ state: 'FINISHED', error: null });
    id = task.created_resources.file_shares[0];
    const share = await request('GET', `${SHARES}/${id}`);
    expect(share).toMatchObject({ status: 'available', connection_point: `${GROUP}:/shares/${id}` });
    writer = startWriter(client);
    await writer.open(id, { name: 'written' });
    await writer.write();
    await writer.untilWritten(10);
  });

  it('serves it on the other host when its host dies', async () => {
    const host = (await serving())!;
    await host.die();
    dead.add(host);
    await writer.untilWritten(10);
    expect(await writer.report()).toMatchObject({ failure: null, reclaims: 1, refusals: 0 });
    await writer.stop();
    expect(await writer.verify()).toBe(true);
  });

  it('finishes the removal of a rule, after which the client is refused, although a host is away', async () => {
    const rules = `${SHARES}/${id}/access_rule`;
    const [rule] = (await request('GET', rules)).results;
    await request('DELETE', `${rules}/${rule.id}`);
    await until(async () => (await request('GET', rules)).count === 0, 60, 'the removal of the rule');
    expect(await writer.writeOnce('after')).not.toBeNull();
  });

  it('deletes the share', async () => {
    expect(await done(await request('DELETE', `${SHARES}/${id}`))).toMatchObject({ state: 'FINISHED', error: null });
    // The task ends when no server exports it; the server of the empty group ends by itself.
    await until(async () => (await serving()) === null, 60, 'no host has the address of the empty group');
  });
});

function regionsFile(folder: string, { conf, pool, filesystem }: CephCluster): string {
  const path = join(folder, 'regions.yaml');
  writeFileSync(
    path,
    `regions:
  - id: 1
    display_name: three
    country: LU
    storage: { driver: ceph, conf: ${conf}, user: cloudyard, pool: ${pool}, filesystem: ${filesystem} }
    hosts:
      nfs_addresses: [${GROUP}]
      lease_seconds: 4
`,
  );
  return path;
}
