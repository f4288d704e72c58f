/**
 * Hosts of a region as network namespaces on one Ethernet segment, a bridge in a namespace of its own. Labs do not see
 * each other or the networks of this machine, so all of them use the same addresses.
 *
 * | Node | IPv4 (/16) | IPv6 (/48) |
 * |---|---|---|
 * | services, which `forward` makes reachable | 10.77.0.1 | fd00:77::1 |
 * | hosts `h1`, `h2` … | 10.77.0.11, .12 … | fd00:77::11, ::12 … |
 * | clients `c1` … | 10.77.0.101 … | fd00:77::101 … |
 *
 * The rest of 10.77.0.0/16 and fd00:77::/48 is free for addresses that move. Nodes share the file system, and each has its
 * own /run. A lab that is not removed is removed when the test process ends, even by SIGKILL.
 */
import { type ChildProcess, execFile, execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { requires } from '../requires.ts';

export interface LabNode {
  name: string;
  /** For `ip netns exec` and `ip -n`. */
  namespace: string;
  address: string;
  address6: string;
  /** Its network interface on the segment. */
  interface: string;
  /** A folder of this node for files of the test, removed with the lab. */
  folder: string;
  /** The command line that runs a program on this node. */
  command(file: string, args: string[]): { file: string; args: string[] };
  /** Runs a program until it ends. @throws Node's error, which has `stdout` and `stderr`, if it fails */
  run(file: string, args: string[]): Promise<{ stdout: string; stderr: string }>;
  spawn(file: string, args: string[], options?: SpawnOptions): ChildProcess;
  /** The addresses of its interface at this moment, without those of the link. */
  addresses(): Promise<string[]>;
  pids(): number[];
  /** The host dies: SIGKILL to all of its processes, and its cable is unplugged first. Resolves when they are gone. */
  die(): Promise<void>;
  /** After `die`: the host is reachable again, without the addresses that it got while it ran. */
  boot(): Promise<void>;
  /** Unplugs the cable; the host notices. */
  unplug(): Promise<void>;
  plug(): Promise<void>;
}

export interface Lab {
  hosts: LabNode[];
  clients: LabNode[];
  services: LabNode;
  /** `h1`, `c1`, `services` … */
  node(name: string): LabNode;
  /** Only nodes of the same group reach each other; a node that no group names reaches none. Links stay up. */
  partition(...groups: LabNode[][]): Promise<void>;
  /** These nodes reach all others, but not each other. Links stay up. */
  isolate(nodes: LabNode[]): Promise<void>;
  /** Ends `partition` and `isolate`. */
  heal(): Promise<void>;
  /**
   * Makes a server of this machine reachable at a port of `services`, by both protocols.
   * `target`: `127.0.0.1:5432`, or the path of a Unix socket.
   */
  forward(port: number, target: string): Promise<void>;
  remove(): Promise<void>;
}

const execute = promisify(execFile);
const BRIDGE = 'lan';
const INTERFACE = 'eth0';

/** Whether labs work on this machine. If not, prints the reason, or throws in CI. */
export function labWorks(): boolean {
  if (!requires('root', 'iproute2', 'haproxy')) return false;
  const probe = `cy-probe-${randomBytes(3).toString('hex')}`;
  try {
    ip(`netns add ${probe}`, `-n ${probe} link add ${BRIDGE} type bridge`);
    return true;
  } catch (err) {
    const reason = `skipped: network namespaces are not possible here: ${(err as Error).message}`;
    if (process.env['CI']) throw new Error(`${reason}, and CI must not skip tests`, { cause: err });
    console.warn(reason);
    return false;
  } finally {
    try {
      ip(`netns del ${probe}`);
    } catch {
      // It was not added.
    }
  }
}

export async function createLab({ hosts = 3, clients = 1 } = {}): Promise<Lab> {
  const id = randomBytes(3).toString('hex');
  const folder = mkdtempSync(join(tmpdir(), `cloudyard-lab-`));
  const lan = `cy-${id}-lan`;
  const nodes = [
    createNode({ id, lan, folder, name: 'services', number: 1 }),
    ...Array.from({ length: hosts }, (_, at) => createNode({ id, lan, folder, name: `h${at + 1}`, number: 11 + at })),
    ...Array.from({ length: clients }, (_, at) =>
      createNode({ id, lan, folder, name: `c${at + 1}`, number: 101 + at }),
    ),
  ];
  const remove = removeAtEnd([...nodes.map(({ namespace }) => namespace), lan], folder);
  try {
    ip(`netns add ${lan}`);
    addBridge(lan, BRIDGE);
    for (const node of nodes) await addNode(lan, node);
  } catch (err) {
    await remove();
    throw err;
  }

  const find = (name: string) => {
    const found = nodes.find((node) => node.name === name);
    if (!found) throw new Error(`the lab has no node ${name}`);
    return found;
  };
  const joinBridge = (node: LabNode, bridge: string) => ip(`-n ${lan} link set ${node.name} master ${bridge}`);
  const setIsolated = (node: LabNode, isolated: boolean) =>
    ip(`-n ${lan} link set ${node.name} type bridge_slave isolated ${isolated ? 'on' : 'off'}`);
  let bridges: string[] = [];
  const heal = async () => {
    for (const node of nodes) {
      joinBridge(node, BRIDGE);
      setIsolated(node, false);
    }
    for (const bridge of bridges) ip(`-n ${lan} link del ${bridge}`);
    bridges = [];
  };
  return {
    hosts: nodes.filter(({ name }) => /^h\d/.test(name)),
    clients: nodes.filter(({ name }) => /^c\d/.test(name)),
    services: find('services'),
    node: find,
    async partition(...groups) {
      await heal();
      bridges = groups.map((_, at) => `part${at}`);
      for (const bridge of bridges) addBridge(lan, bridge);
      for (const node of nodes) {
        const at = groups.findIndex((group) => group.includes(node));
        if (at < 0) ip(`-n ${lan} link set ${node.name} nomaster`);
        else joinBridge(node, bridges[at]!);
      }
    },
    async isolate(isolated) {
      await heal();
      for (const node of isolated) setIsolated(node, true);
    },
    heal,
    forward: (port, target) => forward(find('services'), port, target),
    remove,
  };
}

interface NodePlace {
  id: string;
  lan: string;
  folder: string;
  name: string;
  number: number;
}

function createNode({ id, lan, folder, name, number }: NodePlace): LabNode {
  const namespace = `cy-${id}-${name}`;
  const run = join(folder, name, 'run');
  const cable = (state: 'up' | 'down') => ip(`-n ${lan} link set ${name} ${state}`);
  const node: LabNode = {
    name,
    namespace,
    address: `10.77.0.${number}`,
    address6: `fd00:77::${number}`,
    interface: INTERFACE,
    folder: join(folder, name),
    command: (file, args) => ({
      file: 'ip',
      // `ip netns exec` has already made a mount namespace, so the mount is seen by this program and its children only.
      args: ['netns', 'exec', namespace, 'sh', '-c', 'mount --bind "$0" /run && exec "$@"', run, file, ...args],
    }),
    run(file, args) {
      const command = node.command(file, args);
      return execute(command.file, command.args, { maxBuffer: 64 * 1024 * 1024 });
    },
    spawn(file, args, options = {}) {
      const command = node.command(file, args);
      return spawn(command.file, command.args, options);
    },
    async addresses() {
      const { stdout } = await execute('ip', ['-n', namespace, '-j', 'addr', 'show', 'dev', INTERFACE]);
      const links = JSON.parse(stdout) as { addr_info: { local: string; scope: string }[] }[];
      return links.flatMap(({ addr_info }) =>
        addr_info.filter(({ scope }) => scope !== 'link').map(({ local }) => local),
      );
    },
    pids: () => pidsOf(namespace),
    async die() {
      cable('down');
      await killAll(node);
    },
    async boot() {
      ip(`-n ${namespace} addr flush dev ${INTERFACE} scope global`);
      ip(...ownAddresses(node));
      cable('up');
    },
    unplug: async () => cable('down'),
    plug: async () => cable('up'),
  };
  return node;
}

const ownAddresses = ({ namespace, address, address6 }: LabNode) => [
  `-n ${namespace} addr add ${address}/16 dev ${INTERFACE}`,
  `-n ${namespace} addr add ${address6}/48 dev ${INTERFACE} nodad`,
];

async function addNode(lan: string, node: LabNode): Promise<void> {
  const { name, namespace, folder } = node;
  mkdirSync(join(folder, 'run'), { recursive: true });
  ip(
    `netns add ${namespace}`,
    `-n ${lan} link add ${name} type veth peer name ${INTERFACE} netns ${namespace}`,
    `-n ${lan} link set ${name} master ${BRIDGE} up`,
    `-n ${namespace} link set lo up`,
  );
  // Otherwise an address would not be usable in its first second, and link-local ones would come and go.
  const settings = ['ipv6.conf.all.accept_dad=0', `ipv6.conf.${INTERFACE}.accept_dad=0`];
  const nonLocal = ['ipv4.ip_nonlocal_bind=1', 'ipv6.ip_nonlocal_bind=1'];
  await node.run(
    'sysctl',
    ['-qw', ...settings, ...nonLocal].map((each) => each.replace(/^ip/, 'net.ip')),
  );
  ip(`-n ${namespace} link set ${INTERFACE} up`, ...ownAddresses(node));
}

/** Without multicast snooping, which needs seconds to learn who takes part in neighbour discovery. */
function addBridge(lan: string, name: string): void {
  ip(`-n ${lan} link add ${name} type bridge mcast_snooping 0`, `-n ${lan} link set ${name} up`);
}

/** Runs `ip` once for each line. @throws with its message */
function ip(...lines: string[]): void {
  for (const line of lines) execFileSync('ip', line.split(' '), { stdio: 'pipe' });
}

/** Including processes whose mount namespace is another one; empty if the namespace is gone. */
function pidsOf(namespace: string): number[] {
  try {
    const pids = execFileSync('ip', ['netns', 'pids', namespace], { stdio: 'pipe', encoding: 'utf8' });
    return pids.split('\n').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Repeated, because a process may start another one meanwhile. */
async function killAll(node: LabNode): Promise<void> {
  for (let pids = node.pids(); pids.length > 0; pids = node.pids()) {
    for (const pid of pids) kill(pid);
    await sleep(5);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Arguments: the folder, then the namespaces. Waits until its input ends. */
const removal = `
cat
folder=$1; shift
for file in "$folder"/services/forward-*.pid; do [ -e "$file" ] && kill -9 "$(cat "$file")"; done
for name; do
  while pids=$(ip netns pids "$name") && [ -n "$pids" ]; do kill -9 $pids; sleep 0.005; done
  ip netns del "$name"
done
rm -rf "$folder"`;

/** Returns the removal of a lab. A process does it, whose input ends with the test process. */
function removeAtEnd(namespaces: string[], folder: string): () => Promise<void> {
  const child = spawn('sh', ['-c', removal, 'sh', folder, ...namespaces], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(child, 'exit');
  child.unref();
  (child.stdin as Socket).unref();
  return async () => {
    child.ref();
    child.stdin.end();
    await ended;
  };
}

/**
 * HAProxy listens in the namespace of `services` and connects in that of this machine. As PostgreSQL itself
 * would, it closes the connections of a node that died, which ends the locks of that node.
 */
async function forward(services: LabNode, port: number, target: string): Promise<void> {
  const configuration = join(services.folder, `forward-${port}.cfg`);
  const pidFile = join(services.folder, `forward-${port}.pid`);
  const binds = [`${services.address}:${port}`, `[${services.address6}]:${port}`];
  const server = target.startsWith('/') ? `unix@${target}` : target;
  writeFileSync(
    configuration,
    `global
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option clitcpka
  clitcpka-idle 2s
  clitcpka-intvl 1s
  clitcpka-cnt 3
listen forward
${binds.map((bind) => `  bind ${bind} namespace ${services.namespace} tcp-ut 5s`).join('\n')}
  server target ${server}
`,
  );
  // With -D it returns when it listens.
  await execute('haproxy', ['-D', '-f', configuration, '-p', pidFile]);
}
