import { readOrEmpty } from './read-or-empty.ts';

/** Debian's default soft limit. */
const defaultLimit = 1024;

/**
 * The number of files and connections that this process, and each of its children, may open. Node raises its soft limit to the
 * hard limit.
 */
export function descriptorLimit(): number {
  const soft = /^Max open files +(\d+|unlimited)/m.exec(readOrEmpty('/proc/self/limits'))?.[1];
  return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft ?? defaultLimit);
}
