/**
 * A region of three hosts that serve file shares and load balancers: PostgreSQL, Ceph, the API server and the worker are on the
 * node of services, the agents on the hosts. `expectSound` holds what the hosts serve against the rows.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, inject, vi } from 'vitest';
import { layoutOf } from '../../src/drivers/haproxy/layout.ts';
import { groupRecords } from '../../src/drivers/nfs-groups/records.ts';
import { filesIn } from '../../src/drivers/nfs-groups/server.ts';
import { proxyOf } from '../e2e/balanced.ts';
import { cloneDatabase } from '../harness.ts';
import { until } from '../until.ts';
import { startServers } from './balancer-region.ts';
import { startCephCluster, type CephCluster } from './ceph-cluster.ts';
import { createLab, type Lab, type LabNode } from './lab.ts';
import { startClient, type ApiClient } from './load.ts';
import { CAPABILITIES, GROUP, GROUP6 } from './nfs-hosts.ts';
import { runOn, startOn, type Program } from './servers.ts';

const groups = [GROUP, GROUP6];
export const memberPorts = [8001, 8002];
const TOKEN = 'ci$a-token-of-this-test';
const REGION = 1;
const SKEW_MS = 300_000;

export interface WholeRegion {
  lab: Lab;
  client: LabNode;
  /** Where the members of load balancers are. */
  members: LabNode;
  cluster: CephCluster;
  request: ApiClient['request'];
  /** `url`: the path. Resolves when the task of the change has finished, with the resources that it has created. */
  change(method: string, path: string, body: unknown): Promise<Record<string, string[]>>;
  /** Starts the agent of a host, at first or after `die` and `boot`. */
  start(host: LabNode): Promise<void>;
  /** The process of the agent. */
  agent(host: LabNode): number;
  /** The pid in a file in the data directory of the agent. */
  pid(host: LabNode, ...path: string[]): number;
  /** The host that has an address; waits until it is one host. */
  holder(address: string): Promise<LabNode>;
  /** The host that is taking the NFS group over; waits until there is one. */
  taking(group: string): Promise<LabNode>;
  /**
   * Resolves when every task has ended, the counters match the rows, these hosts have the load balancers, and one server of
   * each NFS group, which is not fenced, exports the shares. Every address is on one of the hosts.
   */
  expectSound(hosts?: LabNode[]): Promise<void>;
  remove(): Promise<void>;
}

