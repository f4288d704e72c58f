/** Resolves after the event loop has handled pending input. For work that would otherwise block it. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => afterInput(resolve));
}

/** The same with a callback. Two turns: the first one may come before the loop polls for input. */
export function afterInput(run: () => void): void {
  setImmediate(() => setImmediate(run));
}

/** The time slice of work between two yields. */
const sliceMs = 10;

/** For long loops: `await pause()` in each iteration yields whenever a time slice is used up. */
export function createPause(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    return yieldToEventLoop().then(() => void (since = performance.now()));
  };
}
