/**
 * Reads compiled zone files (TZif, RFC 9636): the transitions of a zone, and the rule that applies after the last one.
 * Leap seconds are ignored: the files of `right/` are never read.
 *
 * Units: seconds since 1970, and seconds east of UTC.
 */
import { boundedCache } from './bounded-cache.ts';

/** The offset from UTC at an instant. */
export type OffsetAt = (instant: number) => number;

const headerLength = 44;
const daySeconds = 86_400;
/** Years whose transitions are kept for a rule. */
const maxYears = 1024;

/** @throws Error for a file that is not TZif of version 2 or newer */
export function parseTzif(file: Buffer): OffsetAt {
  const first = headerOf(file, 0);
  if (first.version < 2) throw new Error('the zone file has version 1, which ends in 2037');
  // The first block repeats the data with 4 bytes for each time.
  const start = headerLength + lengthOf(first, 4);
  const header = headerOf(file, start);
  const { timeCount, typeCount } = header;
  const timesAt = start + headerLength;
  const typesAt = timesAt + 8 * timeCount + timeCount;
  const offsets = Array.from({ length: typeCount }, (_, i) => file.readInt32BE(typesAt + 6 * i));
  const times = Array.from({ length: timeCount }, (_, i) => Number(file.readBigInt64BE(timesAt + 8 * i)));
  const offsetsAfter = times.map((_, i) => offsets[file.readUInt8(timesAt + 8 * timeCount + i)]!);
  const footer = file.toString('latin1', start + headerLength + lengthOf(header, 8)).trim();
  const last = times.at(-1) ?? -Infinity;
  const afterLast = footer === '' ? () => offsetsAfter.at(-1) ?? offsets[0]! : parseRule(footer);
  return (instant) => {
    if (instant >= last) return afterLast(instant);
    return offsetsAfter[indexOfLastUpTo(times, instant)] ?? offsets[0]!;
  };
}

function headerOf(file: Buffer, at: number) {
  if (file.toString('latin1', at, at + 4) !== 'TZif') throw new Error('not a zone file');
  const [isUtCount, isStdCount, leapCount, timeCount, typeCount, charCount] = Array.from({ length: 6 }, (_, i) =>
    file.readUInt32BE(at + 20 + 4 * i),
  ) as [number, number, number, number, number, number];
  const version = Number(String.fromCharCode(file[at + 4]!)) || 1;
  return { version, isUtCount, isStdCount, leapCount, timeCount, typeCount, charCount };
}

/** The bytes of a block whose times have this size. */
function lengthOf(header: ReturnType<typeof headerOf>, size: 4 | 8): number {
  const { timeCount, typeCount, charCount, leapCount, isStdCount, isUtCount } = header;
  return timeCount * (size + 1) + typeCount * 6 + charCount + leapCount * (size + 4) + isStdCount + isUtCount;
}

/** -1 if all are greater. */
function indexOfLastUpTo(ascending: number[], value: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const namePattern = '(?:<[^>]+>|[A-Za-z]+)';
const timePattern = '[+-]?\\d+(?::\\d+){0,2}';
const datePattern = `(?:M\\d+\\.\\d+\\.\\d+|J?\\d+)(?:/${timePattern})?`;
const rulePattern = new RegExp(
  `^${namePattern}(${timePattern})(?:${namePattern}(${timePattern})?,(${datePattern}),(${datePattern}))?$`,
);

/** A rule of the POSIX variable TZ, such as `CET-1CEST,M3.5.0,M10.5.0/3`. Its offsets count west of UTC. @throws Error */
export function parseRule(text: string): OffsetAt {
  const [, standardText, summerText, startText, endText] = rulePattern.exec(text) ?? [];
  if (standardText === undefined) throw new Error(`the zone file has an unknown rule: ${text}`);
  const standard = 0 - secondsOf(standardText);
  if (startText === undefined) return () => standard;
  const summer = summerText === undefined ? standard + 3600 : 0 - secondsOf(summerText);
  const [start, end] = [parseDate(startText), parseDate(endText!)];
  // Each change is written in the local time before it.
  const changesOf = boundedCache(maxYears, (year: number) => [start(year) - standard, end(year) - summer] as const);
  return (instant) => {
    const [begins, ends] = changesOf(new Date((instant + standard) * 1000).getUTCFullYear());
    const isSummer = begins < ends ? instant >= begins && instant < ends : instant >= begins || instant < ends;
    return isSummer ? summer : standard;
  };
}

/** `[+-]hh[:mm[:ss]]` */
function secondsOf(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.replace(/^[+-]/, '').split(':').map(Number);
  const size = hours * 3600 + minutes * 60 + seconds;
  return text.startsWith('-') ? -size : size;
}

/** The local time of a date of a rule in a year: `Mm.w.d` (5 is the last week), `Jn` (without February 29) or `n`. */
function parseDate(text: string): (year: number) => number {
  const [date = '', timeText = '2'] = text.split('/');
  const time = secondsOf(timeText);
  if (!date.startsWith('M')) {
    const day = Number(date.replace('J', ''));
    const skipsLeapDay = date.startsWith('J');
    return (year) => {
      const leapDay = skipsLeapDay && day >= 60 && isLeap(year) ? 1 : 0;
      return Date.UTC(year, 0, 1) / 1000 + (day - (skipsLeapDay ? 1 : 0) + leapDay) * daySeconds + time;
    };
  }
  const [month = 1, week = 1, weekday = 0] = date.slice(1).split('.').map(Number);
  return (year) => {
    const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay();
    const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
    let day = 1 + ((weekday - first + 7) % 7) + (week - 1) * 7;
    if (day > length) day -= 7;
    return Date.UTC(year, month - 1, day) / 1000 + time;
  };
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}
