/**
 * The time of the server. The clock of a browser may be wrong, and in development mode the clock of the server is moved, so
 * "2 minutes ago" is counted from the time of the server.
 */
let offsetMs = 0;
const listeners = new Set<() => void>();

/** Responses are under way for some seconds, and their header has no fractions of a second. */
const TOLERANCE_MS = 5000;

export const serverNow = (): number => Date.now() + offsetMs;

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const offset = (): number => offsetMs;

/** `date`: the header of a response. */
export function noteDate(date: string | null): void {
  const found = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(found) || Math.abs(found - offsetMs) < TOLERANCE_MS) return;
  offsetMs = Math.abs(found) < TOLERANCE_MS ? 0 : found;
  for (const listener of listeners) listener();
}
