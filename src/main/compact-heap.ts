/** When the work of the start and of the first requests is done. */
const afterMs = 20_000;
const windowMs = 5000;
/** The busy share of a window in which nobody waits for a pause of the process. */
const idleShare = 0.2;

/**
 * Returns the memory that loading the modules took: an idle heap does not shrink by itself (docs/decisions/0010). Requests would
 * wait for the collection, so it waits for a window in which the process is idle.
 */
export function compactHeapAfterStartup(): void {
  const collect = () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const watch = () => {
    const before = performance.eventLoopUtilization();
    const decide = () => (performance.eventLoopUtilization(before).utilization < idleShare ? collect() : watch());
    setTimeout(decide, windowMs).unref();
  };
  setTimeout(watch, afterMs - windowMs).unref();
}