export async function createWholeRegion(): Promise<WholeRegion> {
  const lab = await createLab({ hosts: 3, clients: 2 });
  const { services, hosts } = lab;
  const [client, members] = lab.clients as [LabNode, LabNode];
  const prefix = services.command('env', []);
  const cluster = await startCephCluster({ address: services.address, prefix: [prefix.file, ...prefix.args] });
  const { connection, drop } = await cloneDatabase(inject('postgres'));
  const rows = new pg.Pool({ ...connection, max: 1 });
  await startServers(members, memberPorts);
  await cluster.addUser('cloudyard', CAPABILITIES);
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
    CLOUDYARD_VOLUME_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'simulated',
  };
  await startOn(services, ['serve'], env);
  await startOn(services, ['worker', '--region', `${REGION}`], env);
  const agents = new Map<LabNode, Program>();
  const start = async (each: LabNode) => {
    // The clock of the last host is 5 minutes ahead.
    const isSkewed = each === hosts.at(-1);
    const own = { CLOUDYARD_HOST_NAME: each.name, CLOUDYARD_HOST_ADDRESS: each.address, CLOCK_SKEW_MS: `${SKEW_MS}` };
    const imports = isSkewed ? [join(import.meta.dirname, 'skewed-clock.mjs')] : [];
    agents.set(each, await startOn(each, ['host', '--region', `${REGION}`], { ...env, ...own }, imports));
  };
  await Promise.all(hosts.map(start));
  const { request, insist } = startClient(client, TOKEN);
  const api = `http://${services.address}:8080`;
  const seen = { lab, cluster, rows };

  return {
    ...{ lab, client, members, cluster, start },
    request: (method, path, options) => request(method, api + path, options),
    async change(method, path, body) {
      const { tasks } = JSON.parse((await insist(method, api + path, body)).body) as { tasks: string[] };
      const [id] = tasks;
      if (id === undefined) throw new Error(`${method} ${path} changes nothing`);
      for (;;) {
        // Shorter than the time limit of the client.
        const answer = await request('GET', `${api}/cloud/v1/tasks/${id}?wait=2`);
        const task = answer.status === 200 ? (JSON.parse(answer.body) as Task) : { state: 'RUNNING' };
        if (task.state === 'ERROR') throw new Error(`${method} ${path}: ${answer.body}`);
        if ('created_resources' in task && task.state === 'FINISHED') return task.created_resources;
        await sleep(POLL_MS);
      }
    },
    agent: (each) => agents.get(each)!.child.pid!,
    pid: (each, ...path) => Number(readFileSync(join(dataDirOf(each), ...path), 'utf8')),
    async holder(address) {
      for (;;) {
        const [found, ...others] = (await readHolders(hosts))(address);
        if (found && others.length === 0) return found;
        await sleep(POLL_MS);
      }
    },
    async taking(group) {
      const records = recordsOf(cluster);
      for (;;) {
        const starting = [...(await records.servers(group)).values()].find(({ serving }) => !serving);
        const found = hosts.find(({ name }) => name === starting?.host);
        if (found) return found;
        await sleep(POLL_MS / 5);
      }
    },
    async expectSound(live = hosts) {
      const open = `select id from tasks where state in ('NEW', 'RUNNING')`;
      await until(async () => (await rows.query(open)).rows.length === 0, 120, 'the end of all tasks');
      expect((await rows.query(`select state, error from tasks where state <> 'FINISHED'`)).rows).toEqual([]);
      expect(await runOn(services, ['quota', 'audit'], env)).toMatch(/match/);
      const compare = async () => {
        const served = await servedBy(live, seen);
        expect(served).toEqual(await wantedFor(live, seen, served.addresses));
      };
      await vi.waitFor(compare, { timeout: 60_000, interval: 200 });
    },
    async remove() {
      await rows.end();
      await cluster.stop();
      await lab.remove();
      await drop();
    },
  };
}

const POLL_MS = 50;

interface Task {
  state: string;
  created_resources: Record<string, string[]>;
}

interface Seen {
  lab: Lab;
  cluster: CephCluster;
  rows: pg.Pool;
}

/** What hosts serve, and should serve. All lists are sorted. */
interface Served {
  /** `pool member address:port weight`, by host. */
  members: Record<string, string[]>;
  /** `share network mode` of each access rule, by NFS group. */
  exports: Record<string, string[]>;
  /** `share address of the host`: the clients of Ceph that are not fenced, by NFS group. */
  clients: Record<string, string[]>;
  /** Hosts with a record of a server, by NFS group. */
  servers: Record<string, string[]>;
  /** Hosts, by address that moves. */
  addresses: Record<string, string[]>;
}

const recordsOf = ({ admin: bridge, pool, filesystem }: CephCluster) =>
  groupRecords({ bridge, regionId: REGION, pool, filesystem });

async function servedBy(live: LabNode[], { lab, cluster, rows }: Seen): Promise<Served> {
  const records = recordsOf(cluster);
  const served: Served = { members: {}, exports: {}, clients: {}, servers: {}, addresses: {} };
  for (const host of live) {
    const dataDir = dataDirOf(host);
    // Each node has its own /run.
    served.members[host.name] = (
      await proxyOf({ dataDir }, join(host.folder, layoutOf(dataDir).masterSocket)).has()
    ).members;
  }
  const vips = await rows.query<{ vip_address: string }>('select vip_address from load_balancers');
  const inUse = await rows.query<{ nfs_group: string }>('select distinct nfs_group from file_shares');
  const used = inUse.rows.map(({ nfs_group: group }) => group);
  const holdersOf = await readHolders(lab.hosts);
  for (const address of [...vips.rows.map((row) => row.vip_address), ...used]) {
    served.addresses[address] = holdersOf(address).map(({ name }) => name);
  }
  const sessions = await sessionsOf(cluster);
  for (const group of groups) {
    served.servers[group] = [...(await records.servers(group)).values()].map(({ host }) => host);
    const clients = sessions.filter(({ label }) => label === `${REGION}/${group}`).map(({ text }) => text);
    // The last server of a group has ended, and leaves sessions that expire.
    served.clients[group] = served.servers[group].length === 0 ? [] : clients.sort();
    const holder = live.find(({ name }) => name === served.servers[group]![0]);
    served.exports[group] = holder ? exportsIn(join(filesIn(dataDirOf(holder), group), 'ganesha.conf')) : [];
  }
  return served;
}

