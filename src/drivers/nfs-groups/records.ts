/**
 * What is known about an NFS group in RADOS: who holds its lock, and which servers of it may still run.
 *
 * Invariant: a server runs only while the group's object has its record, which names the states that it may serve. The record
 * is written before the server starts and removed after it has ended or was fenced: by the next holder of the lock, or by the
 * worker while the lock is free (driver.ts). So nobody serves a state that no record names, whether hosts are
 * reachable or not. The write asserts the lock in the same operation, so a host that was frozen cannot write a record after the
 * next holder has removed it.
 *
 * The lock expires by itself (the clock of the OSD decides, not those of hosts). It chooses the server; it does not protect
 * data, because a frozen host does not notice that its lock expired. Fencing does: `fence` evicts the clients of the group
 * from the metadata servers, which puts them on the blocklist of the OSDs.
 */
import type { SharePlace } from '../ceph/subvolumes.ts';

/** A server of a group. */
export interface ServerRecord {
  host: string;
  /** Whether clients reach it. */
  serving: boolean;
  /** The stamps of the states that it may serve, by the id of the share. */
  shares: Record<string, string>;
  /** The sizes that its exports show at least, GiB, by the id of the share. */
  sizes: Record<string, number>;
}

interface LockHolder {
  client: string;
  cookie: string;
  description: string;
}

const LOCK = 'nfs-group';
/** Shorter than the lock, so that a holder whose cluster does not respond notices in time. */
const LOCK_CALL_SECONDS = 2;
const CALL_SECONDS = 10;

/** The namespace of Ganesha's recovery state, and of the records of all groups of a region. */
export function recoveryNamespace(regionId: number, group: string): string {
  return `cloudyard.${regionId}.nfs.${group}`;
}

/** What the clients of a group call themselves in `client_metadata`, for `fence`. */
export function clientLabel(regionId: number, group: string): string {
  return `${regionId}/${group}`;
}

export const CLIENT_METADATA = 'cloudyard_nfs_group';

/** The records of all groups of a region, in one namespace of the pool. All calls reject with a DriverError. */
export function groupRecords({ bridge, regionId, pool, filesystem }: SharePlace) {
  const namespace = `cloudyard.${regionId}.nfs-groups`;
  const at = (group: string) => ({ pool, namespace, object: group });
  const fast = { timeoutSeconds: LOCK_CALL_SECONDS };
  const slow = { timeoutSeconds: CALL_SECONDS };
  const holders = (group: string) => bridge.call<LockHolder[]>('lock.holders', { ...at(group), lock: LOCK }, fast);
  return {
    /** Takes the lock, or renews it; false: another server has it. */
    lock: (group: string, cookie: string, { seconds, host }: { seconds: number; host: string }) =>
      bridge.call<boolean>('lock.acquire', { ...at(group), lock: LOCK, cookie, seconds, description: host }, fast),
    unlock: (group: string, cookie: string) =>
      bridge.call<void>('lock.release', { ...at(group), lock: LOCK, cookie }, slow),
    /** The host whose lock has not expired; null: none. */
    async holder(group: string): Promise<{ host: string; cookie: string } | null> {
      const [found] = await holders(group);
      return found ? { host: found.description, cookie: found.cookie } : null;
    },
    /** Takes the lock from an earlier server of this host that has ended. */
    async breakLock(group: string, cookie: string): Promise<void> {
      const found = (await holders(group)).find((each) => each.cookie === cookie);
      if (found) await bridge.call('lock.break', { ...at(group), lock: LOCK, client: found.client, cookie }, slow);
    },
    /** The groups that have ever had a server. */
    groups: () => bridge.call<string[]>('object.list', { pool, namespace }, slow),
    /** By cookie. */
    async servers(group: string): Promise<Map<string, ServerRecord>> {
      const pairs = await bridge.call<Record<string, string>>('omap.get', at(group), slow);
      return new Map(Object.entries(pairs).map(([cookie, text]) => [cookie, JSON.parse(text) as ServerRecord]));
    },
    /** @throws DriverError if the server has lost the lock; the OSD decides when it writes */
    write(group: string, cookie: string, record: ServerRecord): Promise<void> {
      const pairs = { [cookie]: JSON.stringify(record) };
      return bridge.call('omap.set', { ...at(group), pairs, lock: LOCK, cookie }, slow);
    },
    async remove(group: string, cookies: string[]): Promise<void> {
      if (cookies.length > 0) await bridge.call('omap.remove', { ...at(group), keys: cookies }, slow);
    },
    /** When this resolves, no server of the group that was started before can read or write the data of its shares. */
    async fence(group: string): Promise<void> {
      const filters = [`client_metadata.${CLIENT_METADATA}=${clientLabel(regionId, group)}`];
      await bridge.call('mds.command', { filesystem, request: { prefix: 'session evict', filters } }, slow);
    },
    /** @throws DriverError while `fence` could not succeed: the monitors or a metadata server are away */
    async requireFencing(): Promise<void> {
      await bridge.call('mds.ranks', { filesystem });
    },
  };
}

export type GroupRecords = ReturnType<typeof groupRecords>;
