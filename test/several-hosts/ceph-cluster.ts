/**
 * A Ceph cluster from nothing in about 7 s: one monitor, one manager, OSDs on sparse files and a metadata server
 * if wanted. Its daemons are children of this process, die with it, and use an address of their own, so that clusters of several
 * tests do not meet.
 *
 * Data of clients: pool `volumes` (RBD), filesystem `shares` (CephFS), pool `.nfs` (recovery state of NFS-Ganesha).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CephBridge, createCephBridge } from '../../src/drivers/ceph/bridge.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { configurationText, makeKeyring, makeMonitor, makePools, makeStore, registerOsd } from './ceph-stores.ts';

export interface CephClusterOptions {
  /** Of all daemons; it must exist where they run. Default: a loopback address of its own. */
  address?: string;
  /** Default: 2, one for each copy of an object. */
  osds?: number;
  /** Starts a metadata server and creates the filesystem. Default: true. */
  filesystem?: boolean;
  /** Creates the pools and the filesystem. Default: true. */
  pools?: boolean;
  /** A command that runs the daemons, for example `['ip', 'netns', 'exec', 'storage']`. */
  prefix?: string[];
}

type DaemonName = 'mon.a' | 'mgr.x' | 'mds.a' | `osd.${number}`;

export interface CephCluster {
  folder: string;
  /** The configuration of clients. It names `<folder>/keyring.<user>` for users made with `addUser`. */
  conf: string;
  address: string;
  pool: string;
  filesystem: string;
  /** Connected as `client.admin`. */
  admin: CephBridge;
  /** A command of the monitors, for example `{ prefix: 'osd pool create', pool: 'x' }`. Returns parsed JSON. */
  command(command: Record<string, unknown>): Promise<unknown>;
  /** Creates `client.<name>` with these capabilities (`{ mon: 'profile rbd' }`) and its keyring. */
  addUser(name: string, caps: Record<string, string>): Promise<void>;
  /** Kills a daemon, as a crash does. */
  kill(name: DaemonName): Promise<void>;
  start(name: DaemonName): void;
  /** Freezes a daemon (SIGSTOP), or continues it (SIGCONT): it is away, and its connections stay open. */
  signal(name: DaemonName, signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Until all daemons that were started serve and all data is clean. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

const READY_SECONDS = 90;

export async function startCephCluster(options: CephClusterOptions = {}): Promise<CephCluster> {
  const { osds = 2, filesystem = true, pools = true, prefix = [] } = options;
  const address = options.address ?? `127.${randomInt(80, 120)}.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-ceph-'));
  const conf = join(folder, 'ceph.conf');
  const osdIds = Array.from({ length: osds }, (_, id) => id);
  const daemons = new Map<DaemonName, ChildProcess>();
  const fsid = randomUUID();
  const keyring = join(folder, 'keyring.admin');
  await writeFile(conf, configurationText({ folder, fsid, address, replicas: Math.min(osds, 2) }));
  await makeKeyring(keyring, osdIds);
  for (const each of ['log', 'run', 'mon.a', 'mgr.x', 'mds.a', ...osdIds.map((id) => `osd.${id}`)]) {
    await mkdir(join(folder, each));
  }
  const start = (name: DaemonName) => void daemons.set(name, spawnDaemon({ folder, prefix }, name));
  const kill = async (name: DaemonName) => {
    const child = daemons.get(name);
    daemons.delete(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  };
  const admin = createCephBridge({ conf, user: 'admin', prefix, log: silentLogger });
  const command: CephCluster['command'] = async (wanted) => {
    const out = await admin.call<string>('command', { target: 'mon', command: { format: 'json', ...wanted } });
    return out.trim() === '' ? null : JSON.parse(out);
  };
  const stop = async () => {
    await admin.stop();
    await Promise.all([...daemons.keys()].map(kill));
    await rm(folder, { recursive: true, force: true });
  };

  const cluster: CephCluster = {
    ...{ folder, conf, address, admin, command, kill, start, stop, pool: 'volumes', filesystem: 'shares' },
    signal: (name, signal) => void daemons.get(name)?.kill(signal),
    async addUser(name, caps) {
      const list = Object.entries(caps).flat();
      const input = { prefix: 'auth get-or-create', entity: `client.${name}`, caps: list, format: 'plain' };
      const text = await admin.call<string>('command', { target: 'mon', command: input });
      await writeFile(join(folder, `keyring.${name}`), text);
    },
    ready: () => untilReady(cluster, daemons),
  };
  try {
    const uuids = osdIds.map(() => randomUUID());
    const stores = osdIds.map((id) => makeStore(conf, id, uuids[id]!));
    await makeMonitor({ folder, fsid, address });
    start('mon.a');
    start('mgr.x');
    await Promise.all([admin.start(), ...stores]);
    for (const id of osdIds) await registerOsd(admin, keyring, id, uuids[id]!);
    for (const id of osdIds) start(`osd.${id}`);
    if (pools) await makePools(admin, filesystem);
    if (filesystem) start('mds.a');
    await cluster.ready();
    return cluster;
  } catch (error) {
    const logs = await Promise.all([...daemons.keys()].map((name) => lastLines(folder, name)));
    await stop();
    throw new Error(`the Ceph cluster did not start: ${(error as Error).message}\n${logs.join('\n')}`, {
      cause: error,
    });
  }
}

interface Place {
  folder: string;
  prefix: string[];
}

function spawnDaemon({ folder, prefix }: Place, name: DaemonName): ChildProcess {
  const [kind, id] = name.split('.') as [string, string];
  const out = openSync(join(folder, 'log', `${name}.out`), 'a');
  // A daemon must not outlive the process of the tests.
  const args = [
    '--pdeathsig',
    'KILL',
    '--',
    ...prefix,
    `ceph-${kind}`,
    '-i',
    id,
    '-f',
    '-c',
    join(folder, 'ceph.conf'),
  ];
  const child = spawn('setpriv', args, { stdio: ['ignore', out, out] });
  closeSync(out);
  child.on('error', () => undefined);
  return child;
}

/** Until all started daemons serve and all placement groups are clean. */
async function untilReady(cluster: CephCluster, daemons: Map<DaemonName, ChildProcess>): Promise<void> {
  const giveUp = Date.now() + READY_SECONDS * 1000;
  const osds = [...daemons.keys()].filter((name) => name.startsWith('osd.')).length;
  for (let last = 'no status'; ; await sleep(100)) {
    const died = [...daemons].find(([, child]) => child.exitCode !== null || child.signalCode !== null);
    if (died) throw new Error(`${died[0]} exited`);
    if (Date.now() > giveUp) throw new Error(`not ready after ${READY_SECONDS} s: ${last}`);
    const status = (await cluster.command({ prefix: 'status' }).catch(() => null)) as Status | null;
    if (!status) continue;
    const clean = status.pgmap.pgs_by_state?.find(({ state_name }) => state_name === 'active+clean')?.count ?? 0;
    const seen = {
      osds: status.osdmap.num_up_osds === osds,
      manager: status.mgrmap.available,
      groups: clean === status.pgmap.num_pgs,
      mds: !daemons.has('mds.a') || isActive(status.fsmap),
      usage: await reportsUsage(cluster),
    };
    if (Object.values(seen).every(Boolean)) return;
    last = JSON.stringify(seen);
  }
}

interface Status {
  osdmap: { num_up_osds: number };
  mgrmap: { available: boolean };
  pgmap: { num_pgs: number; pgs_by_state?: { state_name: string; count: number }[] };
  fsmap: { by_rank?: { status: string }[]; 'up:standby'?: number; max?: number };
}

/** Without a filesystem the server is a standby. */
function isActive({ by_rank: ranks = [], max, ...standby }: Status['fsmap']): boolean {
  return ranks.some(({ status }) => status === 'up:active') || (max === undefined && Boolean(standby['up:standby']));
}

/** The manager reports the usage of a new pool some seconds later. */
async function reportsUsage({ command }: CephCluster): Promise<boolean> {
  const pools = (await command({ prefix: 'osd lspools' })) as { poolname: string }[];
  const { pools: reported } = (await command({ prefix: 'df' })) as { pools: { name: string }[] };
  const names = new Set(reported.map(({ name }) => name));
  return pools.every(({ poolname }) => names.has(poolname));
}

async function lastLines(folder: string, name: DaemonName): Promise<string> {
  const text = await readFile(join(folder, 'log', `${name}.out`), 'utf8').catch(() => '');
  return text === '' ? '' : `${name}: ${text.trimEnd().split('\n').slice(-5).join('\n')}`;
}
