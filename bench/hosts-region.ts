/**
 * A region of three hosts, which are network namespaces on this machine, with real HAProxy, keepalived, Ceph and NFS-Ganesha.
 * The API server and PostgreSQL run on this machine, the worker and Ceph on the node of services.
 */
import type { ChildProcess } from 'node:child_process';
import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { allocator, nodeFlags } from '../bin/node-flags.mjs';
import { root } from '../src/platform/program-files.ts';
import { openYard, type Yard } from '../test/processes.ts';
import { requires } from '../test/requires.ts';
import { startServers } from '../test/several-hosts/balancer-region.ts';
import { startCephCluster } from '../test/several-hosts/ceph-cluster.ts';
import { createLab, type Lab, type LabNode } from '../test/several-hosts/lab.ts';
import { CAPABILITIES } from '../test/several-hosts/nfs-hosts.ts';
import { until } from '../test/until.ts';
import { liftQuotas } from './shares.ts';
import type { Workplace } from './workplace.ts';

export const leaseSeconds = 15;
/** At most 30 shares each. */
const nfsGroups = 10;
const memberPort = 8080;
const balancersPath = '/cloud/v1/loadbalancers/1/1';
const sharesPath = '/cloud/v1/file_shares/1/1';
/** Creates at the same time, of the client and of the worker. */
const concurrency = 50;

export interface HostsRegion {
  lab: Lab;
  yard: Yard;
  /** Whether the programs for file shares are installed. */
  hasShares: boolean;
  startAgent(node: LabNode): void;
  /** Resolves when all hosts have their leases and have converged. */
  untilServing(): Promise<void>;
  /** As the API returns it. */
  host(name: string): Promise<{ state: string; lease_valid: boolean; converged: boolean }>;
  /** The pid of an agent. Its data planes are other processes. */
  pidOf(name: string): number;
}

const shareParts = ['ceph', 'ceph-mds', 'nfs-ganesha', 'nfs-ganesha-ceph', 'iputils-arping'] as const;

