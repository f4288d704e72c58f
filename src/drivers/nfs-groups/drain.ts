/** Hands the NFS groups of a host over to other hosts, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { canHandOver, type RegionView } from '../../hosts/part.ts';
import type { Logger } from '../../platform/log.ts';
import { refuseAborted } from '../command.ts';
import { POLL_MS } from './balance.ts';
import type { NfsGroup } from './group.ts';
import type { GroupRecords } from './records.ts';

interface DrainOptions {
  groups: ReadonlyMap<string, NfsGroup>;
  /** False: no other host could take it at the moment. */
  giveUp(group: NfsGroup): Promise<boolean>;
  /** Whether this host may soon hold another group. */
  isTaking(): boolean;
  current(): { region: RegionView; records: GroupRecords };
  signal: AbortSignal;
  log: Logger;
  /** How long to wait until another host serves a group. Default: 15 s. */
  stepMs?: number;
}

const STEP_MS = 15_000;
/** Until a group that nobody took is given up again: the first pause, and the last one. */
const FIRST_PAUSE_MS = 60_000;
const LAST_PAUSE_MS = 3_600_000;

/**
 * Resolves when this host holds no group. While no other host may take one, it keeps its groups and waits. It takes back a group
 * that nobody serves: the other hosts do not reach the cluster, or their Ganesha does not start.
 */
export async function drainGroups(options: DrainOptions): Promise<void> {
  const { groups, giveUp, isTaking, current, signal, log, stepMs = STEP_MS } = options;
  for (let pauseMs = FIRST_PAUSE_MS; ; ) {
    const group = [...groups.values()].find((each) => each.isHeld());
    if (!group) {
      if (!isTaking()) return;
      refuseAborted(signal);
      await sleep(POLL_MS);
      continue;
    }
    while (!canHandOver(current().region) || !(await giveUp(group))) {
      refuseAborted(signal);
      await sleep(POLL_MS);
    }
    const isTaken = await isServed(current().records, group.address, { stepMs, signal });
    if (isTaken || group.shares.size === 0) continue;
    refuseAborted(signal);
    await takeBack(group, log);
    // Another host may have the lock, and be starting its server.
    if (group.isHeld()) await pause(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS);
  }
}

async function takeBack(group: NfsGroup, log: Logger): Promise<void> {
  const nfsGroup = group.address;
  try {
    if (await group.takeOver())
      log.warn({ nfsGroup }, 'no other host serves the group; it was taken back, and the drain waits');
  } catch (err) {
    log.error({ nfsGroup, err }, 'cannot take back a group that no other host serves');
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; await sleep(POLL_MS)) refuseAborted(signal);
}

/** False: another host does not serve the group within this time. */
async function isServed(
  records: GroupRecords,
  group: string,
  { stepMs, signal }: { stepMs: number; signal: AbortSignal },
): Promise<boolean> {
  for (const deadline = performance.now() + stepMs; performance.now() < deadline; await sleep(POLL_MS)) {
    refuseAborted(signal);
    const servers = await records.servers(group).catch(() => new Map());
    if ([...servers.values()].some(({ serving }) => serving)) return true;
  }
  return false;
}
