import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError } from '../../errors/catalogue.ts';

/** Each poll is a statement, so a longer wait polls less often. */
const firstPollMs = 25;
const lastPollMs = 500;
const patienceMs = 20_000;

/** Waits until the region's worker has done what was written down for it. @throws ClientError 503 when that takes long */
export async function untilDone(isDone: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (let pollMs = firstPollMs; !(await isDone()); pollMs = Math.min(pollMs * 1.5, lastPollMs)) {
    if (performance.now() > deadline) {
      throw new ClientError(
        'Unavailable',
        "the region's worker has not done this yet; it will when it runs again, so ask again in a moment",
        { headers: { 'retry-after': '10' } },
      );
    }
    await sleep(pollMs);
  }
}
