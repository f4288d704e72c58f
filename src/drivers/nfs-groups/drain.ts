/** Hands the NFS groups of a host over to other hosts, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { canHandOver, type RegionView } from '../../hosts/part.ts';
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
}

/** How long to wait until another host serves a group, before the next one follows. */
const STEP_MS = 15_000;

/** Resolves when this host holds no group. While no other host may take one, it keeps its groups and waits. */
export async function drainGroups({ groups, giveUp, isTaking, current, signal }: DrainOptions): Promise<void> {
  for (;;) {
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
    await untilServed(current().records, group.address, signal);
  }
}

async function untilServed(records: GroupRecords, group: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + STEP_MS;
  while (performance.now() < deadline) {
    refuseAborted(signal);
    const servers = await records.servers(group).catch(() => new Map());
    if ([...servers.values()].some(({ serving }) => serving)) return;
    await sleep(POLL_MS);
  }
}
