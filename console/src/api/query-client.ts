import { QueryClient } from '@tanstack/react-query';
import { ApiError, ConnectionError } from './errors.ts';
import { onReachableAgain } from './reachability.ts';

/** How often a read is repeated whose failure may pass. */
const REPEAT_MS = 5000;

/**
 * Events refresh the data (see events.ts), so nothing becomes stale with age. A query that failed with a client error is not
 * repeated; one that failed in the server is once, and one that did not reach it several times, and then at intervals.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A browser that believes to be offline fails at once, and the page says so.
      networkMode: 'always',
      staleTime: Infinity,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => (error instanceof ApiError ? error.status >= 500 && failures < 1 : failures < 3),
      refetchInterval: ({ state: { error } }) => error !== null && mayPass(error) && REPEAT_MS,
      retryDelay: (attempt) => Math.min(1000 * 2 ** attempt, 5000),
    },
    mutations: { networkMode: 'always' },
  },
});

function mayPass(error: Error): boolean {
  return (
    error instanceof ConnectionError || (error instanceof ApiError && (error.status >= 500 || error.status === 429))
  );
}

// Queries that repeat by rules of their own are read again as well.
onReachableAgain(() => void queryClient.invalidateQueries({ predicate: ({ state }) => state.status === 'error' }));
