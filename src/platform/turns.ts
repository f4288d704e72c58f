/**
 * Ways to take turns: at most a given number at a time, one at a time for each key, and many callers sharing one run or a batch.
 * A failure never affects the next turn; callers that shared a run share its failure.
 */

export type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs at most `slots` pieces of work at a time, in order of arrival. */
export function limited(slots: number): Turn {
  const waiting: (() => void)[] = [];
  let free = slots;
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

/** Runs the work of one key one after the other. Work of different keys does not wait. */
export function oneAtATime(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work);
    const settled = mine
      .catch(() => undefined)
      .finally(() => {
        if (last.get(key) === settled) last.delete(key);
      });
    last.set(key, settled);
    return mine;
  };
}

/**
 * Every caller gets a run that began after its call. All callers that arrive during a run share the next one, so a thousand
 * concurrent callers cost two runs.
 */
export function shared<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | null = null;
  let next: Promise<T> | null = null;
  const begin = async (): Promise<T> => {
    await running?.catch(() => undefined);
    next = null;
    const mine = run();
    running = mine;
    return mine;
  };
  return () => (next ??= begin());
}

/** Callers that arrive during a run share it, so what it has read may be older than a call. */
export function joined<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => (running ??= run().finally(() => (running = null)));
}

/** Removes the next elements from a queue, one for each key, and at most `most`. The others stay in their order. */
export function takeBatch<T>(queue: T[], keyOf: (element: T) => string, most = Infinity): T[] {
  const taken = new Map<string, T>();
  const later = queue.splice(0).filter((element) => {
    const key = keyOf(element);
    if (taken.size >= most || taken.has(key)) return true;
    taken.set(key, element);
    return false;
  });
  queue.push(...later);
  return [...taken.values()];
}
