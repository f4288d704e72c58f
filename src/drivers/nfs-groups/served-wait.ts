/**
 * Waits until every server of an NFS group, on whichever host, serves a state of a share, by the records of the servers
 * (records.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import type { GroupRecords, ServerRecord } from './records.ts';

interface AwaitedState {
  /** Null: no server has the share. */
  stamp: string | null;
  /** GiB. Null: any. */
  sizeGib: number | null;
  signal: AbortSignal;
}

const POLL_MS = 150;

/** `seconds`: how long to wait for the server of a group. */
export function servedWait(records: GroupRecords, seconds: number) {
  /** @throws DriverError if the servers do not have the state in time */
  return async (group: string, id: string, { stamp, sizeGib, signal }: AwaitedState): Promise<void> => {
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      refuseAborted(signal);
      const servers = [...(await records.servers(group)).values()];
      const isCurrent = servers.every(
        ({ shares, sizes }) => (shares[id] ?? null) === stamp && (sizeGib === null || (sizes[id] ?? 0) >= sizeGib),
      );
      if (isCurrent && (stamp === null || servers.some(({ serving }) => serving))) return;
      if (performance.now() > deadline) {
        if (stamp !== null || !(await fenceAbandoned(records, group))) throw notServed(group, servers);
      }
      await sleep(POLL_MS);
    }
  };
}

/**
 * Fences the servers of a group that no host holds, and returns whether there were any: no host takes over a group whose last
 * share is removed. A server that takes the lock meanwhile writes its record later, so its record stays.
 */
async function fenceAbandoned(records: GroupRecords, group: string): Promise<boolean> {
  const cookies = [...(await records.servers(group)).keys()];
  if (cookies.length === 0 || (await records.holder(group)) !== null) return false;
  await records.fence(group);
  await records.remove(group, cookies);
  return true;
}

function notServed(group: string, servers: ServerRecord[]): DriverError {
  const who = servers.map(({ host, serving }) => `${host} (${serving ? 'serving' : 'starting'})`).join(', ');
  const message = `the NFS group ${group} does not serve the new state; its servers: ${who || 'none'}`;
  return new DriverError(message, {
    customerMessage: `the file server ${group} does not respond`,
    retryable: true,
    maxRetrySeconds: 20,
  });
}
