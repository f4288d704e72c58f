/** The time for some work has passed. */
export class TimeLimitError extends Error {}

/** Waits for work for a limited time. The work itself continues. @throws TimeLimitError after `ms` milliseconds */
export async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new TimeLimitError(`not done within ${ms} ms`)), ms);
  return Promise.race([work(), late]).finally(() => clearTimeout(timer));
}
