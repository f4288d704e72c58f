/** The free space of the filesystem of a data directory, as a worker reports it with its heartbeat. */
import { statfsSync } from 'node:fs';
import type { DriverStatus } from './driver-status.ts';

export const diskKind = 'data directory';

export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
  /** With less free space, creates are refused. */
  reserveBytes: number;
}

export type DiskStatus = DriverStatus & DiskSpace;

/** `reserve`: percent of the filesystem. @throws if the folder does not exist */
export function readDiskSpace(dataDir: string, reserve: number): DiskSpace {
  const { bavail, blocks, bsize } = statfsSync(dataDir);
  const totalBytes = blocks * bsize;
  return { freeBytes: bavail * bsize, totalBytes, reserveBytes: Math.ceil((totalBytes * reserve) / 100) };
}

export function hasReserve({ freeBytes, reserveBytes }: DiskSpace): boolean {
  return freeBytes >= reserveBytes;
}

export function diskStatus(dataDir: string, reserve: number): DiskStatus {
  const space = readDiskSpace(dataDir, reserve);
  const healthy = hasReserve(space);
  const [free, total, reserved] = [space.freeBytes, space.totalBytes, space.reserveBytes].map(inGib);
  const detail = `${dataDir}: ${free} of ${total} free; the reserve is ${reserved}`;
  const refusing = `${detail}, so creates and pushes are refused`;
  return { ...space, driver: 'filesystem', kind: diskKind, real: true, healthy, detail: healthy ? detail : refusing };
}

export function inGib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
