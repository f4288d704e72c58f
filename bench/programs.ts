import { globSync } from 'node:fs';
import { findProgram as findOnHost } from '../src/drivers/programs.ts';

/** The path of a program, also of one of PostgreSQL, which Debian keeps outside of PATH; null: not installed. */
export function findProgram(name: string): string | null {
  return findOnHost(name) ?? globSync(`/usr/lib/postgresql/*/bin/${name}`).sort().at(-1) ?? null;
}
