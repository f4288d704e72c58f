import type { Logger } from '../platform/log.ts';

/** How a command ends: `stop` ends everything it started; `handOver` keeps running what serves users, for the next process to adopt. */
type Ending = 'stop' | 'handOver';

/** What to do when the command ends, in reverse order. Every part that a command opens adds a step. */
export type ShutdownSteps = ((ending: Ending) => Promise<unknown>)[];

/** Runs the steps in reverse order. One that fails is logged and does not stop the others. */
export async function close(steps: ShutdownSteps, ending: Ending, log: Logger): Promise<void> {
  for (const step of steps.splice(0).reverse()) {
    await step(ending).catch((error: unknown) => log.error({ err: error }, 'a part did not stop cleanly'));
  }
}
