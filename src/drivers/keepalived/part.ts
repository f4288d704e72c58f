/**
 * The addresses that move between the hosts of a region, as a part of an agent (hosts/part.ts). keepalived decides which host
 * holds which router (routers.ts). A host may hold one only if the agent's lease is valid, the host serves, the service behind
 * the addresses works, and it has not handed the router over.
 *
 * Failure modes: keepalived dies: its addresses are removed and it is started again, while another host gets them. The agent
 * dies: the lease ends. The service dies: all its routers move. Two hosts that do not see each other hold the same router;
 * when they do again, one steps down and the other announces its addresses.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  agentFolder,
  canHandOver,
  eligibleHosts,
  type HostPart,
  leaseFileOf,
  type RegionView,
} from '../../hosts/part.ts';
import type { DriverStatus } from '../../platform/driver-status.ts';
import type { Logger } from '../../platform/log.ts';
import { replaceText } from '../durable-files.ts';
import { findProgram } from '../programs.ts';
import { limited, shared } from '../../platform/turns.ts';
import { renderLeaseCheck } from './configuration.ts';
import { createConnectionHold } from './connection-hold.ts';
import { type Connections, createHandOver, type HandOver } from './hand-over.ts';
import { type Checks, watchServices } from './health.ts';
import { movingAddressError } from '../own-host.ts';
import { createHostRouters, type HostRouters } from './host-routers.ts';
import { allowNonLocalBind } from './kernel-settings.ts';
import { createKeepalivedProcess } from './process.ts';
import { createRebalancing } from './rebalancing.ts';
import { preferenceOrder, type VirtualRouter } from './routers.ts';

export interface MovingAddressesOptions {
  dataDir: string;
  log: Logger;
  /** What must work where the addresses of a service are. Absent: always works. */
  checks: Checks;
  /** Of load balancers. */
  connections: Connections;
  /** How long a host must have a lease before it gets its groups back. Default: 5 s longer than a lease. */
  rebalanceSeconds?: number;
  /** Default: detected. */
  program?: string | null;
}

interface MovingAddresses extends HostPart<never> {
  /** The addresses of all load balancers. Resolves when those that this host holds can be used. @throws DriverError */
  setBalancerAddresses(addresses: Iterable<string>): Promise<void>;
}

const POLL_MS = 20;
/** How often a drain checks whether another host serves. */
const WAIT_MS = 1_000;
/** Longer than the interval of advertisements, which a reload starts again. */
const RELOAD_EVERY_MS = 300;

/** Begins to check the services at once, and holds nothing before `serve`. */
export function createMovingAddresses(options: MovingAddressesOptions): MovingAddresses {
  const { dataDir, log, connections, program = findProgram('keepalived') } = options;
  const folder = join(agentFolder(dataDir), 'keepalived');
  const leaseCheck = join(folder, 'check-lease');
  const health = watchServices(options.checks, (service, isUp) => {
    if (isUp) log.info({ service }, 'a service is up again');
    else log.error({ service }, 'a service is down; its addresses move');
    routers.updateBlocks();
  });
  const routers = createHostRouters({ folder, leaseCheck, health, log });
  const keepalived = createKeepalived({ folder, program, routers, log });
  const hold = createConnectionHold(folder, log);
  const handOver = createHandOver({ connections, hold, routers, log });
  const rebalancing = returnRouters(routers, handOver, options);

  return {
    ...{ kind: null, title: 'addresses' },
    setBalancerAddresses(addresses) {
      routers.setBalancerAddresses(addresses);
      return keepalived.load();
    },
    async start(region) {
      if (!program) throw movingAddressError('keepalived is not installed: apt-get install keepalived');
      allowNonLocalBind();
      routers.setRegion(region);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      // The keepalived of an earlier agent may execute it at this moment, so it is not written in place.
      await replaceText(leaseCheck, renderLeaseCheck(leaseFileOf(dataDir)));
      chmodSync(leaseCheck, 0o700);
      // An agent that was killed during a hand-over left it.
      await hold.release();
      await keepalived.start();
    },
    converge: () => keepalived.load().then(() => new Map()),
    apply: async () => undefined,
    async serve() {
      await keepalived.load();
      routers.setServing(true);
      rebalancing.start();
    },
    async hostsChanged(region) {
      routers.setRegion(region);
      rebalancing.hostsChanged();
      await keepalived.load();
    },
    async stopServing() {
      routers.setServing(false);
      await rebalancing.stop();
      await keepalived.stop();
    },
    async release() {
      await rebalancing.stop();
      await keepalived.release();
    },
    async drain(signal) {
      await rebalancing.stop();
      await giveUpAll(routers, handOver, signal, log);
    },
    status: () => statusOf(program, keepalived.isUp(), routers),
    heldGroups: () => routers.held().map(({ name }) => name),
  };
}

