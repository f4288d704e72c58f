/** Reads the start of an error response of distribution, and leaves the body as it is. */
import { once } from 'node:events';
import type { Readable } from 'node:stream';

/** The first part of a body. Distribution writes the first errors and the headers at once. */
export async function startOf(answer: Readable): Promise<string> {
  // A body whose start was read before, and an empty one, may not be announced as readable.
  if (answer.readableLength === 0 && !answer.readableEnded) {
    await Promise.race([once(answer, 'readable'), once(answer, 'end')]);
  }
  const start = answer.read() as Buffer | null;
  // In the same tick, because a stream whose last part was read may end in the next one.
  if (start) answer.unshift(start);
  return start?.toString('latin1') ?? '';
}
