/**
 * Files that are named by ids.
 *
 * Invariant: only UUIDs become part of a path, so that no id names a file outside of its folder.
 */
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { renameDurably, sizeOf, syncPath } from './durable-files.ts';
import { DriverError } from './driver.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether it is a UUID in lower case. */
export function isId(text: string): boolean {
  return uuid.test(text);
}

/** @throws DriverError when it is not a UUID; `what` is what it names */
export function checkedId(id: string, what: string): string {
  if (isId(id)) return id;
  throw new DriverError(`not the id of ${what}: ${JSON.stringify(id)}`, {
    customerMessage: 'the storage host rejected the request',
    retryable: false,
  });
}

/** The ids in a folder of `<beginning><id><ending>` files, sorted. Other files are ignored. */
export async function idsIn(folder: string, ending: string, beginning = ''): Promise<string[]> {
  return (await readdir(folder))
    .filter((name) => name.startsWith(beginning) && name.endsWith(ending))
    .map((name) => name.slice(beginning.length, name.length - ending.length))
    .filter(isId)
    .sort();
}

/** Whether a folder, which need not exist, has `<id><ending>` files. */
export async function hasIds(folder: string, ending: string): Promise<boolean> {
  return existsSync(folder) && (await idsIn(folder, ending)).length > 0;
}

/**
 * Durably deletes a file, which need not exist, or moves it to a quarantine folder. There it gets another name if an earlier file
 * has its name.
 */
export async function removeDurably(path: string, quarantine: string | null): Promise<void> {
  if (quarantine === null) {
    await rm(path, { force: true });
    await syncPath(dirname(path));
  } else if ((await sizeOf(path)) !== null) {
    const name = basename(path);
    const isTaken = (await sizeOf(join(quarantine, name))) !== null;
    await renameDurably(path, join(quarantine, isTaken ? `${Date.now()}-${name}` : name));
  }
}
