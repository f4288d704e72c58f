/**
 * A region of three hosts, which are network namespaces on this machine, with real HAProxy and keepalived: how long changes,
 * convergence and fail-over take with many load balancers. BENCH_BALANCERS sets how many.
 */
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildProcess } from 'node:child_process';
import { root } from '../src/main/root.ts';
import { openYard } from '../test/processes.ts';
import type { Yard } from '../test/processes.ts';
import { startGapClient, startServers } from '../test/several-hosts/balancer-region.ts';
import { createLab, labWorks } from '../test/several-hosts/lab.ts';
import type { Lab, LabNode } from '../test/several-hosts/lab.ts';
import { until } from '../test/until.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const defaultBalancers = 1000;
const concurrency = 50;
const leaseSeconds = 15;
const memberPort = 8080;
const regions = `regions:
  - id: 1
    display_name: hosts
    country: LU
    vip_range: 10.77.16.0/20
    member_networks: [10.77.0.0/24]
    hosts: { lease_seconds: ${leaseSeconds}, address_groups: 6 }
`;
const balancersPath = '/cloud/v1/loadbalancers/1/1';

interface Region {
  lab: Lab;
  yard: Yard;
  env: Record<string, string>;
  agents: Map<string, ChildProcess>;
}

export async function severalHosts(workplace: Workplace): Promise<Row[]> {
  if (!labWorks()) return [{ what: 'hosts', why: 'skipped: it needs root, iproute2 and haproxy' }];
  const count = Number(process.env['BENCH_BALANCERS'] ?? defaultBalancers);
  const region = await startRegion(workplace);
  const { lab, yard } = region;
  const [h1, , h3] = lab.hosts as [LabNode, LabNode, LabNode];
  await startServers(lab.services, [memberPort]);

  const created = await seconds(() => createBalancers(yard, count));
  const cpuBefore = cpuSecondsOf(region, 'h3');
  await sleep(idleMs);
  const idleCpu = ((cpuSecondsOf(region, 'h3') - cpuBefore) / (idleMs / 1000)) * 100;
  const oneMore: number[] = [];
  for (let i = 0; i < 7; i++) oneMore.push((await seconds(() => createBalancer(yard))) * 1000);
  const memory = memoryOf(region, 'h3');

  // The agent and its data planes are killed, and the cable is unplugged first.
  await h3.die();
  const whileAway = await seconds(() => createBalancer(yard));
  await h3.boot();
  startAgent(region, h3);
  const converged = await seconds(() => untilServing(yard, ['h1', 'h2', 'h3']));

  const url = await urlOn(h1);
  const gap = await gapOf(lab.clients[0]!, url, () => h1.die());
  await h1.boot();
  startAgent(region, h1);
  await untilServing(yard, ['h1', 'h2', 'h3']);
  const drained = await gapOf(lab.clients[0]!, await urlOn(lab.node('h2')), async () => {
    await yard.post('/cloudyard/v1/hosts/1/h2/drain');
    await until(async () => (await hostOf(yard, 'h2')).state === 'drained', 120, 'h2 is drained');
  });
  const of = `${count} balancers on 3 hosts`;
  const row = (what: string, values: number[], unit: 'ms' | 's' | 'MB' | 'failures', atMost: number): Row => ({
    ...{ what: `hosts: ${what}`, values, unit, bar: { atMost } },
  });
  return [
    row(`${of} created`, [created], 's', 300),
    row(`one more, p50`, oneMore, 'ms', 1000),
    row('a create while a host is dead', [whileAway], 's', leaseSeconds + 4),
    row('a dead host returns until it serves', [converged], 's', 60),
    row('host dies: longest gap of HTTP', [gap.longestGapMs], 'ms', 2000),
    row('drain: failed HTTP requests', [drained.failures], 'failures', 0),
    row('memory of an agent', [memory], 'MB', 300),
    row('CPU time of an idle agent, ms a second', [idleCpu * 10], 'ms', 50),
  ];
}

const idleMs = 20_000;

