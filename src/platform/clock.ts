/** The only source of the current time for rules and rows, so that tests and development mode can set it. */
export interface Clock {
  now(): Date;
}

/** The clock of this host. */
export const systemClock: Clock = { now: () => new Date() };

/** The format of tasks and file shares: UTC without a zone suffix, with microseconds: `2026-11-20T09:52:52.112000`. */
export function withoutZone(date: Date): string;
export function withoutZone(date: Date | null): string | null;
export function withoutZone(date: Date | null): string | null {
  return date && `${date.toISOString().slice(0, -1)}000`;
}

/** The format of all other resources: `2026-11-20T09:52:52Z`. */
export function withZone(date: Date): string;
export function withZone(date: Date | null): string | null;
export function withZone(date: Date | null): string | null {
  return date && `${date.toISOString().slice(0, -5)}Z`;
}

/**
 * Parses a date, or a date and time in the formats `date-time` and `iso-date-time`; without a zone it is UTC. Null for
 * values that no column can store: a leap second, or a year outside 1 to 9999.
 */
export function instantOf(text: string): Date | null {
  const [day = '', time] = text.toUpperCase().split(/[T\s]/);
  const zone = /(Z|[+-]\d\d(:?\d\d)?)$/.exec(time ?? '')?.[0] ?? '';
  const date = new Date(time ? `${day}T${time}${zone === '' ? 'Z' : zone.length === 3 ? ':00' : ''}` : day);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? date : null;
}

export const dayMs = 86_400_000;

export function daysBefore(instant: Date, days: number): Date {
  return new Date(instant.getTime() - days * dayMs);
}

/** Without the fraction of the second, which most responses do not show. */
export function wholeSecond(instant: Date): Date {
  return new Date(Math.floor(instant.getTime() / 1000) * 1000);
}
