import { queryOptions } from '@tanstack/react-query';
import { api, request, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { queryClient } from '../api/query-client.ts';
import { showToast } from '../ui/toasts.tsx';

export type Fault = components['schemas']['Fault'];
export const CLOCK_PATH = '/cloudyard/v1/dev/clock';
export const FAULTS_PATH = '/cloudyard/v1/dev/faults';

/** Faults and the clock have no events: they are read again every few seconds. */
const REFRESH_MS = 5000;
/** While the clock moves, it is read more often. */
export const MOVING_REFRESH_MS = 500;

/** The time of the server, with the time of the browser at which it was read. */
export const clockQuery = queryOptions({
  queryKey: ['clock'],
  queryFn: async () => {
    const { now } = await unwrap(api.GET(CLOCK_PATH, {}));
    return { now: Date.parse(now), readAt: Date.now() };
  },
  staleTime: 0,
  refetchInterval: REFRESH_MS,
});

export const faultsQuery = queryOptions({
  queryKey: ['faults'],
  queryFn: () => unwrap(api.GET(FAULTS_PATH, {})),
  staleTime: 0,
  refetchInterval: REFRESH_MS,
});

/** Moves the clock, and shows the outcome. Everything that depends on the time may have changed, so every query is read again. */
export async function moveClock(body: object): Promise<void> {
  const { complete } = await request<components['schemas']['MovedClock']>('POST', CLOCK_PATH, body);
  void queryClient.invalidateQueries();
  if (complete) showToast({ tone: 'ok', text: 'The clock was moved' });
  else showToast({ tone: 'bad', text: 'The clock was moved, but some work that became due is not done yet' });
}
