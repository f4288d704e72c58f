import { accessSync, constants, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of a program on PATH, or where Debian keeps PostgreSQL's; null when it is not installed. */
export function findProgram(name: string): string | null {
  const onPath = (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir, name));
  const places = [...onPath, `/usr/bin/${name}`, ...globSync(`/usr/lib/postgresql/*/bin/${name}`).sort().reverse()];
  return places.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
