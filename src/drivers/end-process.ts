/** Ends a daemon that an earlier process started with other settings. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, type LiveProcess } from '../platform/running-processes.ts';

const POLL_MS = 50;
const STOP_POLLS = 200;

/** Sends SIGTERM, and SIGKILL after 10 s. Resolves when the process has ended or was killed. */
export async function endProcess(found: LiveProcess): Promise<void> {
  process.kill(found.pid, 'SIGTERM');
  for (let polls = 0; polls < STOP_POLLS && isRunning(found); polls += 1) await sleep(POLL_MS);
  if (isRunning(found)) process.kill(found.pid, 'SIGKILL');
}
