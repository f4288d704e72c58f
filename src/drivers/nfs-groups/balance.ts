/**
 * Spreads the NFS groups over the hosts. Every host polls the locks of the groups. A free group is taken by the host that should
 * have it (placement.ts); the others wait a little longer each, in case it cannot. No group is handed over to a host that could not
 * (avoided-hosts.ts).
 */
import { eligibleHosts, type RegionView } from '../../hosts/part.ts';
import type { Logger } from '../../platform/log.ts';
import { joined } from '../../platform/turns.ts';
import type { NfsGroup } from './group.ts';
import { avoidedHosts } from './avoided-hosts.ts';
import { hostsBefore, isOverloaded, type Placement } from './placement.ts';
import type { GroupRecords } from './records.ts';

interface HostPlace {
  region: RegionView;
  records: GroupRecords;
}

interface GroupBalanceOptions {
  /** By address. */
  groups: ReadonlyMap<string, NfsGroup>;
  current(): HostPlace;
  log: Logger;
}

export const POLL_MS = 250;
/** How much longer each host waits before it takes a group that another one should have. */
const RANK_MS = 750;
/** A host hands a group over when it has held too many for so long: another one may be starting. */
export const REBALANCE_MS = 30_000;
/** When a host takes a group back that it has handed over and nobody has taken. */
const TAKE_BACK_MS = 5000;
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5000;

/** What a poll has found out about a group. */
interface Observed {
  holder: string | null;
  /** The last host that held it; null: never seen. */
  previous: string | null;
  /** By `performance.now()`; null: it is not free. */
  freeSince: number | null;
  /** Whether a takeover is in progress. It may have the lock before the group counts as held. */
  isTaking: boolean;
  /** After a takeover that failed. */
  retryAt: number;
  retryMs: number;
}

const nothingObserved: Observed = {
  ...{ holder: null, previous: null, freeSince: null, isTaking: false },
  ...{ retryAt: 0, retryMs: FIRST_RETRY_MS },
};

