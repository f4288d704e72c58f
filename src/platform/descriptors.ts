import { readFileSync } from 'node:fs';

/** Debian's default soft limit. */
const defaultLimit = 1024;

/** The number of files and connections that this process may open. Node raises its soft limit to the hard limit. */
export function descriptorLimit(): number {
  try {
    const soft = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft ?? defaultLimit);
  } catch {
    return defaultLimit;
  }
}
