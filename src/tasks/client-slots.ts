/**
 * Keeps one client from occupying every slot of a worker: its driver calls may hang, and then no other client's jobs run.
 *
 * Invariant: at most `limit` jobs of a client run in this worker. A fetch skips the clients that are at the limit, and is so
 * short that no client can exceed the limit by it.
 */
export type ClientSlots = ReturnType<typeof createClientSlots>;

/** `limit`: jobs of one client that may run at the same time. */
export function createClientSlots(limit: number) {
  const running = new Map<number, number>();
  const change = (clientId: number, by: 1 | -1) => {
    const count = (running.get(clientId) ?? 0) + by;
    if (count > 0) running.set(clientId, count);
    else running.delete(clientId);
  };
  return {
    add: (clientId: number) => change(clientId, 1),
    remove: (clientId: number) => change(clientId, -1),
    /** The clients whose jobs a fetch has to skip. */
    full: () => [...running].filter(([, count]) => count >= limit).map(([clientId]) => clientId),
    /** The most jobs that a fetch may assign, of all clients together. */
    room: () => limit - Math.max(0, ...[...running.values()].filter((count) => count < limit)),
  };
}
