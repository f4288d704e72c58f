/**
 * Slots for running requests. Each client has its own first-in-first-out queue.
 *
 * Clients share the event loop and the database pool, so each client has few slots:
 *
 * - A client that is alone may run `aloneUnits`. That keeps the database busy and leaves a quarter of the pool free.
 * - If another client sent a request within `sharingMs`, a client may run a `share` for each unit of its weight, one more
 *   while no other client runs or waits, and `aloneUnits` while every other running client has used more.
 * - While a client that has used much less runs requests, a request of a client without running requests starts
 *   `yieldMs` after the previous one. Each of the about ten turns of a create waits for the list that a flood runs.
 *
 * Invariant: the first request of a client starts at once, and a queue or hanging requests of another client delay
 * a later one by `yieldMs` at most.
 *
 * Units: a database connection is `requestCost`. A list costs two connections, because it counts and reads concurrently. A
 * read of one resource costs `readCost`, because concurrent reads are short and share statements
 * (platform/batched-read.ts); client-limits.ts raises it for large resources.
 */
export const readCost = 1;
export const requestCost = 8;
export const listCost = 16;

const sharingMs = 1000;
const yieldMs = 20;
/** A client yields to clients that started a request within this time: requests that hang do not count. */
const recentMs = 50;
/** Half-life of the use of a client. */
const useHalfLifeMs = 1000;
/** How many times the use of another client a client may have before it yields. */
const yieldRatio = 2;

/** One client on this server. */
export interface Flow {
  weight: number;
  /** Units of the running requests. */
  running: number;
  waiting: Waiting[];
  /** Units of started requests for each unit of weight, decaying; as of `startedAt`. */
  used: number;
  /** When the latest request started. */
  startedAt: number;
}

interface Waiting {
  /** As of now: requests that end meanwhile may change it. */
  cost: () => number;
  start: (cost: number) => void;
}

export function createFlow(weight: number): Flow {
  return { weight, running: 0, waiting: [], used: 0, startedAt: -Infinity };
}

export type RequestSlots = ReturnType<typeof createRequestSlots>;

/** `now`: milliseconds, monotonic. */
export function createRequestSlots(poolSize: number, now = () => performance.now()) {
  const aloneUnits = Math.max(1, Math.floor(poolSize * 0.75)) * requestCost;
  const share = Math.max(1, Math.floor(poolSize / 8)) * requestCost;
  const queued = new Set<Flow>();
  const active = new Set<Flow>();
  let running = 0;
  let waiting = 0;
  let dispatching = false;
  let timer: NodeJS.Timeout | undefined;
  let latest: Flow | null = null;
  let latestAt = -Infinity;
  let sharedUntil = -Infinity;

  const noteSeen = (flow: Flow, at: number) => {
    // Each request of a different client than the last one extends the sharing period.
    if (latest !== flow) sharedUntil = latestAt + sharingMs;
    latest = flow;
    latestAt = at;
  };

  /** The least use of the other running clients; null if none of them started a request recently. */
  const leastUseBeside = (flow: Flow, at: number): number | null => {
    let least: number | null = null;
    for (const other of active) {
      if (other === flow || at - other.startedAt > recentMs) continue;
      const use = useOf(other, at);
      if (least === null || use < least) least = use;
    }
    return least;
  };

  const fits = (flow: Flow, cost: number, at: number): boolean => {
    if (at >= sharedUntil) return flow.running === 0 || flow.running + cost <= aloneUnits;
    const least = leastUseBeside(flow, at);
    if (flow.running === 0) {
      return least === null || useOf(flow, at) <= least * yieldRatio || at - flow.startedAt >= yieldMs;
    }
    if (flow.running + cost > aloneUnits) return false;
    const isOnly = active.size === 1 && queued.size === (queued.has(flow) ? 1 : 0);
    const shares = flow.weight + (isOnly ? 1 : 0);
    if (flow.running + Math.min(cost, share) <= shares * share) return true;
    return least !== null && useOf(flow, at) < least;
  };

  const begin = (flow: Flow, cost: number, at: number) => {
    flow.used = useOf(flow, at) + cost / flow.weight;
    flow.startedAt = at;
    flow.running += cost;
    active.add(flow);
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
    const at = now();
    const starts: (() => void)[] = [];
    for (const flow of queued) {
      for (let first = flow.waiting[0]; first; first = flow.waiting[0]) {
        const cost = first.cost();
        if (!fits(flow, cost, at)) break;
        const { start } = dequeue(flow, 0);
        begin(flow, cost, at);
        starts.push(() => start(cost));
      }
    }
    for (const start of starts) start();
    dispatchLater();
  };

  /** Requests that yield start even if no request ends. */
  const dispatchLater = () => {
    if (waiting === 0 || timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      dispatch();
    }, yieldMs);
  };

  return {
    /** Starts a request and returns true, or returns false if it must `wait`. */
    tryStart(flow: Flow, cost: number): boolean {
      const at = now();
      noteSeen(flow, at);
      if (flow.waiting.length > 0 || !fits(flow, cost, at)) return false;
      begin(flow, cost, at);
      return true;
    },

    /**
     * Enqueues a request. `start` is called with the cost that the request has when it starts. Returns a function that withdraws
     * the request, without effect once it has started.
     */
    wait(flow: Flow, cost: () => number, start: (cost: number) => void): () => void {
      const one = { cost, start };
      flow.waiting.push(one);
      queued.add(flow);
      waiting += 1;
      dispatchLater();
      return () => {
        const index = flow.waiting.indexOf(one);
        if (index >= 0) dequeue(flow, index);
      };
    },

    /** Ends a running request; requests that may now start do so in this turn of the event loop. */
    end(flow: Flow, cost: number): void {
      flow.running -= cost;
      running -= 1;
      if (flow.running === 0) active.delete(flow);
      if (waiting === 0 || dispatching) return;
      dispatching = true;
      // Deferred: a request that is refused ends while it starts, and would start the next one recursively.
      setImmediate(dispatch);
    },

    /** The running and the waiting requests of all clients. */
    counts: () => ({ running, waiting }),
  };
}

/** The units that a client has used for each unit of its weight, at a time. */
function useOf({ used, startedAt }: Flow, at: number): number {
  return used === 0 ? 0 : used * 2 ** ((startedAt - at) / useHalfLifeMs);
}
