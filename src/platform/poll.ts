/**
 * Calls `work` `ms` milliseconds after its previous call has ended, first after `firstMs`; a failure is ignored. Does not keep
 * the process running. Returns a function that stops the calls.
 */
export function poll(work: () => Promise<void>, ms: number, firstMs = ms): () => void {
  let isStopped = false;
  const run = async () => {
    await work().catch(() => {});
    if (!isStopped) timer = setTimeout(run, ms).unref();
  };
  let timer = setTimeout(run, firstMs).unref();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
