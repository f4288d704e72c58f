/**
 * Hosts that serve file shares, without agents and database: each host is a process that runs the part of file shares, and this
 * module stands for what the agents share. It publishes states to hosts that are alive, and knows which ones are.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCephBridge } from '../../src/drivers/ceph/bridge.ts';
import { createCephFileShareDriver } from '../../src/drivers/nfs-groups/driver.ts';
import type { FileShareDriver } from '../../src/drivers/file-share.ts';
import { groupRecords, type GroupRecords } from '../../src/drivers/nfs-groups/records.ts';
import type { PublishedShare } from '../../src/drivers/nfs-groups/share-state.ts';
import type { Publisher, RegionView } from '../../src/hosts/part.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { type Calls, type Channel, openCalls } from '../../src/platform/process-calls.ts';
import { type CephCluster, startCephCluster } from './ceph-cluster.ts';
import { createLab, type Lab, type LabNode } from './lab.ts';
import type { WriterReport } from './nfs-writer-process.ts';

export const GROUP = '10.77.2.1';
export const GROUP6 = 'fd00:77:0:2::1';
const GROUPS = [GROUP, GROUP6];
const REGION = 1;
const LEASE_SECONDS = 3;
const USER = 'cloudyard';
/** The capabilities of docs/guides/ceph.md, "Capabilities for file shares". */
export const CAPABILITIES = {
  mon: 'profile rbd, allow r, allow command "auth get-or-create", allow command "auth caps", allow command "auth rm"',
  mgr: 'profile rbd pool=volumes, allow module volumes rw',
  osd: 'profile rbd pool=volumes, allow rw tag cephfs data=shares',
  mds: 'allow *',
};

export interface NfsHost {
  readonly node: LabNode;
  /** Starts its process, which converges and serves. */
  start(): Promise<void>;
  /** As an agent that has its lease again: converges and serves. */
  join(): Promise<void>;
  call: Calls['call'];
  /** Only the process of the agent; Ganesha ends with it. */
  kill(): Promise<void>;
  /** SIGSTOP to the process of the agent: it does not notice what happens. */
  freeze(): void;
  thaw(): void;
  /** The pid of the Ganesha of a group. */
  ganesha(group: string): number;
}

export interface NfsRegion {
  lab: Lab;
  cluster: CephCluster;
  hosts: NfsHost[];
  records: GroupRecords;
  /** As the region's worker runs it. */
  driver: FileShareDriver;
  /** Another one, as after a crash of the worker. */
  createDriver(): FileShareDriver;
  /** The host whose server of a group serves; waits until there is one other than `besides`. */
  server(group: string, besides?: NfsHost): Promise<NfsHost>;
  /** What the database would know: the host does not renew its lease. Publishing does not wait for it. */
  setDead(host: NfsHost): Promise<void>;
  /** The published state of a share. */
  published(id: string): PublishedShare | undefined;
  writer(client: LabNode): Writer;
  remove(): Promise<void>;
}

export interface Writer {
  /** `lock`: default true. `group`: its address; default GROUP. */
  open(share: string, options: { name: string; lock?: boolean; group?: string }): Promise<void>;
  write(): Promise<void>;
  report(): Promise<WriterReport>;
  stop(): Promise<void>;
  verify(): Promise<boolean>;
  writeOnce(text: string): Promise<string | null>;
  writeAt(offset: number): Promise<string | null>;
  /** Why a share is not reached; null: it is reached. Needs no `open`. */
  lookUp(share: string): Promise<string | null>;
  /** Leaves the server that it reaches now, and ends the process. */
  close(): Promise<void>;
  /** Until this many writes have been done since the call. */
  untilWritten(count: number): Promise<void>;
}

