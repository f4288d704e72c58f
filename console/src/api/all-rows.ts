interface Collection<T> {
  readonly count: number;
  readonly results: readonly T[];
}

/** The API's largest page. */
const LIMIT = 1000;
/** A list beyond this many rows is cut; `count` still says how many there are. */
const MAX_ROWS = 10_000;

/** All rows of a list, read in pages of 1000. */
export async function allRows<T>(read: (page: { limit: number; offset: number }) => Promise<Collection<T>>) {
  const results: T[] = [];
  for (;;) {
    const page = await read({ limit: LIMIT, offset: results.length });
    results.push(...page.results);
    if (page.results.length < LIMIT || results.length >= Math.min(page.count, MAX_ROWS)) {
      return { count: page.count, results };
    }
  }
}
