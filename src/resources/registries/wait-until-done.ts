import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../errors/catalogue.ts';

/** Each poll is a query, so a longer wait polls less often. */
const firstPollMs = 25;
const lastPollMs = 500;
const timeoutMs = 20_000;

/** Waits until the region's worker has done what the transaction requested. @throws ClientError 503 after a timeout */
export async function waitUntilDone(isDone: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pollMs = firstPollMs; !(await isDone()); pollMs = Math.min(pollMs * 1.5, lastPollMs)) {
    if (performance.now() > deadline) {
      const message = "accepted, but the region's worker has not finished yet; check again in a moment";
      throw unavailable(message, { retrySeconds: 10 });
    }
    await sleep(pollMs);
  }
}
