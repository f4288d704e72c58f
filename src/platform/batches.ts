/** Deletes rows in small batches, so that each holds its locks and its transaction for milliseconds only. */
import type pg from 'pg';

/** Repeats the statement until it deletes nothing or `signal` aborts. Returns the number of deleted rows. */
export async function deleteInBatches(
  deleteBatch: () => Promise<(pg.QueryResultRow & { count: number })[]>,
  signal?: AbortSignal,
): Promise<number> {
  let total = 0;
  while (!signal?.aborted) {
    const { count } = (await deleteBatch())[0]!;
    if (count === 0) break;
    total += count;
  }
  return total;
}
