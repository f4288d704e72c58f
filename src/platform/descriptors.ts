import { readFileSync } from 'node:fs';

/** Debian's default for a process that sets no limit of its own. */
const customary = 1024;

/** How many files and connections this process may have open. Node raises its soft limit to the hard one. */
export function descriptorLimit(): number {
  try {
    const soft = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft ?? customary);
  } catch {
    return customary;
  }
}
