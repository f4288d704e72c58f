import { noteDelay, noteResponse, untilReachable } from '../api/reachability.ts';

const KEY = 'cloudyard-reloaded-at';
/** A second failure within this time is not an upgrade: reloading would repeat. */
const ONCE_MS = 30_000;

/** A part of the console is missing on the server, also after a reload. */
export class MissingChunkError extends Error {
  constructor() {
    super('a part of the console could not be loaded');
  }
}

/** Makes a chunk that cannot be loaded undefined, which `loadChunk` handles. */
export function handleMissingChunks(): void {
  addEventListener('vite:preloadError', (event) => event.preventDefault());
}

/**
 * A part of the console that is loaded when it is used. After an upgrade of the server the chunks of the old console are gone:
 * the page reloads once. While the server is not reachable, the page stays and the chunk is loaded later.
 */
export async function loadChunk<T>(load: () => Promise<T>): Promise<T> {
  const chunk: T | undefined = await noteDelay(load());
  if (chunk !== undefined) return chunk;
  const response = await fetch('/console/', { cache: 'no-store' }).catch(() => null);
  if (!noteResponse(response?.status ?? null)) {
    await untilReachable();
    return loadChunk(load);
  }
  // The connection may have returned after the chunk failed: then the chunk is there.
  const found: T | undefined = await load();
  if (found !== undefined) return found;
  if (Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < ONCE_MS) {
    throw new MissingChunkError();
  }
  sessionStorage.setItem(KEY, String(Date.now()));
  location.reload();
  return new Promise(() => {});
}
