/**
 * Binds processes to processors. A process that the scheduler moves loses its caches: with a process for each processor, two
 * processes that are bound answer a sixth more requests (docs/decisions/0038-server-processes.md).
 */
import { runChild } from './child-process.ts';
import { readOrEmpty } from './read-or-empty.ts';

/** The numbers of the processors that this process may use, from `Cpus_allowed_list` (proc_pid_status(5)); empty if unknown. */
export function usableProcessors(status = readOrEmpty('/proc/self/status')): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1];
  if (list === undefined) return [];
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number) as [number, number?];
    return Array.from({ length: last! - first + 1 }, (_, i) => first + i);
  });
}

/**
 * Binds the main thread of a process. Its other threads, which compile and collect garbage, stay free. Rejects if the host
 * has no `taskset` or forbids it.
 */
export async function bindToProcessor(pid: number, processor: number): Promise<void> {
  await runChild('taskset', ['--pid', '--cpu-list', `${processor}`, `${pid}`]);
}
