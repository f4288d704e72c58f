/** Values that are usually in memory: the most frequent requests then need no promise, which would cost them a tenth. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `use` at once with a known value, or when the promise resolves. */
export function whenKnown<T, Result>(value: MaybePromise<T>, use: (value: T) => Result): MaybePromise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
