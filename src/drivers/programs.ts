/** Finds programs of this host. */
import { accessSync, constants } from 'node:fs';
import type { HostProgram } from './kind.ts';

/** The path of a program; null: not installed. A service often has a PATH without sbin, so those folders are searched, too. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return folders.map((folder) => `${folder}/${name}`).find(isExecutable) ?? null;
}

/** The path of a program or a part of it; null: missing. */
export function pathOf({ name, find }: HostProgram): string | null {
  return find ? find() : findProgram(name);
}

/** The programs that are not on this host. */
export function missingOf(programs: HostProgram[]): HostProgram[] {
  return programs.filter((program) => pathOf(program) === null);
}

/** The Debian packages of programs, each once. */
export function packagesOf(programs: HostProgram[]): string[] {
  return [...new Set(programs.map((each) => each.package))];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return path.startsWith('/');
  } catch {
    return false;
  }
}
