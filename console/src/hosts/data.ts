import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';

export type Host = components['schemas']['Host'];

export const KIND = 'hosts';
const refreshMs = 2000;

/** Polled, because hosts announce no events. */
export const hostsQuery = queryOptions({
  queryKey: [KIND],
  queryFn: () => allRows((page) => unwrap(api.GET('/cloudyard/v1/hosts', { params: { query: page } }))),
  refetchInterval: refreshMs,
});
