/**
 * A data directory, addresses of 127.0.0.0/8 and members for tests. `cleanUp` leaves no process and no folder behind,
 * also when a test failed.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processIn } from '../../platform/running-processes.ts';
import { silentLogger } from '../../platform/log.ts';
import { createMemberRules } from '../../platform/member-networks.ts';
import type {
  DesiredL7Policy,
  DesiredL7Rule,
  DesiredListener,
  DesiredLoadBalancer,
  DesiredMember,
  DesiredMonitor,
  DesiredPool,
  LoadBalancerDriver,
} from '../load-balancer.ts';
import { errorLog } from '../nginx/configuration.ts';
import { orphansOf } from '../nginx/orphaned-workers.ts';
import { until } from '../../../test/until.ts';
import { findHaproxy, type HaproxyFinding } from './detect.ts';
import { createHaproxyDriver, type HaproxyDriverOptions } from './driver.ts';
import { layoutOf } from './layout.ts';
import { retrying, runtimeSocket } from './runtime-socket.ts';

export function testHost() {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-haproxy-'));
  const layout = layoutOf(dataDir);
  const pids = () => [join(layout.haproxy, 'haproxy.pid'), join(layout.nginx, 'nginx.pid')];
  const cleanUp = () => {
    for (const file of pids()) {
      const found = processIn(file);
      if (found?.commandLine.includes(dataDir)) process.kill(found.pid, 'SIGKILL');
    }
    for (const pid of orphansOf(errorLog(layout.nginx))) process.kill(pid, 'SIGKILL');
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    rmSync(layout.sockets, { recursive: true, force: true });
    process.off('exit', cleanUp);
  };
  process.once('exit', cleanUp);
  /** The response of HAProxy's current worker to a command. */
  const ask = (command: string) => retrying(runtimeSocket(layout.masterSocket, '@1;'))([command]);
  return {
    dataDir,
    layout,
    driver: (options?: Partial<Omit<HaproxyDriverOptions, 'finding'>>, finding?: Partial<HaproxyFinding>) =>
      createHaproxyDriver({
        dataDir,
        log: silentLogger,
        memberRules,
        ...options,
        finding: { ...findHaproxy(), ...finding },
      }),
    ask,
    /**
     * Resolves when the current worker will transfer its stick tables to the next one: it does so only after it received them
     * itself, or timed out after 10 s.
     */
    peersSynced: () => until(async () => (await ask('show peers')).includes('resync_timeout=<PAST>'), 15, 'peers'),
    /** Resolves when the current worker has entries in a stick table that has this text in its name. */
    tableFilled: (name: string) =>
      until(async () => new RegExp(`table: \\S*${name}.* used:[1-9]`).test(await ask('show table')), 15, 'entries'),
    /** The pid of HAProxy's master. */
    pid: () => Number(readFileSync(join(layout.haproxy, 'haproxy.pid'), 'utf8')),
    cleanUp,
  };
}

export type TestHost = ReturnType<typeof testHost>;

/** Everywhere, also on loopback, as in the default regions file. */
export const memberRules = createMemberRules({
  regions: new Map([[1, { allowed: ['0.0.0.0/0', '::/0', '127.0.0.0/8', '::1/128'] }]]),
  vipRanges: [],
  controlPlane: () => [],
  ownPorts: () => [],
  localNetworks: () => [],
});

/** A separate address for each load balancer, as in a region. */
export function freeAddress(): string {
  return `127.${randomInt(100, 250)}.${randomInt(1, 250)}.${randomInt(1, 250)}`;
}

export function member(port: number, changes: Partial<DesiredMember> = {}): DesiredMember {
  return {
    id: randomUUID(),
    address: '127.0.0.1',
    port,
    weight: 1,
    backup: false,
    enabled: true,
    monitorAddress: null,
    monitorPort: null,
    ...changes,
  };
}

export function pool(changes: Partial<DesiredPool> = {}): DesiredPool {
  return {
    id: randomUUID(),
    protocol: 'HTTP',
    algorithm: 'ROUND_ROBIN',
    enabled: true,
    members: [],
    monitor: null,
    persistence: null,
    caBundle: null,
    revocationList: null,
    clientCertificate: null,
    timeoutClientData: null,
    timeoutMemberConnect: null,
    timeoutMemberData: null,
    ...changes,
  };
}

export function listener(changes: Partial<DesiredListener> = {}): DesiredListener {
  return {
    id: randomUUID(),
    protocol: 'HTTP',
    port: 80,
    enabled: true,
    connectionLimit: 100_000,
    allowedNetworks: null,
    insertXForwarded: false,
    certificate: null,
    sniCertificates: [],
    users: [],
    timeoutClientData: null,
    timeoutMemberConnect: null,
    timeoutMemberData: null,
    defaultPoolId: null,
    l7Policies: [],
    ...changes,
  };
}

export function l7Policy(changes: Partial<DesiredL7Policy> = {}): DesiredL7Policy {
  return {
    id: randomUUID(),
    action: 'REJECT',
    redirectUrl: null,
    redirectPrefix: null,
    redirectPoolId: null,
    redirectHttpCode: null,
    rules: [],
    ...changes,
  };
}

/** By default the path `/`. */
export function l7Rule(changes: Partial<DesiredL7Rule> = {}): DesiredL7Rule {
  return { id: randomUUID(), type: 'PATH', compareType: 'EQUAL_TO', key: null, value: '/', invert: false, ...changes };
}

export function monitor(changes: Partial<DesiredMonitor> = {}): DesiredMonitor {
  return {
    type: 'TCP',
    enabled: true,
    delay: 200,
    timeout: 200,
    maxRetries: 2,
    maxRetriesDown: 2,
    httpMethod: null,
    httpVersion: null,
    urlPath: null,
    domainName: null,
    expectedCodes: null,
    ...changes,
  };
}

/** A listener with a pool; the default port is 80. */
export function balancer(
  own: Partial<DesiredPool> = {},
  front: Partial<DesiredListener> = {},
  changes: Partial<DesiredLoadBalancer> = {},
): DesiredLoadBalancer {
  const behind = pool(own);
  const before = listener({ defaultPoolId: behind.id, ...front });
  return {
    id: randomUUID(),
    tenant: '1',
    regionId: 1,
    address: freeAddress(),
    enabled: true,
    listeners: [before],
    pools: [behind],
    ...changes,
  };
}

/** A copy with changes to the first pool or listener. */
/** How often the work reloaded the proxy, and how many commands it sent. */
export async function effectOf(driver: LoadBalancerDriver, work: () => Promise<unknown>) {
  const before = driver.counters();
  await work();
  const { reloads, runtimeChanges } = driver.counters();
  return { reloads: reloads - before.reloads, runtimeChanges: runtimeChanges - before.runtimeChanges };
}

export const noEffect = { reloads: 0, runtimeChanges: 0 };

export function withPool(desired: DesiredLoadBalancer, changes: Partial<DesiredPool>): DesiredLoadBalancer {
  return { ...desired, pools: desired.pools.map((each, at) => (at === 0 ? { ...each, ...changes } : each)) };
}

export function withListener(desired: DesiredLoadBalancer, changes: Partial<DesiredListener>): DesiredLoadBalancer {
  return { ...desired, listeners: desired.listeners.map((each, at) => (at === 0 ? { ...each, ...changes } : each)) };
}
