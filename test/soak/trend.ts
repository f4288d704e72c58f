/** Decides whether a series of measurements is flat. */

export interface Point {
  seconds: number;
  value: number;
}

interface Trend {
  /** The median of the values. */
  level: number;
  /** By how much the series grows over its whole length. */
  growth: number;
}

/** The estimator of Theil and Sen: the median slope between all pairs of points, which single outliers do not change. */
export function trendOf(points: readonly Point[]): Trend {
  const slopes: number[] = [];
  for (const [i, a] of points.entries()) {
    for (const b of points.slice(i + 1)) {
      if (b.seconds > a.seconds) slopes.push((b.value - a.value) / (b.seconds - a.seconds));
    }
  }
  const length = (points.at(-1)?.seconds ?? 0) - (points[0]?.seconds ?? 0);
  return { level: median(points.map(({ value }) => value)), growth: median(slopes) * length };
}

/** `share` of the level, or `floor` where that is more, is noise. */
export function isFlat({ level, growth }: Trend, { share, floor }: { share: number; floor: number }): boolean {
  return growth <= Math.max(share * level, floor);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
