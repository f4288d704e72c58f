/** Runs work one after another, for each key. */
interface Turns {
  /** Resolves once all earlier turns of the key have ended. This turn ends when `end` resolves; `end` must not reject. */
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
