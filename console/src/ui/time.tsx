import { useEffect, useState } from 'react';
import { serverNow, useServerOffset } from '../api/server-clock.ts';

/** A date of the API. Those of tasks and file shares carry no zone: they are UTC. */
export function parseDate(text: string): Date {
  return new Date(/(Z|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text}Z`);
}

/** For the order of a list. */
export function timeOf(text: string | null): number | null {
  return text === null ? null : parseDate(text).getTime();
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
/** Words are English, like the rest of the console; the order of a date and the separators of a number are those of the browser. */
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

export function formatDate(date: Date): string {
  return full.format(date);
}

/** Seconds below a minute would move all the time; clocks of server and browser may differ by some. */
function formatAgo(date: Date): string {
  const seconds = (date.getTime() - serverNow()) / 1000;
  const unit = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  if (!unit) return 'just now';
  if (unit[0] === 'day' && Math.abs(seconds) > 30 * 86_400) return full.format(date);
  return relative.format(Math.trunc(seconds / unit[1]), unit[0]);
}

/** `2 days 3 hours`: the two largest units. */
export function durationText(seconds: number): string {
  let left = Math.max(0, Math.round(seconds));
  const parts = UNITS.flatMap(([unit, length]) => {
    const count = Math.floor(left / length);
    left -= count * length;
    return count === 0 ? [] : [`${count} ${unit}${count === 1 ? '' : 's'}`];
  });
  return parts.slice(0, 2).join(' ') || `${left} s`;
}

/** How long ago, with the full date in the tooltip. */
export function Ago({ at }: { at: string | null | undefined }) {
  const [, rerender] = useState(0);
  useServerOffset();
  useEffect(() => {
    const timer = setInterval(() => rerender((count) => count + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return <span className="muted">–</span>;
  const date = parseDate(at);
  return (
    <time className="muted" dateTime={date.toISOString()} title={formatDate(date)}>
      {formatAgo(date)}
    </time>
  );
}

export function FullDate({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="muted">–</span>;
  const date = parseDate(at);
  return <time dateTime={date.toISOString()}>{formatDate(date)}</time>;
}
