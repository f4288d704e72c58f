/** Load balancers on the hosts of a lab, members behind them, and a client that measures gaps. */
import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { DesiredLoadBalancer } from '../../src/drivers/load-balancer.ts';
import type { HostView, RegionView } from '../../src/hosts/part.ts';
import type { BalancerHostCommand, BalancerHostOptions } from './balancer-host.ts';
import type { LabNode } from './lab.ts';
import { preload } from '../server-program.ts';

const settings: RegionView['settings'] = {
  nfsAddresses: [],
  apiAddress: '10.77.3.1',
  registryAddress: null,
  addressGroups: 3,
  virtualRouterId: 100,
  leaseSeconds: 3,
};

export interface BalancerHost {
  node: LabNode;
  dataDir: string;
  /** @throws the error of the host */
  perform(command: BalancerHostCommand): Promise<{ holds?: string[] }>;
  holds(): Promise<string[]>;
  log(): string;
  /** Of a daemon of this host; 0: not running. */
  pid(daemon: 'haproxy' | 'keepalived' | 'vrrp'): number;
  agentPid(): number;
}

export function viewOf(self: string, nodes: LabNode[], changes: Record<string, Partial<HostView>> = {}): RegionView {
  const hosts = nodes.map(({ name, address, interface: device }) => ({
    ...{ name, address, interface: device, state: 'active' as const, leaseValid: true, converged: true },
    ...changes[name],
  }));
  const ranges = { vipRange: '10.77.1.0/24', vipRangeV6: 'fd00:77:0:1::/64' };
  return { regionId: 1, ...ranges, storage: null, settings, self, hosts };
}

/** Resolves when it serves. */
export async function startBalancerHost(
  node: LabNode,
  nodes: LabNode[],
  { states = [], apiUrl = null }: { states?: DesiredLoadBalancer[]; apiUrl?: string | null } = {},
): Promise<BalancerHost> {
  const dataDir = join(node.folder, 'data');
  const options: BalancerHostOptions = { dataDir, region: viewOf(node.name, nodes), states, apiUrl, leaseSeconds: 3 };
  const logFile = join(node.folder, 'host.log');
  const script = join(import.meta.dirname, 'balancer-host.ts');
  // Otherwise a start takes 0.6 s of CPU time, and with it 0.2 s.
  const args = ['--import', preload, script, JSON.stringify(options)];
  const child = node.spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stderr!.pipe(createWriteStream(logFile, { flags: 'a' }));
  child.stdin!.on('error', () => undefined);
  const waiting: ((line: string) => void)[] = [];
  createInterface(child.stdout!).on('line', (line) => waiting.shift()?.(line));
  const failing = new Set<(error: Error) => void>();
  const ended = () => new Error(`${node.name} ended (${child.exitCode ?? child.signalCode}): ${log()}`);
  child.once('exit', () => {
    for (const fail of failing) fail(ended());
  });
  const nextAnswer = async () => {
    // Its exit was reported before, so nothing would end the wait.
    if (child.exitCode !== null || child.signalCode !== null) throw ended();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    waiting.push(resolve);
    failing.add(reject);
    return promise.finally(() => failing.delete(reject));
  };
  const log = () => (existsSync(logFile) ? readFileSync(logFile, 'utf8').slice(-4000) : '');
  const read = async (answer: Promise<string>) => {
    const result = JSON.parse(await answer) as { done?: true; error?: string; holds?: string[] };
    if (result.error) throw new Error(`${node.name}: ${result.error}`);
    return result;
  };
  await read(nextAnswer());
  const perform: BalancerHost['perform'] = async (command) => {
    const answer = nextAnswer();
    child.stdin!.write(`${JSON.stringify(command)}\n`);
    return read(answer);
  };
  const pidFiles = {
    haproxy: join(dataDir, 'load-balancers', 'haproxy', 'haproxy.pid'),
    keepalived: join(dataDir, 'host', 'keepalived', 'keepalived.pid'),
    vrrp: join(dataDir, 'host', 'keepalived', 'vrrp.pid'),
  };
  return {
    ...{ node, dataDir, perform, log },
    holds: async () => (await perform({ do: 'holds' })).holds ?? [],
    pid: (daemon) => (existsSync(pidFiles[daemon]) ? Number(readFileSync(pidFiles[daemon], 'utf8')) : 0),
    agentPid: () => child.pid!,
  };
}