async function startRegion(workplace: Workplace): Promise<Region> {
  const file = join(workplace.dir, 'regions.yaml');
  writeFileSync(file, regions);
  const yard = await openYard(
    {
      ...{ CLOUDYARD_REGIONS_FILE: file, CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy', CLOUDYARD_LOG_LEVEL: 'warn' },
      ...{ CLOUDYARD_WORKER_CONCURRENCY: String(concurrency), CLOUDYARD_DATABASE_POOL_SIZE: '16' },
    },
    { isEmpty: true },
  );
  workplace.closing(async () => yard.cleanUp());
  await yard.start(['serve']);
  const limits = { region_id: 1, loadbalancer_count_limit: 1e9 };
  await yard.patch('/cloudyard/v1/clients/1/quotas', limits);
  const lab = await createLab({ hosts: 3, clients: 1 });
  workplace.closing(lab.remove);
  const env = {
    ...{ ...yard.env, DATABASE_URL: yard.databaseUrl(), CLOUDYARD_KEY_FILE: join(yard.dataDir, 'secret.keys') },
  };
  const region: Region = { lab, yard, env, agents: new Map() };
  await yard.start(['worker', '--region', '1'], { ...env, CLOUDYARD_DATA_DIR: join(workplace.dir, 'worker') });
  for (const node of lab.hosts) startAgent(region, node);
  await untilServing(yard, ['h1', 'h2', 'h3']);
  return region;
}

function startAgent({ env, agents }: Region, node: LabNode): void {
  const script = join(root, 'src', 'main', 'cloudyard.ts');
  const child = node.spawn(process.execPath, [script, 'host', '--region', '1'], {
    env: {
      ...{ ...process.env, ...env, CLOUDYARD_DATA_DIR: join(node.folder, 'data'), CLOUDYARD_HOST_NAME: node.name },
      CLOUDYARD_HOST_ADDRESS: node.address,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = createWriteStream(join(node.folder, 'agent.log'), { flags: 'a' });
  for (const stream of [child.stdout!, child.stderr!]) stream.pipe(log);
  agents.set(node.name, child);
}

const hostOf = async (yard: Yard, name: string) => (await yard.get(`/cloudyard/v1/hosts/1/${name}`)).body;

async function untilServing(yard: Yard, names: string[]): Promise<void> {
  const serving = async () =>
    (await yard.get('/cloudyard/v1/hosts')).body.results
      .filter((host: { lease_valid: boolean; converged: boolean }) => host.lease_valid && host.converged)
      .map(({ name }: { name: string }) => name);
  await until(async () => (await serving()).join() === names.join(), 300, `${names.join(', ')} serve`);
}

/** The URL of a load balancer whose address this host holds. */
async function urlOn(node: LabNode): Promise<string> {
  let held: string | undefined;
  const find = async () => {
    held = (await node.addresses()).find((address) => isVip.test(address));
    return held !== undefined;
  };
  await until(find, 120, `${node.name} holds an address`);
  return `http://${held!.split('/')[0]}:8000/`;
}

const isVip = /^10\.77\.(1[6-9]|2\d|3[01])\./;

async function createBalancer(yard: Yard): Promise<void> {
  const pool = {
    ...{ name: 'bench', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' },
    members: [{ address: '10.77.0.1', protocol_port: memberPort }],
  };
  const listeners = [{ name: 'bench', protocol: 'HTTP', protocol_port: 8000, pools: [pool] }];
  const answer = await yard.post(balancersPath, { name: 'bench', listeners });
  const task = await yard.ended(answer, 300);
  if (task.state !== 'FINISHED') throw new Error(`a load balancer is ${task.state}: ${task.error}`);
}

async function createBalancers(yard: Yard, count: number): Promise<void> {
  let left = count;
  const work = async () => {
    while (left-- > 0) await createBalancer(yard);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

async function gapOf(client: LabNode, url: string, event: () => Promise<void>) {
  const measuring = await startGapClient(client, url);
  await event();
  await measuring.answering();
  return measuring.stop();
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

const ticksPerSecond = 100;

/** User and system time of the agent, without its data planes. */
function cpuSecondsOf({ agents }: Region, name: string): number {
  const fields = readFileSync(`/proc/${agents.get(name)!.pid}/stat`, 'utf8')
    .split(') ')[1]!
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function memoryOf({ agents }: Region, name: string): number {
  const status = readFileSync(`/proc/${agents.get(name)!.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) / 1024;
}
