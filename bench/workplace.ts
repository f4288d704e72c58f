/**
 * Where a bench works: a directory of its own, and a list of what it started. All is gone afterwards, whether the bench
 * ended, broke or was interrupted.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Workplace {
  dir: string;
  /** Registers how to stop what was started; the last one started is stopped first. */
  closing(step: () => Promise<unknown>): void;
  clear(): Promise<void>;
}

export function createWorkplace(): Workplace {
  const dir = mkdtempSync(join(tmpdir(), 'cloudyard-bench-'));
  // Started by root, PostgreSQL runs as another account and has to enter.
  chmodSync(dir, 0o755);
  const steps: (() => Promise<unknown>)[] = [];
  const clear = async () => {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    for (const step of steps.splice(0).reverse()) await step().catch((error: unknown) => console.error(error));
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  const interrupted = () => void clear().then(() => process.exit(130));
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  return { dir, closing: (step) => steps.push(step), clear };
}
