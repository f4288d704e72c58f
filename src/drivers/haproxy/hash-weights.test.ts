import { describe, expect, it } from 'vitest';
import { withHashWeights } from './hash-weights.ts';
import { member } from './test-host.ts';

const scaled = (weights: number[]) =>
  withHashWeights(weights.map((weight) => member(80, { weight }))).map(({ weight }) => weight);

describe('weights of a consistent hash', () => {
  it('are unchanged in small pools and in pools of light members', () => {
    const light = Array.from({ length: 1_000 }, () => 4);
    for (const weights of [[], [0], [256, 1, 0], light]) expect(scaled(weights)).toEqual(weights);
  });

  it('have a bounded sum and about the same proportion in large pools', () => {
    const heavy = Array.from({ length: 1_000 }, (_, at) => (at % 2 === 0 ? 256 : 128));
    const found = scaled([...heavy, 1, 0]);
    expect(found.slice(0, 2)).toEqual([5, 3]);
    expect(found.slice(-2)).toEqual([1, 0]);
    expect(found.reduce((sum, weight) => sum + weight)).toBeLessThan(4_100);
  });
});
