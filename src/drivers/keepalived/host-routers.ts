/**
 * The routers of the region as this host has them: the configuration of keepalived, which routers this host may hold
 * (block-files.ts), and which it holds (present-routers.ts).
 */
import { join } from 'node:path';
import type { RegionView } from '../../hosts/part.ts';
import type { Logger } from '../../platform/log.ts';
import { contains, parseHost, parseNetwork } from '../../platform/network-address.ts';
import { replaceText } from '../durable-files.ts';
import { interfaceOf, selfOf, movingAddressError } from '../own-host.ts';
import { createBlockFiles } from './block-files.ts';
import { markerOf, renderKeepalived } from './configuration.ts';
import type { Health } from './health.ts';
import { removeAddresses } from './host-addresses.ts';
import { presentRouters } from './present-routers.ts';
import { configurationFile } from './process.ts';
import { priorityOf, routersOf, type VirtualRouter } from './routers.ts';

interface HostRoutersOptions {
  folder: string;
  leaseCheck: string;
  health: Pick<Health, 'isUp'>;
  log: Logger;
  /** How long `settled` waits. Default: 10 s. */
  settleMs?: number;
}

export type HostRouters = ReturnType<typeof createHostRouters>;

const SETTLE_MS = 10_000;

/** Knows no routers before `setRegion` and `configure`. */
export function createHostRouters(options: HostRoutersOptions) {
  const { folder, leaseCheck, health, log, settleMs = SETTLE_MS } = options;
  let region: RegionView | null = null;
  let balancers: string[] = [];
  let routers: VirtualRouter[] = [];
  let isServing = false;
  const handedOver = new Set<string>();

  const known = () => {
    if (!region) throw movingAddressError('the hosts of the region are not known');
    return region;
  };
  const self = () => selfOf(known());
  const mayHold = ({ name, service }: VirtualRouter) => isServing && health.isUp(service) && !handedOver.has(name);
  const blocks = createBlockFiles({
    ...{ folder, log },
    read: () => routers.map((router) => [router.name, mayHold(router)]),
  });
  const present = presentRouters({ routers: () => routers, address: () => self().address, settleMs });

  const setRouters = () => {
    const before = routers;
    routers = routersOf(known(), balancers);
    present.replaced(before);
  };

  return {
    /** @throws DriverError if this host is not in the region */
    region: known,
    setRegion: (view: RegionView) => void (region = view),
    setBalancerAddresses: (addresses: Iterable<string>) => void (balancers = [...new Set(addresses)]),
    /** Whether this host may hold routers at all. */
    setServing(value: boolean): void {
      isServing = value;
      if (value) handedOver.clear();
      blocks.update();
    },
    /** Continues what the block files say, after keepalived was adopted. */
    adopt(): void {
      setRouters();
      isServing = routers.some(({ name }) => blocks.isUnblocked(name));
    },
    /** This host gives a router up, or may hold it again. */
    setHandedOver(name: string, value: boolean): void {
      if (value) handedOver.add(name);
      else handedOver.delete(name);
      blocks.update();
    },
    updateBlocks: blocks.update,
    /** Writes the configuration. Returns whether it differs from the one on disk. */
    async configure(): Promise<boolean> {
      setRouters();
      blocks.write();
      const blocked = routers.map((router) => ({ ...router, blockFile: blocks.pathOf(router.name) }));
      return replaceText(configurationFile(folder), configurationOf(known(), blocked, leaseCheck));
    },
    all: (): readonly VirtualRouter[] => routers,
    isHeld: present.isHeld,
    held: () => (region ? present.held() : []),
    settled: present.settled,
    /** Removes all addresses that move. @throws DriverError */
    removeAddresses: () => removeLeftBehind(known(), folder, log),
    /** The network interface that gets addresses. @throws DriverError */
    device: () => interfaceOf(self()),
  };
}

function configurationOf(
  region: RegionView,
  routers: (VirtualRouter & { blockFile: string })[],
  leaseCheck: string,
): string {
  const own = selfOf(region);
  return renderKeepalived({
    ...{ name: own.name, address: own.address, interface: interfaceOf(own), leaseCheck },
    peers: region.hosts.filter(({ name }) => name !== own.name).map(({ address }) => address),
    routers: routers.map((router) => ({ ...router, priority: priorityOf(router, region) })),
  });
}

async function removeLeftBehind(region: RegionView, folder: string, log: Logger): Promise<void> {
  const { address: own } = selfOf(region);
  const markers = new Set(routersOf(region, []).map((router) => markerOf(router, own)));
  const moves = movingIn(region);
  const scratch = join(folder, 'addresses.batch');
  const found = await removeAddresses((address) => markers.has(address) || moves(address), scratch);
  if (found.length > 0) log.warn({ count: found.length }, 'removed addresses that keepalived had left behind');
}

/** Whether an address is one that keepalived adds, besides markers. */
function movingIn({ vipRange, vipRangeV6, settings, hosts }: RegionView): (address: string) => boolean {
  const ranges = [vipRange, vipRangeV6].filter((range) => range !== null).map(parseNetwork);
  const single = new Set([settings.apiAddress, settings.registryAddress]);
  const own = new Set(hosts.map(({ address }) => address));
  return (text) => !own.has(text) && (single.has(text) || ranges.some((range) => contains(range, parseHost(text))));
}
