/**
 * The routers of the region as this host has them: the configuration of keepalived, and which routers this host may hold. Those
 * that it may not hold have a 1 in their block file, which keepalived reads when it changes.
 */
import { closeSync, constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { RegionView } from '../../hosts/part.ts';
import { contains, parseHost, parseNetwork } from '../../platform/network-address.ts';
import { interfaceOf, selfOf, unavailable } from '../own-host.ts';
import { markerOf, renderKeepalived } from './configuration.ts';
import type { Health } from './health.ts';
import { ownAddresses, removeAddresses } from './host-addresses.ts';
import { configurationFile } from './process.ts';
import { priorityOf, routersOf, type VirtualRouter } from './routers.ts';

export interface HostRouters {
  /** @throws DriverError if this host is not in the region */
  region(): RegionView;
  setRegion(region: RegionView): void;
  setBalancerAddresses(addresses: Iterable<string>): void;
  /** Whether this host may hold routers at all. */
  setServing(isServing: boolean): void;
  /** Forgets what this process has written, and continues what the block files say. */
  adopt(isAdopted: boolean): void;
  /** This host gives a router up, or may hold it again. */
  setHandedOver(name: string, value: boolean): void;
  /** Files that cannot be written are written later. */
  updateBlocks(): void;
  /** Writes the configuration. Returns whether it differs from the one on disk. */
  configure(): Promise<boolean>;
  all(): readonly VirtualRouter[];
  isHeld(router: VirtualRouter): boolean;
  held(): VirtualRouter[];
  /** Resolves when this host has exactly the addresses of the routers that it holds. @throws DriverError */
  settled(): Promise<void>;
  /** Removes all addresses that move. @throws DriverError */
  removeAddresses(): Promise<void>;
  /** The network interface that gets addresses. @throws DriverError */
  device(): string;
}

interface HostRoutersOptions {
  folder: string;
  leaseCheck: string;
  health: Pick<Health, 'isUp'>;
  log: Logger;
  /** How long `settled` waits. Default: 10 s. */
  settleMs?: number;
}

const SETTLE_MS = 10_000;
const POLL_MS = 20;
const REPEAT_MS = 1000;

export function createHostRouters(options: HostRoutersOptions): HostRouters {
  const { folder, leaseCheck, health, log, settleMs = SETTLE_MS } = options;
  let region: RegionView | null = null;
  let balancers: string[] = [];
  let routers: VirtualRouter[] = [];
  /** Addresses that were configured before and may still be on this host, until it was seen without them. */
  const removed = new Set<string>();
  let isServing = false;
  const handedOver = new Set<string>();
  const blocks = new Map<string, string>();
  let repeated: NodeJS.Timeout | undefined;

  const known = () => {
    if (!region) throw unavailable('the hosts of the region are not known');
    return region;
  };
  const self = () => selfOf(known());
  const blockFile = (name: string) => join(folder, `${name}.block`);
  const hasMarker = (router: VirtualRouter, own: Set<string>) => own.has(markerOf(router, self().address));

  /** Returns the failures. */
  function writeBlocks(): Error[] {
    const failures: Error[] = [];
    for (const { name, service } of routers) {
      const text = isServing && health.isUp(service) && !handedOver.has(name) ? '0\n' : '1\n';
      if (blocks.get(name) === text) continue;
      try {
        overwrite(blockFile(name), text);
        blocks.set(name, text);
      } catch (err) {
        blocks.delete(name);
        failures.push(err as Error);
      }
    }
    return failures;
  }

  function updateBlocks(): void {
    clearTimeout(repeated);
    const [err] = writeBlocks();
    if (!err) return;
    log.error({ err }, 'block files of routers cannot be written; they are written again');
    repeated = setTimeout(updateBlocks, REPEAT_MS).unref();
  }

  function setRouters(): void {
    const before = routers.flatMap(({ addresses }) => addresses);
    routers = routersOf(known(), balancers);
    for (const address of before) removed.add(address);
    for (const { addresses } of routers) for (const address of addresses) removed.delete(address);
  }

  async function configure(): Promise<boolean> {
    const { name, address } = self();
    setRouters();
    const [failure] = writeBlocks();
    if (failure) throw unavailable(`the block file of a router cannot be written: ${failure.message}`);
    const text = renderKeepalived({
      ...{ name, address, interface: interfaceOf(self()), leaseCheck },
      peers: known().hosts.flatMap((host) => (host.name === name ? [] : host.address)),
      routers: routers.map((router) => ({
        ...router,
        priority: priorityOf(router, known()),
        blockFile: blockFile(router.name),
      })),
    });
    const file = configurationFile(folder);
    if (existsSync(file) && readFileSync(file, 'utf8') === text) return false;
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
    return true;
  }

  async function settled(): Promise<void> {
    for (const deadline = Date.now() + settleMs; ; ) {
      const own = ownAddresses();
      for (const address of removed) if (!own.has(address)) removed.delete(address);
      const expected = routers.filter((router) => hasMarker(router, own)).flatMap(({ addresses }) => addresses);
      if (expected.every((each) => own.has(each)) && removed.size === 0) return;
      if (Date.now() > deadline) throw unavailable('keepalived did not load its configuration in time');
      await sleep(POLL_MS);
    }
  }

  return {
    region: known,
    setRegion(view) {
      region = view;
    },
    setBalancerAddresses(addresses) {
      balancers = [...new Set(addresses)];
    },
    setServing(value) {
      isServing = value;
      if (value) handedOver.clear();
      updateBlocks();
    },
    adopt(isAdopted) {
      if (!isAdopted) return;
      setRouters();
      isServing = routers.some(({ name }) => isUnblocked(blockFile(name)));
    },
    setHandedOver(name, value) {
      if (value) handedOver.add(name);
      else handedOver.delete(name);
      updateBlocks();
    },
    updateBlocks,
    configure,
    all: () => routers,
    isHeld(router) {
      const own = ownAddresses();
      return hasMarker(router, own) || router.addresses.some((address) => own.has(address));
    },
    held() {
      if (!region) return [];
      const own = ownAddresses();
      return routers.filter((router) => hasMarker(router, own));
    },
    settled,
    async removeAddresses() {
      const markers = new Set(routersOf(known(), []).map((router) => markerOf(router, self().address)));
      const moves = movingIn(known());
      const scratch = join(folder, 'addresses.batch');
      const found = await removeAddresses((address) => markers.has(address) || moves(address), scratch);
      if (found.length > 0) log.warn({ count: found.length }, 'removed addresses that keepalived had left behind');
    },
    device: () => interfaceOf(self()),
  };
}

/** Keeps the size and, if the disk is full, the content: keepalived takes an empty file for a 0. */
function overwrite(file: string, text: string): void {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    writeSync(descriptor, text, 0);
  } finally {
    closeSync(descriptor);
  }
}

function isUnblocked(file: string): boolean {
  return existsSync(file) && readFileSync(file, 'utf8').trim() === '0';
}

/** Whether an address is one that keepalived adds. */
function movingIn({ vipRange, vipRangeV6, settings, hosts }: RegionView): (address: string) => boolean {
  const ranges = [vipRange, vipRangeV6].filter((range) => range !== null).map(parseNetwork);
  const single = new Set([settings.apiAddress, settings.registryAddress]);
  const own = new Set(hosts.map(({ address }) => address));
  return (text) => !own.has(text) && (single.has(text) || ranges.some((range) => contains(range, parseHost(text))));
}
