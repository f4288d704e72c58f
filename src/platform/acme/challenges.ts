/**
 * Responses to the challenges of an ACME server (HTTP-01). Anyone can request them without a token, so requests share reads of
 * the database, and there are at most 10 reads a second, however many requests come.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { shared } from '../turns.ts';

export interface PendingChallenges {
  /** Token to response: at most one for each domain. */
  responses: Record<string, string>;
  /** Whether a server requests a certificate, so that more challenges may come. */
  issuing: boolean;
}

/** How long to wait for a challenge that another server has just received from lego. */
const waitMs = 3000;
const defaultPauseMs = 100;
const maxWaiting = 20;

/** `pauseMs`: from the start of a read to the next one. The returned function resolves with null for an unknown token. */
export function challengeResponses(
  read: () => Promise<PendingChallenges>,
  over: AbortSignal,
  pauseMs = defaultPauseMs,
): (token: string) => Promise<string | null> {
  let lastRead = -Infinity;
  const readInTurn = shared(async () => {
    const pause = lastRead + pauseMs - performance.now();
    if (pause > 0) await sleep(pause, undefined, { ref: false, signal: over }).catch(() => {});
    lastRead = performance.now();
    const { responses, issuing } = await read();
    return { responses: new Map(Object.entries(responses)), issuing };
  });

  let waiting = 0;
  return async (token) => {
    const deadline = performance.now() + waitMs;
    waiting += 1;
    try {
      for (;;) {
        const { responses, issuing } = await readInTurn();
        const response = responses.get(token) ?? null;
        if (response !== null || !issuing || waiting > maxWaiting || performance.now() > deadline) return response;
        if (over.aborted) return null;
      }
    } finally {
      waiting -= 1;
    }
  };
}
