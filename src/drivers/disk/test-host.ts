/** Places for images in tests: a folder in /tmp, and a small XFS with reflinks. `cleanUp` removes everything. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { VolumeDriver } from '../volume.ts';
import { createDiskDriver, type DiskDriverOptions } from './driver.ts';
import { layoutOf } from './layout.ts';

export interface Place {
  dataDir: string;
  driver(options?: Omit<DiskDriverOptions, 'dataDir'>): VolumeDriver;
  volume(id: string): string;
  snapshot(id: string): string;
  cleanUp(): Promise<void>;
}

/** Never uses reflinks, on any filesystem. */
export async function folder(): Promise<Place> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-disk-'));
  return place(dataDir, { withoutReflinks: true }, () => rmSync(dataDir, { recursive: true, force: true }));
}

export async function xfs(): Promise<Place> {
  const root = mkdtempSync(join(tmpdir(), 'cloudyard-xfs-'));
  const [image, dataDir] = [join(root, 'image'), join(root, 'data')];
  mkdirSync(dataDir);
  execFileSync('truncate', ['-s', '600M', image]);
  execFileSync('mkfs.xfs', ['-q', '-m', 'reflink=1', image]);
  execFileSync('mount', ['-o', 'loop', image, dataDir]);
  return place(dataDir, {}, () => {
    execFileSync('umount', ['-l', dataDir]);
    rmSync(root, { recursive: true, force: true });
  });
}

function place(dataDir: string, defaults: Omit<DiskDriverOptions, 'dataDir'>, cleanUp: () => void): Place {
  const { volume, snapshot } = layoutOf(dataDir);
  const driver: Place['driver'] = (options) => createDiskDriver({ dataDir, ...defaults, ...options });
  return { dataDir, driver, volume, snapshot, cleanUp: async () => cleanUp() };
}

export async function write(path: string, at: number, text: string | Buffer): Promise<void> {
  await using file = await open(path, 'r+');
  await file.write(Buffer.from(text), 0, null, at);
}

export async function read(path: string, at: number, length: number): Promise<string> {
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.toString('utf8', 0, bytesRead);
}
