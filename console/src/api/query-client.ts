import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './errors.ts';

/**
 * Events refresh the data (see events.ts), so nothing becomes stale with age. A query that failed with a client error is not
 * repeated; one that failed in the server is once, and one that did not reach it several times.
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
      retryDelay: (attempt) => Math.min(1000 * 2 ** attempt, 5000),
    },
    mutations: { networkMode: 'always' },
  },
});
