/** Finds programs of this host. */
import { accessSync, constants } from 'node:fs';

/** The path of a program; null: not installed. A service often has a PATH without sbin, so those folders are searched, too. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return folders.map((folder) => `${folder}/${name}`).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return path.startsWith('/');
  } catch {
    return false;
  }
}
