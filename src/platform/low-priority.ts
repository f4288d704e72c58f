import { getPriority, setPriority } from 'node:os';

const lowPriority = 10;

/** Lowers the priority of this process and of those that it starts. One that is lower already is kept: raising it needs root. */
export function lowerPriority(): void {
  if (getPriority() < lowPriority) setPriority(lowPriority);
}
