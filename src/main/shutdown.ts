/** How a command ends: `stop` ends everything it started; `handOver` keeps running what serves users, for the next process to adopt. */
export type Ending = 'stop' | 'handOver';

/** What to do when the command ends, in reverse order. Every part that a command opens adds a step. */
export type ShutdownSteps = ((ending: Ending) => Promise<unknown>)[];
