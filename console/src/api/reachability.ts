import { createStore, useStore } from './store.ts';

/** Of a proxy whose server does not respond. Cloudyard does not send them. */
const GATEWAY_ERRORS = [502, 504];

const reachable = createStore(true);

/** Records the status of a response, or null if there was none. Returns whether the server is reachable. */
export function noteResponse(status: number | null): boolean {
  reachable.set(status !== null && !GATEWAY_ERRORS.includes(status));
  return reachable.get();
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