/** Returns routers to the hosts that should hold them. */
function returnRouters(routers: HostRouters, handOver: HandOver, { rebalanceSeconds, log }: MovingAddressesOptions) {
  return createRebalancing({
    held: routers.held,
    preferred: (router) => preferredHost(router, routers.region()),
    async handOver(router, signal) {
      await handOver(router, signal);
      // As a backup, this host takes it again if the other one dies.
      routers.setHandedOver(router.name, false);
    },
    // Until then a preferred host that died may still have a valid lease.
    firstWaitSeconds: () => rebalanceSeconds ?? routers.region().settings.leaseSeconds + 5,
    log,
  });
}

/** The keepalived of this host with the routers of the region. */
function createKeepalived(options: { folder: string; program: string | null; routers: HostRouters; log: Logger }) {
  const { folder, program, routers, log } = options;
  const inTurn = limited(1);
  const daemon = createKeepalivedProcess({
    folder,
    program: program ?? 'keepalived',
    async beforeStart() {
      await routers.removeAddresses();
      await routers.configure();
    },
    log,
  });
  let reloadedAt = Number.NEGATIVE_INFINITY;
  /** Whether it has not loaded the configuration on disk yet, as far as is known. */
  let mustReload = false;
  return {
    /** A running one keeps its addresses until `load`, when the load balancers are known. */
    start: () =>
      inTurn(async () => {
        if (!daemon.isUp() && (await daemon.start())) routers.adopt();
      }),
    /**
     * Loads the routers. Resolves when this host has exactly the addresses of those that it holds. Calls that arrive meanwhile
     * share the next run.
     */
    load: shared(() =>
      inTurn(async () => {
        await sleep(Math.max(reloadedAt + RELOAD_EVERY_MS - performance.now(), 0));
        if (await routers.configure()) mustReload = true;
        if (!mustReload || !daemon.isUp()) return;
        daemon.reload();
        reloadedAt = performance.now();
        await routers.settled();
        mustReload = false;
      }),
    ),
    isUp: daemon.isUp,
    stop: () =>
      inTurn(async () => {
        await daemon.stop();
        if (routers.all().length > 0) await routers.removeAddresses();
      }),
    release: () => inTurn(() => daemon.release()),
  };
}

/** One router at a time. */
async function giveUpAll(routers: HostRouters, handOver: HandOver, signal: AbortSignal, log: Logger): Promise<void> {
  for (const router of routers.held()) {
    await waitForOtherHost(routers, signal, log);
    await handOver(router, signal);
  }
  for (const { name } of routers.all()) routers.setHandedOver(name, true);
  while (routers.held().length > 0) await sleep(POLL_MS, undefined, { signal });
}

/** An attempt to hand over closes connections, so none is made while no host could take the addresses. */
async function waitForOtherHost(routers: HostRouters, signal: AbortSignal, log: Logger): Promise<void> {
  for (let isLogged = false; ; isLogged = true) {
    if (canHandOver(routers.region())) return;
    if (!isLogged) log.warn('this host keeps its addresses until another host serves');
    await sleep(WAIT_MS, undefined, { signal });
  }
}

/** Null: this host is the right one, or no host is. */
function preferredHost(router: VirtualRouter, region: RegionView): string | null {
  const names = new Set(eligibleHosts(region));
  const name = preferenceOrder(router, region).find((each) => names.has(each));
  return name === undefined || name === region.self ? null : name;
}

function statusOf(program: string | null, isUp: boolean, routers: HostRouters): DriverStatus {
  const status = { driver: 'keepalived', real: true };
  const remedy = 'apt-get install keepalived';
  if (!program) return { ...status, healthy: false, detail: 'keepalived is not installed', remedy };
  if (!isUp) return { ...status, healthy: false, detail: 'keepalived is down' };
  return {
    ...status,
    healthy: true,
    detail: `holds ${routers.held().length} of ${routers.all().length} address groups`,
  };
}
