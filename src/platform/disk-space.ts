/** The free space of the filesystem of a data directory, as a worker reports it with its heartbeat. */
import { statfsSync } from 'node:fs';
import type { DiskSpace, DriverStatus } from './driver-status.ts';

/** The kind of the status in the start table and in health. */
export const diskKind = 'data directory';

export type DiskStatus = DriverStatus & DiskSpace;

/** `reserve`: percent of the filesystem. @throws if the folder cannot be read */
function readDiskSpace(dataDir: string, reserve: number): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(dataDir);
  const totalBytes = blocks * bsize;
  return { freeBytes: bavail * bsize, totalBytes, reserveBytes: Math.ceil((totalBytes * reserve) / 100) };
}

/** Whether creates are accepted. */
export function hasReserve({ freeBytes, reserveBytes }: DiskSpace): boolean {
  return freeBytes >= reserveBytes;
}

/** Rounds the free space down to a thousandth of the filesystem, so that not every write on the host changes the report. */
export function coarseSpace(space: DiskSpace): DiskSpace {
  const step = Math.max(1, Math.floor(space.totalBytes / 1000));
  return { ...space, freeBytes: Math.floor(space.freeBytes / step) * step };
}

const unknownSpace: DiskSpace = { freeBytes: 0, totalBytes: 0, reserveBytes: 0 };

/**
 * A changed report is an event (resources/regions/index.ts), so the space is coarse. A folder that cannot be read is
 * unhealthy: an error here would end the heartbeat, which reports all drivers.
 */
export function diskStatus(dataDir: string, reserve: number): DiskStatus {
  const disk = { driver: 'filesystem', kind: diskKind, real: true };
  let space: DiskSpace;
  try {
    space = coarseSpace(readDiskSpace(dataDir, reserve));
  } catch (error) {
    return { ...disk, ...unknownSpace, healthy: false, detail: `cannot read ${dataDir}: ${(error as Error).message}` };
  }
  const healthy = hasReserve(space);
  const [free, total, reserved] = [space.freeBytes, space.totalBytes, space.reserveBytes].map(inGib);
  const detail = `${dataDir}: ${free} of ${total} free; the reserve is ${reserved}`;
  const refusing = `${detail}, so creates and pushes are refused`;
  return { ...disk, ...space, healthy, detail: healthy ? detail : refusing };
}

/** For messages: `12.3 GiB`. */
export function inGib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
