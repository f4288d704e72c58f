/**
 * The temporary directory of a bench and the clean-up of its processes, also after a failure or an interruption.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Workplace {
  dir: string;
  /** Registers a clean-up step. Steps run in reverse order. */
  closing(step: () => Promise<unknown>): void;
  clear(): Promise<void>;
}

export function createWorkplace(): Workplace {
  const dir = mkdtempSync(join(tmpdir(), 'cloudyard-bench-'));
  // As root, PostgreSQL runs as another account, which must be able to enter the folder.
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