/** An HTTP and a UDP server on each port, which answer with the name of the node and the port. Resolves when they listen. */
export async function startServers(node: LabNode, ports: number[]): Promise<ChildProcess> {
  const script = `for (const port of ${JSON.stringify(ports)}) {
    const name = '${node.name} ' + port;
    require('http').createServer((request, response) => response.end(name)).listen(port, '0.0.0.0', () => console.log('up'));
    const udp = require('dgram').createSocket('udp4');
    udp.on('message', (text, from) => udp.send(name, from.port, from.address)).bind(port, () => console.log('up'));
  }`;
  const child = node.spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  for (let up = 0; up < 2 * ports.length; up += 1) await lines.next();
  return child;
}

/** The answers of a UDP server to datagrams from one socket. */
export async function askUdp(node: LabNode, address: string, port: number): Promise<string> {
  const script = `const socket = require('dgram').createSocket('udp${address.includes(':') ? 6 : 4}');
    socket.on('message', (text) => { console.log(String(text)); process.exit(); });
    const send = () => socket.send('?', ${port}, '${address}');
    send(); setInterval(send, 500);`;
  return (await node.run(process.execPath, ['-e', script])).stdout.trim();
}

/** The first answer to a connection that speaks the protocol of HAProxy's peers; empty if it is closed. */
export async function askAsPeer(
  node: LabNode,
  address: string,
  names: { self: string; other: string },
): Promise<string> {
  const script = `const socket = require('net').connect(10077, '${address}');
    socket.write('HAProxyS 2.1\\nhost_${names.other}\\nhost_${names.self} 1 1\\n');
    socket.on('data', (bytes) => { console.log(bytes.toString('latin1').split('\\n')[0]); process.exit(); });
    socket.on('error', () => {});`;
  return (await node.run(process.execPath, ['-e', script])).stdout.trim();
}

export async function fetchText(node: LabNode, url: string): Promise<string> {
  return (await node.run('curl', ['-s', '-m', '5', '--fail', url])).stdout;
}

interface Gap {
  requests: number;
  failures: number;
  errors: Record<string, number>;
  longestGapMs: number;
  answers: Record<string, number>;
}

interface GapClient {
  /** Resolves after 10 more answers. */
  answering(): Promise<void>;
  stop(): Promise<Gap>;
}

/** Resolves after the first answer. */
export async function startGapClient(node: LabNode, url: string, { keepAlive = false } = {}): Promise<GapClient> {
  const script = join(import.meta.dirname, 'gap-client.mjs');
  const args = [script, url, ...(keepAlive ? ['--keep-alive'] : [])];
  const child: ChildProcess = node.spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  await lines.next();
  return {
    async answering() {
      child.stdin!.write('\n');
      await lines.next();
    },
    async stop() {
      const exited = once(child, 'exit');
      child.stdin!.end();
      const { value } = await lines.next();
      await exited;
      return JSON.parse(value as string) as Gap;
    },
  };
}

/** Measures while `event` runs and until answers arrive again. Prints the longest gap. */
export async function measureGap(
  name: string,
  node: LabNode,
  url: string,
  event: () => Promise<void>,
  options?: { keepAlive?: boolean },
): Promise<Gap> {
  const client = await startGapClient(node, url, options);
  await event();
  await client.answering();
  const gap = await client.stop();
  console.log(`${name}: longest gap ${gap.longestGapMs} ms, ${gap.failures} of ${gap.requests} requests failed`);
  return gap;
}
