/**
 * Keeps one client from occupying every slot of a worker: its driver calls may hang, and then no other client's jobs run.
 *
 * Invariant: at most `limit` jobs of a client run in this worker. A fetch skips the clients that are at the limit, and is so
 * short that no client can exceed the limit by it.
 */
export interface ClientSlots {
  add(clientId: number): void;
  remove(clientId: number): void;
  /** The clients whose jobs a fetch has to skip. */
  full(): number[];
  /** The most jobs that a fetch may assign, of all clients together. */
  room(): number;
}

/** `limit`: jobs of one client that may run at the same time. */
export function createClientSlots(limit: number): ClientSlots {
  const running = new Map<number, number>();
  const change = (clientId: number, by: 1 | -1) => {
    const count = (running.get(clientId) ?? 0) + by;
    if (count > 0) running.set(clientId, count);
    else running.delete(clientId);
  };
  return {
    add: (clientId) => change(clientId, 1),
    remove: (clientId) => change(clientId, -1),
    full: () => [...running].filter(([, count]) => count >= limit).map(([clientId]) => clientId),
    room: () => limit - Math.max(0, ...[...running.values()].filter((count) => count < limit)),
  };
}
