/** What the daemons of a Ceph cluster in a test need before they start: configuration, keys, stores, pools. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CephBridge } from '../../src/drivers/ceph/bridge.ts';

interface Cluster {
  folder: string;
  fsid: string;
  address: string;
}

/** Those that the cluster does not require. */
const UNUSED_MODULES = [
  ...['alerts', 'dashboard', 'diskprediction_local', 'influx', 'insights', 'iostat', 'k8sevents', 'localpool'],
  ...['mirroring', 'nfs', 'osd_perf_query', 'osd_support', 'prometheus', 'restful', 'rook', 'selftest'],
  ...['snap_schedule', 'stats', 'telegraf', 'test_orchestrator', 'zabbix'],
];

const run = promisify(execFile);
const monitorPort = 3300;
const monitorAddress = (address: string) => `v2:${address.includes(':') ? `[${address}]` : address}:${monitorPort}`;

/** Small caches, quick detection of failures, no replicas on other machines. */
export function configurationText({ folder, fsid, address, replicas }: Cluster & { replicas: number }): string {
  const ipv6 = address.includes(':');
  return `[global]
fsid = ${fsid}
mon host = [${monitorAddress(address)}]
ms bind ipv4 = ${!ipv6}
ms bind ipv6 = ${ipv6}
keyring = ${folder}/keyring.$id
log file = ${folder}/log/$name.log
crash dir = ${folder}/log
run dir = ${folder}/run
admin socket = ${folder}/run/$name.$pid.asok
auth allow insecure global id reclaim = false
mon warn on pool no redundancy = false
mon allow pool delete = true
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail warn = 1
mon data avail crit = 1
mon osd min down reporters = 1
mon osd down out interval = 600
mds beacon grace = 5
osd crush chooseleaf type = 0
osd pool default size = ${replicas}
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd client watch timeout = 5
[mon]
public addr = ${address}
keyring = ${folder}/keyring.admin
mon data = ${folder}/$name
mon cluster log file = ${folder}/log/cluster.log
mon initial members = a
paxos propose interval = 0.1
[mgr]
public addr = ${address}
keyring = ${folder}/keyring.admin
mgr data = ${folder}/$name
mgr initial modules =
# Modules that no test needs take 150 MiB.
mgr disabled modules = ${UNUSED_MODULES.join(' ')}
mgr stats period = 1
mgr tick period = 1
[osd]
public addr = ${address}
keyring = ${folder}/keyring.admin
osd data = ${folder}/$name
osd objectstore = bluestore
bluestore block size = ${6 * 1024 ** 3}
bluestore block create = true
bluestore block wal create = false
bluestore block db create = false
bluestore fsck on mount = false
bluestore cache autotune = false
bluestore cache size = ${64 * 1024 ** 2}
osd memory target = ${896 * 1024 ** 2}
osd heartbeat grace = 5
osd heartbeat interval = 1
osd op num shards = 2
osd op num threads per shard = 1
osd class load list = *
osd class default list = *
osd numa auto affinity = false
osd crush update on start = false
rocksdb cache size = ${32 * 1024 ** 2}
[mds]
public addr = ${address}
keyring = ${folder}/keyring.admin
mds data = ${folder}/$name
mds beacon interval = 0.5
mds cache memory limit = ${128 * 1024 ** 2}
mds reconnect timeout = 5
`;
}

/** One file with the keys of all daemons and of `client.admin`. */
export async function makeKeyring(file: string, osds: number[]): Promise<void> {
  const all = { mon: 'allow *', osd: 'allow *', mds: 'allow *', mgr: 'allow *' };
  const entities: Record<string, Record<string, string>> = {
    'client.admin': all,
    'mon.': { mon: 'allow *' },
    'mgr.x': { mon: 'allow profile mgr', osd: 'allow *', mds: 'allow *' },
    'mds.a': { mon: 'allow profile mds', osd: 'allow rwx', mds: 'allow *', mgr: 'allow profile mds' },
  };
  for (const id of osds) {
    entities[`osd.${id}`] = { mon: 'allow profile osd', mgr: 'allow profile osd', osd: 'allow *' };
  }
  await run('ceph-authtool', ['-C', file]);
  for (const [name, caps] of Object.entries(entities)) {
    const list = Object.entries(caps).flatMap(([service, cap]) => ['--cap', service, cap]);
    await run('ceph-authtool', [file, '-n', name, '--gen-key', ...list]);
  }
}

export async function makeMonitor({ folder, fsid, address }: Cluster): Promise<void> {
  const monmap = join(folder, 'monmap');
  await run('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', `[${monitorAddress(address)}]`, monmap]);
  const common = ['-c', join(folder, 'ceph.conf'), '--monmap', monmap, '--keyring', join(folder, 'keyring.admin')];
  await run('ceph-mon', ['-i', 'a', '--mkfs', ...common]);
}

export async function makeStore(conf: string, id: number, uuid: string): Promise<void> {
  await run('ceph-osd', ['-c', conf, '-i', String(id), '--mkfs', '--no-mon-config', '--osd-uuid', uuid]);
}

export async function registerOsd(admin: CephBridge, keyring: string, id: number, uuid: string): Promise<void> {
  const [, section = ''] = (await readFile(keyring, 'utf8')).split(`[osd.${id}]`);
  const secret = /key = (\S+)/.exec(section)![1];
  const call = (command: Record<string, unknown>, input = '') =>
    admin.call('command', { target: 'mon', command, input });
  await call({ prefix: 'osd new', uuid, id }, JSON.stringify({ cephx_secret: secret }));
  // The weight must have a fraction, which JSON.stringify(1.0) does not write.
  await call({ prefix: 'osd crush add', id, weight: 0.5, args: [`host=h${id}`, 'root=default'] });
}

export async function makePools(admin: CephBridge, filesystem: boolean): Promise<void> {
  const call = (command: Record<string, unknown>) => admin.call('command', { target: 'mon', command });
  const pools = { volumes: ['rbd', 16], '.nfs': ['nfs', 4] } as const;
  // Clones that do not need protected snapshots.
  await call({ prefix: 'osd set-require-min-compat-client', version: 'mimic' });
  for (const [pool, [app, groups]] of Object.entries(pools)) {
    await call({ prefix: 'osd pool create', pool, pg_num: groups });
    await call({ prefix: 'osd pool application enable', pool, app });
  }
  if (!filesystem) return;
  await call({ prefix: 'osd pool create', pool: 'shares.metadata', pg_num: 8 });
  await call({ prefix: 'osd pool create', pool: 'shares.data', pg_num: 16 });
  await call({ prefix: 'fs new', fs_name: 'shares', metadata: 'shares.metadata', data: 'shares.data' });
}
