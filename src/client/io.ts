/** What commands need of their process; tests pass their own. */
import { readFileSync } from 'node:fs';
import type { Environment } from './contexts.ts';
import { usageError } from './errors.ts';

export interface Io {
  env: Environment;
  /** Data only. */
  out(text: string): void;
  err: { isTTY?: boolean; write(text: string): unknown };
  readInput(): Promise<string>;
}

/** The text of a file, `-`: of standard input. @throws CommandError that starts with `prefix` if the file cannot be read */
export async function readText(file: string, io: Io, prefix = ''): Promise<string> {
  if (file === '-') return io.readInput();
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usageError(`${prefix}${file} cannot be read (${(error as NodeJS.ErrnoException).code})`, error);
  }
}

/** Runs a command and returns its exit code. */
export type Run = (args: string[], io: Io) => Promise<number>;
