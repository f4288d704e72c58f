/**
 * Moves a router to another host without a failed request.
 *
 * 1. New connections are delayed (connection-hold.ts), and load balancers stop keeping connections alive.
 * 2. Requests that are in progress end, for at most DRAIN_MS. Clients of the remaining connections get a reset.
 * 3. This host gives the router up, and another one takes it at once: VRRP announces it with priority 0.
 * 4. Delayed connections are opened to the other host.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/log.ts';
import { DriverError } from '../driver.ts';
import type { ConnectionHold } from './connection-hold.ts';
import { forgetNeighbour, isHeldElsewhere, openConnections, resetConnections } from './host-addresses.ts';
import type { HostRouters } from './host-routers.ts';
import type { VirtualRouter } from './routers.ts';

/** The connections of load balancers. */
export interface Connections {
  /** Stops keeping connections alive: clients open new ones. */
  close(): Promise<void>;
  /** The number of requests in progress at these addresses. */
  active(addresses: ReadonlySet<string>): Promise<number>;
}

/** Does nothing for a router that this host does not hold. @throws DriverError, retryable, if no other host takes it */
export type HandOver = (router: VirtualRouter, signal: AbortSignal) => Promise<void>;

interface HandOverOptions {
  connections: Connections;
  hold: ConnectionHold;
  routers: Pick<HostRouters, 'device' | 'isHeld' | 'setHandedOver'>;
  log: Logger;
}

/** Below the 3 s after which a client repeats the first packet of a connection for the second time. */
const DRAIN_MS = 2_500;
const TAKE_OVER_MS = 3_000;
/** Pauses between polls, whose cost for HAProxy grows with its connections: the first, the last, and their growth. */
const POLL = { firstMs: 10, lastMs: 150, factor: 1.5 };

/** Hand-overs must not overlap: they share `hold`. */
export function createHandOver({ connections, hold, routers, log }: HandOverOptions): HandOver {
  const active = (router: VirtualRouter, addresses: Set<string>) =>
    router.service === 'balancers' ? connections.active(addresses) : openConnections(addresses);

  async function finishRequests(router: VirtualRouter, signal: AbortSignal): Promise<void> {
    const addresses = new Set(router.addresses);
    if (router.service === 'balancers') await connections.close();
    const pause = growingPause(signal);
    for (const deadline = performance.now() + DRAIN_MS; performance.now() < deadline; ) {
      if ((await active(router, addresses)) === 0) break;
      await pause();
    }
    await resetConnections(router.addresses);
  }

  /** @throws DriverError if no other host takes it */
  async function giveUp(router: VirtualRouter, signal: AbortSignal): Promise<void> {
    const [address] = router.addresses;
    if (address !== undefined) await forgetNeighbour(address, routers.device());
    routers.setHandedOver(router.name, true);
    const deadline = performance.now() + TAKE_OVER_MS;
    const pause = growingPause(signal);
    for (;;) {
      if (!routers.isHeld(router) && (address === undefined || (await isHeldElsewhere(address, routers.device()))))
        return;
      if (performance.now() > deadline) throw notTaken(router);
      await pause();
    }
  }

  return async (router, signal) => {
    signal.throwIfAborted();
    if (!routers.isHeld(router)) return;
    try {
      if (router.addresses.length > 0) {
        await hold.hold(router.addresses);
        await finishRequests(router, signal);
      }
      await giveUp(router, signal);
      log.info({ router: router.name }, 'handed over addresses');
    } catch (err) {
      routers.setHandedOver(router.name, false);
      throw err;
    } finally {
      await hold.release();
    }
  };
}

function growingPause(signal: AbortSignal): () => Promise<void> {
  let ms = POLL.firstMs;
  return async () => {
    await sleep(ms, undefined, { signal });
    ms = Math.min(ms * POLL.factor, POLL.lastMs);
  };
}

function notTaken({ name }: VirtualRouter): DriverError {
  return new DriverError(`no other host took ${name}`, {
    customerMessage: 'no other host took the addresses',
    retryable: true,
  });
}
