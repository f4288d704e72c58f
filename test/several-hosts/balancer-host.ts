/**
 * The parts of an agent for load balancers, without a database: a test starts it on a node of a lab and sends commands as lines
 * of JSON to its standard input. Each is answered with `{"done":true,…}` or `{"error":"…"}`. The lease is renewed here.
 *
 *   node balancer-host.ts '{"dataDir":"…","region":{…},"states":[…],"apiUrl":"…","leaseSeconds":3}'
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { findHaproxy } from '../../src/drivers/haproxy/detect.ts';
import { createHaproxyDriver } from '../../src/drivers/haproxy/driver.ts';
import { memberRules } from '../../src/drivers/haproxy/test-host.ts';
import { balancerParts } from '../../src/drivers/keepalived/balancer-parts.ts';
import { loadBalancerPart } from '../../src/hosts/load-balancers.ts';
import type { DesiredLoadBalancer } from '../../src/drivers/load-balancer.ts';
import { agentFolder, type HostPart, leaseFileOf, type RegionView } from '../../src/hosts/part.ts';

export interface BalancerHostOptions {
  dataDir: string;
  region: RegionView;
  states: DesiredLoadBalancer[];
  /** The API server of this host. */
  apiUrl: string | null;
  leaseSeconds: number;
}

export type BalancerHostCommand =
  | { do: 'holds' | 'serve' | 'drain' | 'stopServing' | 'release' | 'pids' }
  | { do: 'hosts'; region: RegionView }
  | { do: 'apply'; id: string; state: DesiredLoadBalancer | null };

const options = JSON.parse(process.argv[2]!) as BalancerHostOptions;
const { dataDir, apiUrl, leaseSeconds, states } = options;
const log = pino({ level: 'info' }, pino.destination(2));
const leaseFile = leaseFileOf(dataDir);
mkdirSync(agentFolder(dataDir), { recursive: true });

/** Its successor renews the lease. */
const handOverSeconds = 60;
let isLeased = true;
function renew(seconds = leaseSeconds): void {
  if (!isLeased) return;
  writeFileSync(`${leaseFile}.new`, `${uptime() + seconds}\n`);
  renameSync(`${leaseFile}.new`, leaseFile);
}
renew();
setInterval(() => renew(), 200);

const parts: readonly HostPart<never>[] = balancerParts({
  ...{ dataDir, log, rebalanceSeconds: 0.3 },
  async open(peers) {
    const driver = createHaproxyDriver({ dataDir, log, memberRules, peers, finding: findHaproxy() });
    await driver.start();
    return driver;
  },
  partOf: loadBalancerPart,
  checkApi: apiUrl === null ? null : checkApi,
  checkRegistry: null,
});
const signal = new AbortController().signal;
for (const part of parts) await part.start(options.region);
for (const part of parts) await part.converge(new Map(states.map((state) => [state.id, state as never])), signal);
for (const part of parts) await part.serve();
answer({});

for await (const line of createInterface(process.stdin)) {
  try {
    answer(await perform(JSON.parse(line) as BalancerHostCommand));
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ error: (error as Error).message })}\n`);
  }
}

async function perform(command: BalancerHostCommand): Promise<object> {
  if (command.do === 'holds') return { holds: parts.flatMap((part) => part.heldGroups?.() ?? []).sort() };
  if (command.do === 'hosts') for (const part of parts) await part.hostsChanged(command.region);
  if (command.do === 'apply') await parts[0]!.apply(command.id, command.state as never, signal);
  if (command.do === 'serve') for (const part of parts) await part.serve();
  if (command.do === 'drain') for (const part of parts) await part.drain(signal);
  if (command.do === 'release') {
    for (const part of parts) await part.release?.();
    renew(handOverSeconds);
    isLeased = false;
  }
  if (command.do === 'stopServing') {
    isLeased = false;
    rmSync(leaseFile, { force: true });
    await Promise.all(parts.map((part) => part.stopServing()));
  }
  return {};
}

function answer(result: object): void {
  process.stdout.write(`${JSON.stringify({ done: true, ...result })}\n`);
}

async function checkApi(): Promise<void> {
  const response = await fetch(apiUrl!, { signal: AbortSignal.timeout(1000) });
  if (!response.ok) throw new Error(`the API answers ${response.status}`);
}
