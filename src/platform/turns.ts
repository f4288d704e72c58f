/**
 * Ways to take turns: at most a given number at a time, in turns of keys or not; one at a time for each key; and many callers
 * sharing one run or a batch. A failure never affects the next turn; callers that shared a run share its failure.
 */

export type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs at most `slots` pieces of work at a time, in order of arrival. */
export function limited(slots: number): Turn {
  const inTurn = limitedByKey(slots, slots);
  return (work) => inTurn(null, work);
}

/**
 * Runs at most `slots` pieces of work at a time, and at most `slotsPerKey` of one key, by default three quarters. Keys with
 * waiting work take turns: with one slot, the work of a key waits for at most one piece of each other key. The work of a key starts
 * in order of arrival. Work whose `signal` aborts before its turn is not started.
 */
export function limitedByKey<K>(slots: number, slotsPerKey = Math.ceil(0.75 * slots)) {
  let free = slots;
  const running = new Map<K, number>();
  /** Functions that start waiting work. The key whose turn is next comes first. */
  const waiting = new Map<K, Set<() => void>>();

  /** Moves a key to the end of the order. */
  const moveToEnd = (key: K) => {
    const starts = waiting.get(key);
    waiting.delete(key);
    if (starts && starts.size > 0) waiting.set(key, starts);
  };
  const startWaiting = () => {
    for (const [key, starts] of waiting) {
      const ofKey = running.get(key) ?? 0;
      if (free === 0) return;
      if (ofKey >= slotsPerKey) continue;
      free -= 1;
      running.set(key, ofKey + 1);
      const [start] = starts;
      starts.delete(start!);
      moveToEnd(key);
      start!();
    }
  };
  const end = (key: K) => {
    const left = running.get(key)! - 1;
    if (left > 0) running.set(key, left);
    else running.delete(key);
    free += 1;
    moveToEnd(key);
    startWaiting();
  };
  const untilTurn = async (key: K, signal?: AbortSignal) => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const starts = waiting.get(key) ?? new Set();
    const giveUp = () => {
      if (!starts.delete(resolve)) return;
      if (starts.size === 0) waiting.delete(key);
      reject(signal!.reason);
    };
    signal?.addEventListener('abort', giveUp, { once: true });
    waiting.set(key, starts.add(resolve));
    startWaiting();
    await promise.finally(() => signal?.removeEventListener('abort', giveUp));
  };

  return async <T>(key: K, work: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    await untilTurn(key, signal);
    try {
      return await work();
    } finally {
      end(key);
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
