/** The only source of the current time for rules and rows, so that tests (and development mode) can hold and move it. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };

/** A date as tasks and file shares write it: UTC without a zone suffix, microseconds: `2026-11-20T09:52:52.112000`. */
export function withoutZone(date: Date): string;
export function withoutZone(date: Date | null): string | null;
export function withoutZone(date: Date | null): string | null {
  return date && `${date.toISOString().slice(0, -1)}000`;
}

/** A date as every other resource writes it: `2026-11-20T09:52:52Z`. */
export function withZone(date: Date): string;
export function withZone(date: Date | null): string | null;
export function withZone(date: Date | null): string | null {
  return date && `${date.toISOString().slice(0, -5)}Z`;
}
