/** Resolves after the event loop has handled the input that was waiting. For work that would otherwise block it. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => afterInput(resolve));
}

/** The same with a callback. The first turn may come before the loop looks for input, the second one does not. */
export function afterInput(run: () => void): void {
  setImmediate(() => setImmediate(run));
}

/** Work goes on for this long until others get their turn. */
const sliceMs = 10;

/** For loops that may be long: `await pause()` in each round yields whenever a slice of time is used up. */
export function createPause(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < sliceMs) return undefined;
    return yieldToEventLoop().then(() => void (since = performance.now()));
  };
}