/** `addresses`: where they are. */
async function wantedFor(live: LabNode[], { lab, rows }: Seen, addresses: Served['addresses']): Promise<Served> {
  const listed = async (sql: string) => (await rows.query<{ line: string }>(sql)).rows.map(({ line }) => line).sort();
  const members = await listed(
    `select concat(pool_id, ' ', id, ' ', address, ':', protocol_port, ' ', weight) as line from lb_members`,
  );
  const wanted: Served = {
    members: Object.fromEntries(live.map(({ name }) => [name, members])),
    ...{ exports: {}, clients: {}, servers: {} },
    addresses: Object.fromEntries(
      Object.entries(addresses).map(([address, names]) => [address, names.length === 1 ? names : ['one host']]),
    ),
  };
  for (const group of groups) {
    const ofGroup = `from file_shares s where nfs_group = '${group}'`;
    const shares = await listed(`select id as line ${ofGroup}`);
    const holder = lab.hosts.find(({ name }) => name === addresses[group]?.[0]);
    wanted.servers[group] = shares.length === 0 ? [] : [holder?.name ?? 'one host'];
    wanted.clients[group] = shares.map((id) => `${id} ${holder?.address}`);
    wanted.exports[group] = await listed(
      `select concat(s.id, ' ', r.network, ' ', r.access_level) as line
       ${ofGroup.replace('where', 'join file_share_access_rules r on r.file_share_id = s.id where')}`,
    );
  }
  return wanted;
}

/** Reads the addresses of all hosts once. A dead host keeps its addresses until it boots, and nobody reaches them. */
async function readHolders(hosts: LabNode[]): Promise<(address: string) => LabNode[]> {
  const live = hosts.filter((host) => host.pids().length > 0);
  const lists = await Promise.all(live.map((host) => host.addresses()));
  return (address) => live.filter((_, at) => lists[at]!.includes(address));
}

/** The exports of a Ganesha. The entry for the probe of its own host is not an access rule. */
function exportsIn(file: string): string[] {
  const [, ...blocks] = readFileSync(file, 'utf8').split('EXPORT {');
  return blocks
    .flatMap((block) => {
      const id = /Pseudo = "\/shares\/([^"]+)"/.exec(block)![1];
      const rules = [...block.matchAll(/Clients = ([^;]+); Access_Type = (RW|RO);/g)];
      return rules.map(([, network, mode]) => `${id} ${network} ${mode!.toLowerCase()}`);
    })
    .sort();
}

/** The clients of the metadata server that belong to NFS groups. One that was fenced is not among them. */
async function sessionsOf({ admin, filesystem }: CephCluster): Promise<{ label: string; text: string }[]> {
  const request = { prefix: 'session ls' };
  const [text = '[]'] = await admin.call<string[]>('mds.command', { filesystem, request });
  const sessions = JSON.parse(text) as {
    entity: { addr: { addr: string } };
    client_metadata: { entity_id?: string; cloudyard_nfs_group?: string };
  }[];
  return sessions.flatMap(({ entity, client_metadata: { entity_id: user = '', cloudyard_nfs_group: label } }) =>
    label === undefined ? [] : [{ label, text: `${user.split('.').at(-1)} ${entity.addr.addr.split(':')[0]}` }],
  );
}

const dataDirOf = (host: LabNode) => join(host.folder, 'data', 'host');

function regionsFile(folder: string, { conf, pool, filesystem }: CephCluster): string {
  const path = join(folder, 'regions.yaml');
  writeFileSync(
    path,
    `regions:
  - id: ${REGION}
    display_name: three
    country: LU
    vip_range: 10.77.1.0/24
    vip_range_v6: fd00:77:0:1::/64
    storage: { driver: ceph, conf: ${conf}, user: cloudyard, pool: ${pool}, filesystem: ${filesystem} }
    hosts:
      nfs_addresses: [${groups.map((address) => JSON.stringify(address)).join(', ')}]
      address_groups: 3
      lease_seconds: 4
`,
  );
  return path;
}
