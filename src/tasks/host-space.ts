/**
 * Refuses work that needs disk space while the host of its region has less free space than its reserve. The host may be
 * another machine: its worker reports the space with its heartbeat, and each server reads the heartbeats about once a second
 * while work is enqueued. So a refusal may be some seconds late; the reserve is for these seconds.
 */
import { ClientError } from '../errors/catalogue.ts';
import { type Db, prepared } from '../platform/db.ts';
import { diskKind, type DiskStatus, hasReserve, inGib } from '../platform/disk-space.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import { joined } from '../platform/turns.ts';
import { seenRecently } from './table.ts';

/** The types of tasks that need space, and the kind of driver that needs it. */
const users: Record<string, string> = {
  create_sfs: 'file shares',
  extend_sfs: 'file shares',
  create_volume: 'volumes',
  extend_volume: 'volumes',
  create_snapshot: 'volumes',
};

export type HostSpace = ReturnType<typeof createHostSpace>;

interface Host {
  host: string;
  region_ids: number[];
  drivers: (DriverStatus | DiskStatus)[];
}

const refreshMs = 1000;

const readHosts = prepared<Host>(
  'worker_hosts',
  `select host, region_ids, drivers from workers where ${seenRecently} and cardinality(region_ids) > 0`,
);

export function createHostSpace(db: Db) {
  let hosts: Host[] = [];
  let readAt = -Infinity;

  const refresh = joined(async () => {
    try {
      hosts = await readHosts(db);
    } catch {
      // Without the database nothing is enqueued either.
    }
    readAt = performance.now();
  });

  return {
    /** @throws ClientError 507 that names the host, if a task of this type needs space there */
    requireSpace(regionId: number, taskType: string): void {
      const user = users[taskType];
      if (user === undefined) return;
      if (performance.now() - readAt > refreshMs) void refresh();
      for (const { host, drivers } of hosts.filter(({ region_ids }) => region_ids.includes(regionId))) {
        const driver = drivers.find(({ kind, real }) => kind === user && real);
        const space = driver?.space ?? drivers.find(isDisk);
        if (!driver || !space || hasReserve(space)) continue;
        throw new ClientError(
          'InsufficientStorage',
          `${driver.space ? `the storage of ${user}` : `host ${host}`} has ${inGib(space.freeBytes)} free, less than its ` +
            `reserve of ${inGib(space.reserveBytes)}; the operator must add space`,
        );
      }
    },
  };
}

function isDisk(status: DriverStatus): status is DiskStatus {
  return status.kind === diskKind;
}
