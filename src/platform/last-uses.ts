/**
 * When rows were last used, written in batches: one statement for all rows that were used since the previous one, so that
 * a use costs the request no query.
 *
 * Failure modes: uses of a failed write are in the next one. A process that dies loses the uses of one interval.
 */
type Write = (ids: number[], times: Date[]) => Promise<unknown>;

/** `seconds`: the interval of writes. */
export function createLastUses(write: Write, seconds: number) {
  let uses = new Map<number, Date>();
  let timer: NodeJS.Timeout | undefined;

  const flush = async () => {
    const written = uses;
    if (written.size === 0) return;
    uses = new Map();
    // In the order of the ids, so that processes which write the same rows do not deadlock.
    const ids = [...written.keys()].sort((one, other) => one - other);
    try {
      await write(
        ids,
        ids.map((id) => written.get(id)!),
      );
    } catch {
      for (const [id, at] of written) if (!uses.has(id)) uses.set(id, at);
    }
  };

  return {
    record(id: number, at: Date): void {
      uses.set(id, at);
    },
    /** A use that may not have been written; undefined without one. */
    find: (id: number): Date | undefined => uses.get(id),
    start(): void {
      timer = setInterval(flush, seconds * 1000).unref();
    },
    flush,
    /** Stops the interval, and writes the remaining uses. */
    async stop(): Promise<void> {
      clearInterval(timer);
      await flush();
    },
  };
}
