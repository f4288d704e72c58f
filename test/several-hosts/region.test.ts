/**
 * A region of three hosts as docs/several-hosts.md installs it: PostgreSQL under Patroni, API servers, workers and agents on
 * each host, and load balancers. A host dies, with all of this, in the middle of creates and updates.
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { layoutOf } from '../../src/drivers/haproxy/layout.ts';
import { proxyOf } from '../e2e/balanced.ts';
import { requires } from '../requires.ts';
import { until } from '../until.ts';
import { fetchText, measureGap, startServers } from './balancer-region.ts';
import { type SharedDatabase, startDatabase } from './database.ts';
import { expectGap } from './gaps.ts';
import { createLab, type Lab, type LabNode, labWorks } from './lab.ts';
import { type ApiClient, startClient } from './load.ts';
import { type Program, runOn, startOn } from './servers.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const works = requires('root', 'postgresql', 'patroni', 'etcd', 'haproxy', 'keepalived', 'nginx', 'curl') && labWorks();
const memberPorts = [8001, 8002];
const api = 'http://10.77.0.10:8080';
const balancers = `${api}/cloud/v1/loadbalancers/1/1`;
const pools = `${api}/cloud/v1/lbpools/1/1`;
/** Creates and updates, half of them before the host dies. */
const changes = 200;
/** The others change the members of a pool. */
const isCreate = (number: number) => number % 4 === 0;

