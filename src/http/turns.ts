/** Work that is done one after the other, by key. */
export interface Turns {
  /** Resolves when all earlier turns of the key are over. This turn is over when `end` resolves; it must not reject. */
  next(key: string, end: Promise<void>): Promise<void>;
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<void>>();
  return {
    next(key, end) {
      const before = last.get(key) ?? Promise.resolve();
      const over = before.then(() => end);
      last.set(key, over);
      void over.then(() => {
        if (last.get(key) === over) last.delete(key);
      });
      return before;
    },
  };
}
