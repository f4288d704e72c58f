import { createStore, useStore } from './store.ts';

/** Of a proxy whose server does not respond. Cloudyard does not send them. */
const GATEWAY_ERRORS = [502, 504];

const reachable = createStore(true);

/** Records the status of a response, or null if there was none. Returns whether the server is reachable. */
export function noteResponse(status: number | null): boolean {
  reachable.set(status !== null && !GATEWAY_ERRORS.includes(status));
  return reachable.get();
}

/** Longer than responses take, also over a slow connection. */
const LATE_MS = 20_000;

/** Also records that a response does not arrive: of a server that hangs, or over a connection that was lost without notice. */
export async function noteDelay<T>(response: Promise<T>): Promise<T> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reachable.set(false);
  }, LATE_MS);
  const received = await response.finally(() => clearTimeout(timer));
  if (isLate) reachable.set(true);
  return received;
}

/** Whether the last request reached the server. */
export function useReachability(): boolean {
  return useStore(reachable);
}

/** Resolves when a request has reached the server. */
export async function untilReachable(): Promise<void> {
  if (reachable.get()) return;
  await new Promise<void>((resolve) => {
    const unsubscribe = onReachableAgain(() => {
      unsubscribe();
      resolve();
    });
  });
}

/** Calls the listener when the server is reachable again. Returns the function that unsubscribes. */
export function onReachableAgain(listener: () => void): () => void {
  return reachable.subscribe(() => {
    if (reachable.get()) listener();
  });
}