describe.skipIf(!works)('a region of three hosts', () => {
  let lab: Lab;
  let database: SharedDatabase;
  let client: ApiClient;
  let existing: string[];
  const agents = new Map<LabNode, Program>();

  beforeAll(async () => {
    lab = await createLab({ hosts: 3, clients: 1 });
    await startServers(lab.services, memberPorts);
    database = await startDatabase(lab);
    for (const host of lab.hosts) await startCloudyard(host);
    client = startClient(lab.clients[0]!, envOf(lab.hosts[0]!)['CLOUDYARD_BOOTSTRAP_TOKEN']!);
    await until(
      async () => (await client.request('GET', `${api}/healthz`)).status === 200,
      60,
      'the address of the API',
    );
    existing = await Promise.all([1, 2, 3, 4].map((number) => finished(createBalancer(`first-${number}`))));
  });
  afterAll(() => lab?.remove());

  /** The regions file of the example, without what needs Ceph. */
  const envOf = (host: LabNode): Record<string, string> => {
    const regions = join(host.folder, 'regions.yaml');
    const lines = readFileSync(join(database.files(host), 'regions.yaml'), 'utf8').split('\n');
    writeFileSync(regions, lines.filter((line) => !/nfs_addresses|storage:/.test(line)).join('\n'));
    return { ...database.cloudyardEnv(host), CLOUDYARD_REGIONS_FILE: regions, CLOUDYARD_CONSOLE: '0' };
  };
  const startCloudyard = async (host: LabNode) => {
    await startOn(host, ['serve'], envOf(host));
    await startOn(host, ['worker', '--region', '1'], envOf(host));
    agents.set(host, await startOn(host, ['host', '--region', '1'], envOf(host)));
  };
  const member = (port: number) => ({ address: lab.services.address, protocol_port: port });
  const createBalancer = (name: string) =>
    client.insist('POST', balancers, {
      name,
      listeners: [
        {
          ...{ name: 'web', protocol: 'HTTP', protocol_port: 80 },
          pools: [{ name, protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [member(memberPorts[0]!)] }],
        },
      ],
    });
  /** The id of the load balancer that a task has created. */
  const finished = async (answer: Promise<{ body: string }>): Promise<string> => {
    const { tasks } = JSON.parse((await answer).body) as { tasks: string[] };
    let task: { state: string; error: string | null; created_resources: { loadbalancers?: string[] } };
    await until(
      async () => {
        const { status, body } = await client.request('GET', `${api}/cloud/v1/tasks/${tasks[0]}`);
        if (status !== 200) return false;
        task = JSON.parse(body) as typeof task;
        return !['NEW', 'RUNNING'].includes(task.state);
      },
      120,
      'the end of a task',
    );
    expect(task!).toMatchObject({ state: 'FINISHED', error: null });
    return task!.created_resources.loadbalancers?.[0] ?? '';
  };
  const poolsOf = (host: LabNode) => database.sql(host, `select id from lb_pools where deleted_at is null`);
  const serversOf = async (host: LabNode) => {
    const dataDir = join(host.folder, 'data', 'host');
    // Each node has its own /run.
    const socket = join(host.folder, layoutOf(dataDir).masterSocket);
    return (await proxyOf({ dataDir }, socket).has()).members;
  };
  const rowsOf = async (host: LabNode) => {
    const rows = await database.sql(
      host,
      `select concat(p.id, ' ', m.id, ' ', m.address, ':', m.protocol_port, ' ', m.weight)
       from lb_members m join lb_pools p on p.id = m.pool_id where p.deleted_at is null`,
    );
    return rows.sort();
  };

  it('serves load balancers, and the API, at addresses of their own', async () => {
    const { body } = await client.request('GET', `${balancers}/${existing[0]}`);
    const { vip_address: address } = JSON.parse(body) as { vip_address: string };
    expect(address).toMatch(/^10\.77\.1\./);
    // keepalived may be electing: the hosts have just started.
    const answer = () => fetchText(lab.clients[0]!, `http://${address}/`).catch(String);
    await expect.poll(answer, { timeout: 60_000 }).toBe('services 8001');
  });

  it('loses nothing when a host dies in the middle of creates and updates', async () => {
    const dying = await database.primary();
    const others = lab.hosts.filter((host) => host !== dying);
    const [host] = others;
    const ids = await poolsOf(host!);
    const change = (number: number) =>
      isCreate(number)
        ? createBalancer(`balancer-${number}`)
        : client.insist('PATCH', `${pools}/${ids[number % ids.length]}`, {
            members: [member(memberPorts[0]!), member(memberPorts[1]!)].slice(number % 2),
          });
    const numbers = Array.from({ length: changes }, (_, at) => at);
    let begun = 0;
    const changing = Promise.all(
      [0, 1, 2, 3, 4].map(async (lane) => {
        for (const number of numbers.filter((each) => each % 5 === lane)) {
          begun += 1;
          await change(number);
        }
      }),
    );
    await until(() => begun >= changes / 2, 200, 'half of the changes');
    await dying.die();
    await changing;

    const open = `select id from tasks where state in ('NEW', 'RUNNING')`;
    await until(async () => (await database.sql(host!, open)).length === 0, 200, 'the end of all tasks');
    expect(await database.sql(host!, `select state, error from tasks where state <> 'FINISHED'`)).toEqual([]);
    const names = await database.sql(host!, 'select name from load_balancers where deleted_at is null');
    expect(names.sort()).toEqual(
      [
        ...[1, 2, 3, 4].map((number) => `first-${number}`),
        ...numbers.filter(isCreate).map((n) => `balancer-${n}`),
      ].sort(),
    );
    expect(await runOn(host!, ['quota', 'audit'], envOf(host!))).toMatch(/match/);
    const rows = await rowsOf(host!);
    for (const each of others) expect(await serversOf(each)).toEqual(rows);

    await dying.boot();
    await database.start(dying);
    await database.replicating(lab.hosts);
    await startCloudyard(dying);
    await until(async () => String(await serversOf(dying)) === String(rows), 60, 'the returned host converged');
  });

  it('ends an agent whose name another one took so that its supervisor starts it again', async () => {
    const [host] = lab.hosts;
    const { child, output } = agents.get(host!)!;
    const ended = once(child, 'exit');
    const leaseOf = (other: string) =>
      `with changed as (update hosts set ${other} where address = '${host!.address}' returning name)
       select name from changed`;
    const isOver = ended.then(() => true);
    let change = `incarnation = gen_random_uuid(), lease_until = now() + interval '1 minute'`;
    // The other agent renews the lease.
    do {
      expect(await database.sql(host!, leaseOf(change))).toHaveLength(1);
      change = `lease_until = now() + interval '1 minute'`;
    } while (!(await Promise.race([isOver, sleep(1000)])));
    expect(await ended).toEqual([1, null]);
    expect(output()).toContain('another agent is the host');
    await database.sql(host!, leaseOf('lease_until = now()'));
    agents.set(host!, await startOn(host!, ['host', '--region', '1'], envOf(host!)));
  });

  it('serves the API from another host when its host dies', async () => {
    /** keepalived may be electing, because a host has just returned or died. */
    const holderAmong = async (hosts: LabNode[]): Promise<LabNode> => {
      let holders: LabNode[] = [];
      const isOne = async () => {
        const lists = await Promise.all(hosts.map((host) => host.addresses()));
        holders = hosts.filter((_, at) => lists[at]!.includes('10.77.0.10'));
        return holders.length === 1;
      };
      await until(isOne, 60, 'exactly one host has the address of the API');
      return holders[0]!;
    };
    const dying = await holderAmong(lab.hosts);
    const gap = await measureGap('the host of the API dies', lab.clients[0]!, `${api}/healthz`, () => dying.die());
    expectGap(gap, 2000);
    await holderAmong(lab.hosts.filter((host) => host !== dying));
  });
});
