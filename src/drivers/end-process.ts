/** Ends a process that an earlier process of Cloudyard left behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, type LiveProcess } from '../platform/running-processes.ts';

const POLL_MS = 10;

/** Sends SIGTERM, and SIGKILL after `patienceMs`. Resolves when the process has ended or was killed. */
export async function endProcess(found: LiveProcess, patienceMs = 10_000): Promise<void> {
  process.kill(found.pid, 'SIGTERM');
  const deadline = performance.now() + patienceMs;
  while (isRunning(found) && performance.now() < deadline) await sleep(POLL_MS);
  if (isRunning(found)) process.kill(found.pid, 'SIGKILL');
}
