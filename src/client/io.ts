/** What commands need of their process; tests pass their own. */
import type { Environment } from './contexts.ts';

export interface Io {
  env: Environment;
  /** Data only. */
  out(text: string): void;
  err: { isTTY?: boolean; write(text: string): unknown };
  readInput(): Promise<string>;
}
