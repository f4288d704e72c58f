/** When the work of the start and of the first requests is done. */
const afterMs = 20_000;

/** Returns the memory that loading the modules took: an idle heap does not shrink by itself (docs/decisions/0010). */
export function compactHeapAfterStartup(): void {
  const collect = () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  setTimeout(collect, afterMs).unref();
}
