/** Deletes rows in small batches, so that each holds its locks and its transaction for milliseconds only. */

/** Repeats the statement, which returns how many rows it deleted, until it deletes none or `signal` aborts. Returns their sum. */
export async function deleteInBatches(deleteBatch: () => Promise<number>, signal?: AbortSignal): Promise<number> {
  let total = 0;
  while (!signal?.aborted) {
    const count = await deleteBatch();
    if (count === 0) break;
    total += count;
  }
  return total;
}