export async function startHostsRegion(workplace: Workplace): Promise<HostsRegion> {
  const hasShares = requires(...shareParts);
  const lab = await createLab({ hosts: 3, clients: 1 });
  workplace.closing(lab.remove);
  const file = join(workplace.dir, 'regions.yaml');
  writeFileSync(file, regionsFile(hasShares ? await startStorage(workplace, lab) : null));
  const yard = await openYard(
    {
      ...{ CLOUDYARD_REGIONS_FILE: file, CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy', CLOUDYARD_LOG_LEVEL: 'warn' },
      ...{
        CLOUDYARD_WORKER_CONCURRENCY: String(concurrency),
        CLOUDYARD_DATABASE_POOL_SIZE: '16',
        CLOUDYARD_NFS_PORT: '2049',
      },
    },
    { isEmpty: true },
  );
  workplace.closing(async () => yard.cleanUp());
  await yard.start(['serve']);
  await liftQuotas({ request: async (_, path, body) => (await yard.patch(path, body)).body });
  await startServers(lab.services, [memberPort]);

  const env = { ...yard.env, DATABASE_URL: yard.databaseUrl(), CLOUDYARD_KEY_FILE: join(yard.dataDir, 'secret.keys') };
  const start = (node: LabNode, program: string, own: Record<string, string> = {}): ChildProcess => {
    const script = join(root, 'src', 'main', 'cloudyard.ts');
    const child = node.spawn(process.execPath, [...nodeFlags, script, program, '--region', '1'], {
      env: { ...process.env, ...allocator, ...env, CLOUDYARD_DATA_DIR: join(node.folder, 'data'), ...own },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const log = createWriteStream(join(node.folder, `cloudyard-${program}.log`), { flags: 'a' });
    for (const stream of [child.stdout!, child.stderr!]) stream.pipe(log);
    return child;
  };
  const agents = new Map<string, ChildProcess>();
  const region: HostsRegion = {
    ...{ lab, yard, hasShares },
    startAgent(node) {
      const own = { CLOUDYARD_HOST_NAME: node.name, CLOUDYARD_HOST_ADDRESS: node.address };
      agents.set(node.name, start(node, 'host', own));
    },
    async untilServing() {
      const serves = async ({ name }: LabNode) => {
        const { lease_valid: isValid, converged } = await region.host(name);
        return isValid && converged;
      };
      const all = async () => (await Promise.all(lab.hosts.map(serves))).every(Boolean);
      await until(all, 300, 'all hosts serve');
    },
    host: async (name) => (await yard.get(`/cloudyard/v1/hosts/1/${name}`)).body,
    pidOf: (name) => agents.get(name)!.pid!,
  };
  start(lab.services, 'worker');
  for (const node of lab.hosts) region.startAgent(node);
  await region.untilServing();
  return region;
}

/** Returns the line of the regions file that names the cluster. */
async function startStorage(workplace: Workplace, { services }: Lab): Promise<string> {
  const { file, args } = services.command('env', []);
  const cluster = await startCephCluster({ osds: 3, address: services.address, prefix: [file, ...args] });
  workplace.closing(cluster.stop);
  await cluster.addUser('cloudyard', CAPABILITIES);
  const { conf, pool, filesystem } = cluster;
  return `storage: { driver: ceph, conf: ${conf}, user: cloudyard, pool: ${pool}, filesystem: ${filesystem} }`;
}

function regionsFile(storage: string | null): string {
  const addresses = Array.from({ length: nfsGroups }, (_, at) => `10.77.2.${at + 1}`);
  const nfs = storage ? `, nfs_addresses: [${addresses.join(', ')}]` : '';
  return `regions:
  - id: 1
    display_name: hosts
    country: LU
    vip_range: 10.77.16.0/20
    member_networks: [10.77.0.0/24]
    ${storage ?? ''}
    hosts: { lease_seconds: ${leaseSeconds}, address_groups: 6${nfs} }
`;
}

export async function createBalancer({ yard }: HostsRegion): Promise<void> {
  const pool = {
    ...{ name: 'bench', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' },
    members: [{ address: '10.77.0.1', protocol_port: memberPort }],
  };
  const listeners = [{ name: 'bench', protocol: 'HTTP', protocol_port: 8000, pools: [pool] }];
  await finished(yard, await yard.post(balancersPath, { name: 'bench', listeners }));
}

export async function createShare({ yard }: HostsRegion): Promise<void> {
  const { results } = (await yard.get('/cloud/v1/networks/1/1')).body;
  const share = { name: 'bench', protocol: 'NFS', size: 1, network: { network_id: results[0].id } };
  const access = [{ ip_address: '10.77.0.0/16', access_mode: 'rw' }];
  await finished(yard, await yard.post(sharesPath, { ...share, access }));
}

async function finished(yard: Yard, answer: Awaited<ReturnType<Yard['post']>>): Promise<void> {
  const task = await yard.ended(answer, 300);
  if (task.state !== 'FINISHED') throw new Error(`a create is ${task.state}: ${task.error}`);
}

export async function createMany(create: () => Promise<void>, count: number): Promise<void> {
  let left = count;
  const work = async () => {
    while (left-- > 0) await create();
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

/** The URL of a load balancer whose address this host has. */
export const urlOn = async (node: LabNode) => `http://${await heldBy(node, /^10\.77\.(1[6-9]|2\d|3[01])\./)}:8000/`;

/** A share of an NFS group that this host serves. */
export async function shareOn({ yard }: HostsRegion, node: LabNode): Promise<{ group: string; share: string }> {
  const group = await heldBy(node, /^10\.77\.2\./);
  const { results } = (await yard.get(`${sharesPath}?limit=1000`)).body;
  const found = results.find((each: { connection_point: string }) => each.connection_point.startsWith(`${group}:`));
  return { group, share: found.id };
}

async function heldBy(node: LabNode, addresses: RegExp): Promise<string> {
  let held: string | undefined;
  const find = async () => {
    held = (await node.addresses()).find((address) => addresses.test(address));
    return held !== undefined;
  };
  await until(find, 120, `${node.name} has an address`);
  return held!;
}
