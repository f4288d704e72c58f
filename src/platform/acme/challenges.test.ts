import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { challengeResponses, type PendingChallenges } from './challenges.ts';

/** Responses from `rows`, which counts the reads. */
function responsesFrom(rows: PendingChallenges, pauseMs: number) {
  const over = new AbortController();
  const state = { reads: 0, over, problem: null as Error | null };
  const read = async () => {
    state.reads += 1;
    await sleep(1);
    if (state.problem) throw state.problem;
    return structuredClone(rows);
  };
  return { find: challengeResponses(read, over.signal, pauseMs), state };
}

it('any number of requests costs a limited number of reads', async () => {
  const { find, state } = responsesFrom({ responses: { known: 'response' }, issuing: false }, 50);
  const start = performance.now();
  for (let round = 0; round < 20; round += 1) {
    const flood = Array.from({ length: 500 }, (_, at) => find(`unknown-${at}`));
    expect(await find('known')).toBe('response');
    expect(new Set(await Promise.all(flood))).toEqual(new Set([null]));
  }
  const elapsed = performance.now() - start;
  expect(state.reads).toBeLessThanOrEqual(elapsed / 50 + 2);
  expect(await find('constructor')).toBeNull();
});

it('a challenge that comes while a certificate is requested is waited for', async () => {
  const rows: PendingChallenges = { responses: {}, issuing: true };
  const { find, state } = responsesFrom(rows, 5);
  const found = find('late');
  await expect.poll(() => state.reads, { interval: 1 }).toBeGreaterThan(2);
  rows.responses['late'] = 'response';
  expect(await found).toBe('response');

  const unknown = find('unknown');
  rows.issuing = false;
  expect(await unknown).toBeNull();
});

it('requests end when the server stops, and fail while the database is away', async () => {
  const { find, state } = responsesFrom({ responses: {}, issuing: true }, 5);
  state.problem = new Error('no database');
  await expect(Promise.all([find('one'), find('two')])).rejects.toThrow('no database');
  state.problem = null;
  const waiting = find('one');
  state.over.abort();
  expect(await waiting).toBeNull();
});
