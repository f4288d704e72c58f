/** Returns routers to the hosts that should hold them, one at a time, when those hosts have served for a while. */
import type { Logger } from '../../platform/log.ts';
import { poll } from '../../platform/poll.ts';
import type { HandOver } from './hand-over.ts';
import type { VirtualRouter } from './routers.ts';

interface RebalancingOptions {
  held(): VirtualRouter[];
  /** The host that should hold a router in place of this one; null: this host is right. */
  preferred(router: VirtualRouter): string | null;
  handOver: HandOver;
  /** How long a host must be preferred. Doubled for a router that came back soon, until the hosts change. */
  firstWaitSeconds(): number;
  log: Logger;
}

interface Wait {
  /** The preferred host. */
  host: string;
  /** When this host got the router; null: it does not hold it now. */
  since: number | null;
  ms: number;
  endedAt: number;
}

const POLL_MS = 250;
/** If a router returns within this number of waits, the preferred host could not hold it. */
const SOON = 6;
const LAST_WAIT_MS = 3_600_000;

/** Does nothing before `start`. A hand-over that failed is tried again after the next wait. */
export function createRebalancing({ held, preferred, handOver, firstWaitSeconds, log }: RebalancingOptions) {
  let stopping = new AbortController();
  let stopPolling = () => {};
  let running: Promise<void> = Promise.resolve();
  let waits = new Map<string, Wait>();

  async function rebalance(signal: AbortSignal): Promise<void> {
    const routers = held();
    const names = new Set(routers.map(({ name }) => name));
    for (const [name, wait] of waits) if (!names.has(name)) wait.since = null;
    for (const router of routers) {
      const host = preferred(router);
      const wait = waits.get(router.name);
      if (host === null) waits.delete(router.name);
      else if (wait?.host !== host) {
        waits.set(router.name, {
          host,
          since: performance.now(),
          ms: firstWaitSeconds() * 1000,
          endedAt: Number.NEGATIVE_INFINITY,
        });
      } else if (wait.since === null) {
        const cameBackSoon = performance.now() - wait.endedAt < SOON * wait.ms;
        wait.ms = cameBackSoon ? Math.min(wait.ms * 2, LAST_WAIT_MS) : firstWaitSeconds() * 1000;
        wait.since = performance.now();
      } else if (performance.now() - wait.since >= wait.ms) {
        Object.assign(wait, { since: null, endedAt: performance.now() });
        await handOver(router, signal);
      }
    }
  }
  const end = () => {
    stopping.abort();
    stopPolling();
  };
  return {
    start(): void {
      end();
      stopping = new AbortController();
      const { signal } = stopping;
      stopPolling = poll(() => {
        running = rebalance(signal).catch((err: unknown) => {
          if (!signal.aborted) log.warn({ err }, 'cannot return addresses to their host yet');
        });
        return running;
      }, POLL_MS);
    },
    hostsChanged(): void {
      waits = new Map();
    },
    async stop(): Promise<void> {
      end();
      await running;
    },
  };
}
