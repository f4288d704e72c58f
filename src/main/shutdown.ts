import type { Logger } from '../platform/log.ts';
import type { ShutdownMode } from '../platform/shutdown-mode.ts';

/** What to do when the command ends, in reverse order. Every part that a command opens adds a step. */
export type ShutdownSteps = ((mode: ShutdownMode) => Promise<unknown>)[];

/** Runs the steps in reverse order. One that fails is logged and does not stop the others. */
export async function close(steps: ShutdownSteps, mode: ShutdownMode, log: Logger): Promise<void> {
  for (const step of steps.splice(0).reverse()) {
    await step(mode).catch((error: unknown) => log.error({ err: error }, 'a part did not stop cleanly'));
  }
}

/** Ends this process in order, with a code for which its supervisor starts it again. SIGTERM keeps the data planes of a worker. */
export function endAsFailed(signal: 'SIGINT' | 'SIGTERM'): void {
  process.exitCode = 1;
  process.kill(process.pid, signal);
}

/** Ends this process as a crash does: nothing of it changes the host any more, and the data planes keep running. */
export function endAtOnce(): void {
  process.exit(1);
}
