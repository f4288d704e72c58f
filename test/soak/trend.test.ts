import { expect, it } from 'vitest';
import { isFlat, trendOf } from './trend.ts';

const series = (valueAt: (i: number) => number) =>
  Array.from({ length: 60 }, (_, i) => ({ seconds: i * 10, value: valueAt(i) }));
const noise = (i: number) => ((i * 7919) % 13) - 6;
const tolerance = { share: 0.1, floor: 0 };

it('noise around a level is flat', () => {
  expect(isFlat(trendOf(series((i) => 200 + noise(i))), tolerance)).toBe(true);
});

it('a single outlier is flat', () => {
  expect(isFlat(trendOf(series((i) => (i === 59 ? 2000 : 200))), tolerance)).toBe(true);
});

it('a leak under noise is not flat', () => {
  const trend = trendOf(series((i) => 200 + i + noise(i)));
  expect(isFlat(trend, tolerance)).toBe(false);
  expect(trend.growth).toBeCloseTo(59, -1);
});

it('a series that falls is flat', () => {
  expect(isFlat(trendOf(series((i) => 200 - i)), tolerance)).toBe(true);
});

it('growth below the floor is flat', () => {
  expect(isFlat(trendOf(series((i) => 10 + i / 10)), { share: 0.1, floor: 20 })).toBe(true);
});
