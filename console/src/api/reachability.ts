import { useSyncExternalStore } from 'react';

/** Of a proxy whose server does not respond. Cloudyard does not send them. */
const GATEWAY_ERRORS = [502, 504];

let isReachable = true;
const listeners = new Set<() => void>();

/** Records the status of a response, or null if there was none. Returns whether the server is reachable. */
export function noteResponse(status: number | null): boolean {
  const next = status !== null && !GATEWAY_ERRORS.includes(status);
  if (next !== isReachable) {
    isReachable = next;
    for (const listener of listeners) listener();
  }
  return next;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the last request reached the server. */
export function useReachability(): boolean {
  return useSyncExternalStore(subscribe, () => isReachable);
}

/** Resolves when a request has reached the server. */
export async function untilReachable(): Promise<void> {
  if (isReachable) return;
  await new Promise<void>((resolve) => {
    const unsubscribe = onReachableAgain(() => {
      unsubscribe();
      resolve();
    });
  });
}

/** Calls the listener when the server is reachable again. Returns the function that unsubscribes. */
export function onReachableAgain(listener: () => void): () => void {
  return subscribe(() => {
    if (isReachable) listener();
  });
}