export async function createNfsRegion({ hosts: count = 3 } = {}): Promise<NfsRegion> {
  const lab = await createLab({ hosts: count, clients: 2 });
  const { services } = lab;
  const prefix = services.command('env', []);
  const cluster = await startCephCluster({ address: services.address, prefix: [prefix.file, ...prefix.args] });
  await cluster.addUser(USER, CAPABILITIES);
  const bridge = createCephBridge({
    ...{ conf: cluster.conf, user: USER, log: silentLogger },
    prefix: [prefix.file, ...prefix.args],
  });
  await bridge.start();
  const alive = new Set<NfsHost>();
  const processes: ChildProcess[] = [];
  const published = new Map<string, PublishedShare>();

  const view = (self: string): RegionView => ({
    ...{ regionId: REGION, vipRange: null, vipRangeV6: null, self },
    storage: { driver: 'ceph', conf: cluster.conf, user: USER, pool: cluster.pool, filesystem: cluster.filesystem },
    settings: {
      ...{ nfsAddresses: GROUPS, apiAddress: null, registryAddress: null, addressGroups: 1, virtualRouterId: 1 },
      leaseSeconds: LEASE_SECONDS,
    },
    hosts: hosts.map((host) => ({
      ...{ name: host.node.name, address: host.node.address, interface: host.node.interface, state: 'active' as const },
      ...{ leaseValid: alive.has(host), converged: alive.has(host) },
    })),
  });
  const announce = () =>
    Promise.all([...alive].map((host) => host.call('hostsChanged', view(host.node.name)).catch(() => undefined)));

  const createHost = (node: LabNode): NfsHost => {
    let child: ChildProcess | null = null;
    let calls: Calls | null = null;
    const host: NfsHost = {
      node,
      async start() {
        const script = join(import.meta.dirname, 'nfs-host-process.ts');
        child = spawnNode(node, [script, '--data', join(node.folder, 'data'), '--conf', cluster.conf]);
        processes.push(child);
        calls = openCalls(child as unknown as Channel, {});
        await host.join();
      },
      async join() {
        await calls!.call('start', { region: view(node.name), states: [...published] });
        alive.add(host);
        await announce();
      },
      call: (name, argument) => calls!.call(name, argument),
      async kill() {
        alive.delete(host);
        const exited = new Promise((resolve) => child!.once('exit', resolve));
        child!.kill('SIGKILL');
        await exited;
      },
      freeze: () => void child!.kill('SIGSTOP'),
      thaw: () => void child!.kill('SIGCONT'),
      ganesha: (group) => pidOf(join(node.folder, 'data', 'nfs-groups', group.replaceAll(':', '_'), 'ganesha.pid')),
    };
    return host;
  };
  const hosts = lab.hosts.map(createHost);

  const publisher: Publisher<PublishedShare> = {
    async publish(id, state) {
      if (state) published.set(id, state);
      else published.delete(id);
      await Promise.all([...alive].map((host) => host.call('apply', { id, state })));
    },
    ids: async () => [...published.keys()],
    states: async () => new Map(published),
    undecodable: async () => new Map(),
    readings: async () => new Map(),
  };
  const place = { bridge, regionId: REGION, pool: cluster.pool, filesystem: cluster.filesystem };
  const records = groupRecords(place);

  const createDriver = () => createCephFileShareDriver({ ...place, publisher, serverSeconds: 60, log: silentLogger });
  return {
    ...{ lab, cluster, hosts, records, createDriver, driver: createDriver() },
    async server(group, besides) {
      for (;;) {
        const servers = [...(await records.servers(group)).values()].filter(({ serving }) => serving);
        const found = hosts.find(({ node }) => servers.some(({ host }) => host === node.name));
        if (found && found !== besides) return found;
        await sleep(POLL_MS);
      }
    },
    async setDead(host) {
      alive.delete(host);
      await announce();
    },
    published: (id) => published.get(id),
    writer: startWriter,
    async remove() {
      for (const child of processes) child.kill('SIGKILL');
      await bridge.stop();
      await cluster.stop();
      await lab.remove();
    },
  };
}

const POLL_MS = 50;

/** A client on a node. */
export function startWriter(node: LabNode): Writer {
  const child = spawnNode(node, [join(import.meta.dirname, 'nfs-writer-process.ts')]);
  return writerOf(openCalls(child as unknown as Channel, {}), () => child.kill('SIGKILL'));
}

function writerOf({ call }: Calls, end: () => void): Writer {
  const report = () => call<WriterReport>('report');
  return {
    async close() {
      await call('leave');
      end();
    },
    open: (share, { name, lock = true, group = GROUP }) =>
      call('open', { host: group, share: `/shares/${share}`, name, lock }),
    write: () => call('write'),
    report,
    stop: () => call('stop'),
    verify: () => call('verify'),
    writeOnce: (text) => call('writeOnce', text),
    lookUp: (share) => call('lookUp', { host: GROUP, share: `/shares/${share}`, name: 'visitor' }),
    writeAt: (offset) => call('writeAt', { offset }),
    async untilWritten(count) {
      const { writes } = await call<WriterReport>('progress');
      for (;;) {
        const now = await call<WriterReport>('progress');
        if (now.failure !== null) throw new Error(`the writer failed: ${now.failure}`);
        if (now.writes >= writes + count) return;
        await sleep(POLL_MS);
      }
    },
  };
}

function spawnNode(node: LabNode, args: string[]): ChildProcess {
  const log = openSync(join(node.folder, 'log'), 'a');
  const child = node.spawn(process.execPath, args, { stdio: ['ignore', log, log, 'ipc'] });
  closeSync(log);
  return child;
}

function pidOf(file: string): number {
  return Number(readFileSync(file, 'utf8'));
}
