/** Which routers this host holds, as the addresses of its network interfaces show. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ownAddresses, movingAddressError } from '../own-host.ts';
import { markerOf } from './configuration.ts';
import type { VirtualRouter } from './routers.ts';

interface PresentRoutersOptions {
  /** The routers of the region. */
  routers(): VirtualRouter[];
  /** The address of this host among the hosts. */
  address(): string;
  /** How long `settled` waits. */
  settleMs: number;
}

const POLL_MS = 20;

/** Reads the kernel with each call. */
export function presentRouters({ routers, address, settleMs }: PresentRoutersOptions) {
  /** Addresses that were configured before and may still be on this host, until it was seen without them. */
  const removed = new Set<string>();
  const hasMarker = (router: VirtualRouter, own: Set<string>) => own.has(markerOf(router, address()));
  return {
    isHeld(router: VirtualRouter): boolean {
      const own = ownAddresses();
      return hasMarker(router, own) || router.addresses.some((each) => own.has(each));
    },
    /** Those of the region that this host holds. */
    held(): VirtualRouter[] {
      const own = ownAddresses();
      return routers().filter((router) => hasMarker(router, own));
    },
    /** The routers of the region have changed. */
    replaced(before: VirtualRouter[]): void {
      for (const { addresses } of before) for (const each of addresses) removed.add(each);
      for (const { addresses } of routers()) for (const each of addresses) removed.delete(each);
    },
    /** Resolves when this host has exactly the addresses of the routers that it holds. @throws DriverError */
    async settled(): Promise<void> {
      for (const deadline = performance.now() + settleMs; ; ) {
        const own = ownAddresses();
        for (const each of removed) if (!own.has(each)) removed.delete(each);
        const expected = routers()
          .filter((router) => hasMarker(router, own))
          .flatMap(({ addresses }) => addresses);
        if (expected.every((each) => own.has(each)) && removed.size === 0) return;
        if (performance.now() > deadline) throw movingAddressError('keepalived did not load its configuration in time');
        await sleep(POLL_MS);
      }
    },
  };
}
