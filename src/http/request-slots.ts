/**
 * Slots for running requests. Each client has its own first-in-first-out queue.
 *
 * Invariant: the request of a client without running requests starts at once, so neither the queue nor the hanging requests
 * of another client delay it. Clients share the event loop and the database pool, so each client has few slots:
 *
 * - A client that is alone may run `aloneUnits`. That keeps the database busy and leaves a quarter of the pool free.
 * - If another client sent a request within `sharingMs`, a client may run a `share` for each unit of its weight, and one
 *   more while no other client runs or waits.
 *
 * Units: a database connection is `requestCost`. A list costs two connections, because it counts and reads concurrently. A
 * read of one resource costs `readCost`, because concurrent reads are short and share statements
 * (platform/batched-read.ts).
 */
export const readCost = 1;
export const requestCost = 8;
export const listCost = 16;

const sharingMs = 1000;

/** One client on this server. */
export interface Flow {
  weight: number;
  /** Units of the running requests. */
  running: number;
  waiting: Waiting[];
}

interface Waiting {
  cost: number;
  start: () => void;
}

export function createFlow(weight: number): Flow {
  return { weight, running: 0, waiting: [] };
}

export type RequestSlots = ReturnType<typeof createRequestSlots>;

/** `now`: milliseconds, monotonic. */
export function createRequestSlots(poolSize: number, now = () => performance.now()) {
  const aloneUnits = Math.max(1, Math.floor(poolSize * 0.75)) * requestCost;
  const share = Math.max(1, Math.floor(poolSize / 8)) * requestCost;
  const queued = new Set<Flow>();
  let running = 0;
  let waiting = 0;
  let flowsThatRun = 0;
  let dispatching = false;
  let latest: Flow | null = null;
  let latestAt = -Infinity;
  let sharedUntil = -Infinity;

  const noteSeen = (flow: Flow, at: number) => {
    // Each request of a different client than the last one extends the sharing period.
    if (latest !== flow) sharedUntil = latestAt + sharingMs;
    latest = flow;
    latestAt = at;
  };

  const fits = (flow: Flow, cost: number, shared: boolean): boolean => {
    if (flow.running === 0) return true;
    if (flow.running + cost > aloneUnits) return false;
    if (!shared) return true;
    const isOnly = flowsThatRun === 1 && queued.size === (queued.has(flow) ? 1 : 0);
    const shares = flow.weight + (isOnly ? 1 : 0);
    return flow.running + Math.min(cost, share) <= shares * share;
  };

  const begin = (flow: Flow, cost: number) => {
    if (flow.running === 0) flowsThatRun += 1;
    flow.running += cost;
    running += 1;
  };

  const dequeue = (flow: Flow, index: number): Waiting => {
    const [one] = flow.waiting.splice(index, 1);
    waiting -= 1;
    if (flow.waiting.length === 0) queued.delete(flow);
    return one!;
  };

  const dispatch = () => {
    dispatching = false;
    const shared = now() < sharedUntil;
    const starts: (() => void)[] = [];
    for (const flow of queued) {
      while (flow.waiting.length > 0 && fits(flow, flow.waiting[0]!.cost, shared)) {
        const { cost, start } = dequeue(flow, 0);
        begin(flow, cost);
        starts.push(start);
      }
    }
    for (const start of starts) start();
  };

  return {
    /** Starts a request and returns true, or returns false if it must `wait`. */
    tryStart(flow: Flow, cost: number): boolean {
      const at = now();
      noteSeen(flow, at);
      if (flow.waiting.length > 0 || !fits(flow, cost, at < sharedUntil)) return false;
      begin(flow, cost);
      return true;
    },

    /** Enqueues a request. Returns a function that withdraws it, without effect once it has started. */
    wait(flow: Flow, cost: number, start: () => void): () => void {
      const one = { cost, start };
      flow.waiting.push(one);
      queued.add(flow);
      waiting += 1;
      return () => {
        const index = flow.waiting.indexOf(one);
        if (index >= 0) dequeue(flow, index);
      };
    },

    /** Ends a running request; requests that may now start do so in this turn of the event loop. */
    end(flow: Flow, cost: number): void {
      flow.running -= cost;
      running -= 1;
      if (flow.running === 0) flowsThatRun -= 1;
      if (waiting === 0 || dispatching) return;
      dispatching = true;
      // Deferred: a request that is refused ends while it starts, and would start the next one recursively.
      setImmediate(dispatch);
    },

    /** The running and the waiting requests of all clients. */
    counts: () => ({ running, waiting }),
  };
}
