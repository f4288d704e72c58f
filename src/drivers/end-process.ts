/** Ends a daemon that an earlier process started with other settings. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type LiveProcess, liveProcess } from '../platform/daemon.ts';

const POLL_MS = 50;
const STOP_POLLS = 200;

/** Sends SIGTERM, and SIGKILL after 10 s. Resolves when the process has ended or was killed. */
export async function endProcess({ pid, startTime }: LiveProcess): Promise<void> {
  const isAlive = () => liveProcess(pid)?.startTime === startTime;
  process.kill(pid, 'SIGTERM');
  for (let polls = 0; polls < STOP_POLLS && isAlive(); polls += 1) await sleep(POLL_MS);
  if (isAlive()) process.kill(pid, 'SIGKILL');
}