/** Neither takes nor gives up a group before `start`. */
export function groupBalance(options: GroupBalanceOptions) {
  const { groups, log } = options;
  const { receivers, takeIfDue, giveUp, isTaking, forget } = observedGroups(options);
  /** Whether free groups are taken. */
  let isAccepting = false;
  let polling: NodeJS.Timeout | undefined;
  let overloadedSince: number | null = null;
  let isHandingOver = false;

  /** Hands a group over, if due. Not awaited: the cluster may be slow, and the other groups are polled meanwhile. */
  const rebalance = (): void => {
    if (!isAccepting || !isOverloaded(receivers())) overloadedSince = null;
    else overloadedSince ??= performance.now();
    if (isHandingOver || overloadedSince === null || performance.now() - overloadedSince < REBALANCE_MS) return;
    const group = [...groups.values()].find((each) => each.isServing());
    if (!group) return;
    isHandingOver = true;
    void giveUp(group)
      .then((isGivenUp) => void (isGivenUp && (overloadedSince = null)))
      .catch((err: unknown) => log.error({ nfsGroup: group.address, err }, 'cannot hand over the group'))
      .finally(() => (isHandingOver = false));
  };

  const pollAll = async (): Promise<void> => {
    const results = await Promise.allSettled([...groups.values()].map((group) => takeIfDue(group, () => isAccepting)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) log.debug({ err: failed.reason as unknown }, 'cannot read the locks of the NFS groups');
    rebalance();
  };

  const poll = joined(() => pollAll().catch((err: unknown) => log.error({ err }, 'cannot poll the NFS groups')));

  return {
    giveUp,
    isTaking,

    /** Takes free groups from now on. */
    start(): void {
      isAccepting = true;
      polling ??= setInterval(() => void poll(), POLL_MS);
      void poll();
    },

    /** Keeps the groups that this host holds, and takes no others; a takeover may be in progress (`isTaking`). */
    refuseGroups(): void {
      isAccepting = false;
    },

    stop(): void {
      isAccepting = false;
      clearInterval(polling);
      polling = undefined;
      forget();
    },
  };
}

/** What this host knows about each group, and how it takes one or gives it up. */
function observedGroups({ groups, current, log }: GroupBalanceOptions) {
  const observed = new Map<string, Observed>();
  const avoided = avoidedHosts();

  const observedOf = (group: string): Observed => {
    const seen = observed.get(group) ?? { ...nothingObserved };
    observed.set(group, seen);
    return seen;
  };

  const placement = (): Placement => {
    const { region } = current();
    return {
      self: region.self,
      eligible: eligibleHosts(region),
      holders: new Map(
        [...groups].map(([address, group]) => [address, group.isHeld() ? region.self : observedOf(address).holder]),
      ),
    };
  };

  return {
    /** The placement with the hosts that groups may be handed over to. */
    receivers(): Placement {
      const placed = placement();
      avoided.retain(placed.eligible);
      return { ...placed, eligible: placed.eligible.filter((host) => !avoided.has(host)) };
    },

    /** Takes a group that is free, when it is the turn of this host. */
    async takeIfDue(group: NfsGroup, isAccepting: () => boolean): Promise<void> {
      const seen = observedOf(group.address);
      if (group.isHeld()) {
        seen.freeSince = null;
        return;
      }
      if (group.shares.size === 0 || seen.isTaking || !(await isFree(group, seen, current()))) return;
      const { self } = current().region;
      const previous = seen.previous === self ? null : seen.previous;
      const before = hostsBefore(group.address, placement(), previous);
      if (!isAccepting() || before === null || !isDue(seen, before.length)) return;
      take(group, seen, log, () => {
        for (const host of new Set([...before, previous])) if (host !== null) avoided.add(host);
      });
    },

    /**
     * Has another host take it: this one does not take it back for a while. False: it keeps the group, because the next host
     * could not fence the earlier server while the monitors or a metadata server are away, and clients would wait.
     */
    async giveUp(group: NfsGroup): Promise<boolean> {
      try {
        await current().records.requireFencing();
      } catch (err) {
        log.warn({ nfsGroup: group.address, err }, 'the group is not handed over: the cluster is away');
        return false;
      }
      observedOf(group.address).retryAt = performance.now() + TAKE_BACK_MS;
      const { released } = await group.end();
      await released;
      return true;
    },

    /** Whether a takeover is in progress: this host may soon hold another group. */
    isTaking: () => [...observed.values()].some((seen) => seen.isTaking),

    forget: () => observed.clear(),
  };
}

/** Reads who holds a group that this host does not hold. Breaks the lock of an earlier agent of this host. */
async function isFree(group: NfsGroup, seen: Observed, { region, records }: HostPlace): Promise<boolean> {
  const holder = await records.holder(group.address);
  seen.holder = holder?.host ?? null;
  if (holder) {
    seen.previous = holder.host;
    seen.freeSince = null;
    // An earlier agent of this host took it. Its server has ended (`start`).
    if (holder.host !== region.self || group.isHeld()) return false;
    await records.breakLock(group.address, holder.cookie);
  }
  seen.freeSince ??= performance.now();
  return true;
}

/** Whether this host may take a free group, for which `rank` other hosts are preferred. */
function isDue({ freeSince, retryAt }: Observed, rank: number): boolean {
  const now = performance.now();
  return now >= retryAt && now - freeSince! >= rank * RANK_MS;
}

/** Not awaited: it takes seconds, and the other groups are polled meanwhile. */
function take(group: NfsGroup, seen: Observed, log: Logger, onTaken: () => void): void {
  seen.isTaking = true;
  void group
    .takeOver()
    .then(
      (isTaken) => {
        seen.retryMs = FIRST_RETRY_MS;
        if (isTaken) onTaken();
      },
      (err: unknown) => {
        log.error({ nfsGroup: group.address, err }, 'cannot take over the group');
        seen.retryAt = performance.now() + seen.retryMs;
        seen.retryMs = Math.min(seen.retryMs * 2, LAST_RETRY_MS);
      },
    )
    .finally(() => (seen.isTaking = false));
}
