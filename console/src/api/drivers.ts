import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client.ts';

/** The drivers of every worker: which are simulated, and which are healthy. */
export const driversQuery = queryOptions({
  queryKey: ['drivers'],
  queryFn: () => unwrap(api.GET('/healthz/drivers', {})),
  // Drivers change without events, and rarely.
  staleTime: 30_000,
  refetchInterval: 60_000,
});
