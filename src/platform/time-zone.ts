/**
 * Local time of IANA zones, from the rules of Node (Intl).
 *
 * Intl takes a microsecond to return the offset of an instant, so offsets are cached by UTC day. A day that begins and ends
 * with the same offset has that offset throughout (no zone has changed twice within a day since 1970); any other day is
 * searched for the instant of its change.
 *
 * Units: seconds since 1970; local times count as if the zone were UTC.
 */
const daySeconds = 86_400;
/** Cached days of a zone; beyond it the cache is cleared. */
const maxCached = 1024;

export interface TimeZone {
  name: string;
  /** The offset from UTC at an instant. */
  offsetAt(instant: number): number;
  /** The first instant with a local time; null when clocks skip that time. */
  firstInstantOf(local: number): number | null;
}

/** Areas of the IANA database; Intl knows other names, too (`PST`, `SystemV/PST8`, `+01:00`). */
const inArea =
  /^(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)(?:\/[A-Z][A-Za-z0-9_+-]*){1,2}$/;
const withoutArea = new Set(
  `CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel
   Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey
   UCT UTC Universal W-SU WET Zulu`.split(/\s+/),
);

const known = new Map<string, TimeZone>();

/** The zone of an IANA name; null for an unknown name. */
export function timeZone(name: string): TimeZone | null {
  const cached = known.get(name);
  if (cached) return cached;
  if (!inArea.test(name) && !withoutArea.has(name)) return null;
  let zone: TimeZone;
  try {
    zone = createTimeZone(name);
  } catch {
    return null;
  }
  known.set(name, zone);
  return zone;
}

/** @throws RangeError when Intl does not know the name */
function createTimeZone(name: string): TimeZone {
  const readOffset = offsetByIntl(name);
  const atMidnight = new Map<number, number>();
  const changes = new Map<number, number>();

  const offsetAtMidnight = (day: number): number => {
    let offset = atMidnight.get(day);
    if (offset === undefined) {
      offset = readOffset(day * daySeconds);
      if (atMidnight.size >= maxCached) atMidnight.clear();
      atMidnight.set(day, offset);
    }
    return offset;
  };

  /** The instant within the day from which the offset of the next midnight applies. */
  const changeOn = (day: number): number => {
    let change = changes.get(day);
    if (change === undefined) {
      const after = offsetAtMidnight(day + 1);
      let [low, high] = [day * daySeconds, (day + 1) * daySeconds];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (readOffset(middle) === after) high = middle;
        else low = middle;
      }
      change = high;
      if (changes.size >= maxCached) changes.clear();
      changes.set(day, change);
    }
    return change;
  };

  const offsetAt = (instant: number): number => {
    const day = Math.floor(instant / daySeconds);
    const [before, after] = [offsetAtMidnight(day), offsetAtMidnight(day + 1)];
    return before === after || instant < changeOn(day) ? before : after;
  };

  return {
    name,
    offsetAt,
    firstInstantOf(local) {
      // A change that matters is less than a day away, so these are the offsets before and after it.
      const [early, late] = [offsetAt(local - daySeconds), offsetAt(local + daySeconds)];
      const first = local - Math.max(early, late);
      if (offsetAt(first) === Math.max(early, late)) return first;
      const second = local - Math.min(early, late);
      return offsetAt(second) === Math.min(early, late) ? second : null;
    },
  };
}

function offsetByIntl(timeZone: string): (instant: number) => number {
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
