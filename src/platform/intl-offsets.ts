/**
 * Offsets of zones by the rules of Node (Intl).
 *
 * Intl takes a microsecond to return the offset of an instant, so offsets are cached by UTC day. A day that begins and ends
 * with the same offset has that offset throughout (no zone has changed twice within a day since 1970); any other day is
 * searched for the instant of its change.
 */
import { boundedCache } from './bounded-cache.ts';
import type { OffsetAt } from './tzif.ts';

const daySeconds = 86_400;
/** Cached days of a zone. */
const maxCached = 1024;

/** @throws RangeError when Intl does not know the name */
export function intlOffsets(name: string): OffsetAt {
  const readOffset = reader(name);
  const offsetAtMidnight = boundedCache(maxCached, (day: number) => readOffset(day * daySeconds));

  /** The instant within the day from which the offset of the next midnight applies. */
  const changeOn = boundedCache(maxCached, (day: number) => {
    const after = offsetAtMidnight(day + 1);
    let [low, high] = [day * daySeconds, (day + 1) * daySeconds];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (readOffset(middle) === after) high = middle;
      else low = middle;
    }
    return high;
  });

  return (instant) => {
    const day = Math.floor(instant / daySeconds);
    const [before, after] = [offsetAtMidnight(day), offsetAtMidnight(day + 1)];
    return before === after || instant < changeOn(day) ? before : after;
  };
}

function reader(timeZone: string): OffsetAt {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, year: 'numeric', timeZoneName: 'longOffset' });
  return (instant) => {
    // `2026, GMT`, `2026, GMT+05:30`, and in old rules `1971, GMT-00:44:30`.
    const [, sign, hours, minutes, seconds] = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(
      format.format(instant * 1000),
    )!;
    if (sign === undefined) return 0;
    const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds ?? 0);
    return sign === '-' ? -size : size;
  };
}
