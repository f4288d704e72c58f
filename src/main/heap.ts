const startupSettledMs = 5000;

/** Returns the memory that loading the modules took: an idle heap does not shrink by itself (docs/decisions/0010). */
export function compactHeapAfterStartup(): void {
  const compact = () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  setTimeout(compact, startupSettledMs).unref();
}
