import { useSyncExternalStore } from 'react';

/** A value outside of React. Components follow it with `useStore`. */
export function createStore<T>(initial: T) {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: (): T => value,
    /** Notifies the listeners, unless the value is the same. */
    set(next: T): void {
      if (next === value) return;
      value = next;
      for (const listener of listeners) listener();
    },
    /** Returns the function that unsubscribes. */
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore<T>({ subscribe, get }: Pick<ReturnType<typeof createStore<T>>, 'subscribe' | 'get'>): T {
  return useSyncExternalStore(subscribe, get);
}
