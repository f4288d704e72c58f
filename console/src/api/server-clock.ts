import { createStore, useStore } from './store.ts';

/**
 * The time of the server. The clock of a browser may be wrong, and in development mode the clock of the server is moved, so
 * "2 minutes ago" is counted from the time of the server.
 */
const offsetMs = createStore(0);

/** Responses are under way for some seconds, and their header has no fractions of a second. */
const TOLERANCE_MS = 5000;

export const serverNow = (): number => Date.now() + offsetMs.get();

/** Milliseconds by which the server is ahead of the browser. */
export const useServerOffset = (): number => useStore(offsetMs);

/** `date`: the header of a response. */
export function noteDate(date: string | null): void {
  const found = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(found) || Math.abs(found - offsetMs.get()) < TOLERANCE_MS) return;
  offsetMs.set(Math.abs(found) < TOLERANCE_MS ? 0 : found);
}
