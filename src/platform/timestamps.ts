/** Reads `timestamptz` as PostgreSQL writes it. The parser of `pg` takes ten times as long, which slows lists of 100 rows. */
import pg from 'pg';

const parseAny = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date;

/** `2026-11-20 09:52:52.112+00`: the year of four digits, UTC, and up to six digits of the second's fraction. */
export function parseInstant(text: string): Date {
  const { length } = text;
  // Other zones, years beyond 9999, and `infinity`.
  if (length < 22 || text[10] !== ' ' || text[19] !== (length === 22 ? '+' : '.') || !text.endsWith('+00')) {
    return parseAny(text);
  }
  const year = digits(text, 0, 4);
  if (year < 100) return parseAny(text);
  const [month, day] = [digits(text, 5, 7), digits(text, 8, 10)];
  const [hour, minute, second] = [digits(text, 11, 13), digits(text, 14, 16), digits(text, 17, 19)];
  const milliseconds = length === 22 ? 0 : digits(text.slice(20, -3).padEnd(3, '0'), 0, 3);
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second, milliseconds));
}

function digits(text: string, from: number, to: number): number {
  let value = 0;
  for (let i = from; i < to; i++) value = value * 10 + text.charCodeAt(i) - 48;
  return value;
}
