const KEY = 'cloudyard-reloaded-at';
/** A second failure within this time is not an upgrade: reloading would repeat. */
const ONCE_MS = 30_000;

/** After an upgrade of the server the chunks of the old console are gone: the page reloads once. */
export function reloadStaleChunks(): void {
  addEventListener('vite:preloadError', (event) => {
    if (Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < ONCE_MS) return;
    event.preventDefault();
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
  });
}
