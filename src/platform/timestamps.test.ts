import fc from 'fast-check';
import pg from 'pg';
import { expect, it } from 'vitest';
import { parseInstant } from './timestamps.ts';

const parseAny = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date;

it('reads an instant to the millisecond, however many digits its fraction has', () => {
  for (const [text, iso] of [
    ['2026-11-23 02:03:04+00', '2026-11-23T02:03:04.000Z'],
    ['2026-11-23 02:03:04.5+00', '2026-11-23T02:03:04.500Z'],
    ['2026-01-01 00:00:00.007+00', '2026-01-01T00:00:00.007Z'],
    ['2024-02-29 23:59:59.999999+00', '2024-02-29T23:59:59.999Z'],
    ['0001-01-01 00:00:00+00', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31 23:59:59.123456+00', '9999-12-31T23:59:59.123Z'],
  ] as const) {
    expect(parseInstant(text).toISOString()).toBe(iso);
  }
});

it('reads whatever else PostgreSQL writes as pg does', () => {
  for (const text of [
    'infinity',
    '-infinity',
    '2026-11-23 02:03:04+05:30',
    '10000-01-01 00:00:00+00',
    '0044-03-15 12:00:00+00 BC',
  ]) {
    expect(parseInstant(text)).toEqual(parseAny(text));
  }
});

it('reads what it writes', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date('0100-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
      const text = date.toISOString().replace('T', ' ').replace('Z', '+00');
      expect(parseInstant(text)).toEqual(date);
      expect(parseInstant(text.replace(/\.?0*\+/, '+'))).toEqual(date);
    }),
  );
});
