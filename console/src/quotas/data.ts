import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';

export type QuotaRequest = components['schemas']['QuotaRequest'];

export interface Quota {
  /** `file_share_count`. */
  readonly kind: string;
  readonly limit: number;
  readonly usage: number;
}

export const quotasQuery = queryOptions({
  queryKey: ['quotas'],
  queryFn: () => unwrap(api.GET('/cloud/v2/client_quotas', {})),
});

/** The quotas in an object of `<kind>_limit` and `<kind>_usage`; kinds that are not offered (limit 0) only where used. */
export function quotasOf(figures: Readonly<Record<string, unknown>> | undefined): Quota[] {
  return Object.entries(figures ?? {})
    .filter(([name]) => name.endsWith('_limit'))
    .map(([name, limit]) => {
      const kind = name.slice(0, -'_limit'.length);
      return { kind, limit: Number(limit), usage: Number(figures?.[`${kind}_usage`] ?? 0) };
    })
    .filter(({ limit, usage }) => limit > 0 || usage > 0);
}

/** Percent of the limit, up to 100. */
export function percentOf({ limit, usage }: Quota): number {
  return limit === 0 ? 100 : Math.min(100, (usage / limit) * 100);
}

export type Threshold = components['schemas']['NotificationThreshold'];

export const THRESHOLD = '/cloud/v2/client_quotas/{client_id}/notification_threshold';

export const thresholdQuery = (clientId: number | null) =>
  queryOptions({
    queryKey: ['thresholds', clientId],
    enabled: clientId !== null,
    queryFn: () =>
      unwrap(
        api.GET(THRESHOLD, {
          params: { path: { client_id: clientId! } },
        }),
      ),
  });

export const quotaRequestsQuery = queryOptions({
  queryKey: ['quota_requests'],
  queryFn: () => allRows((query) => unwrap(api.GET('/cloud/v2/limits_request', { params: { query } }))),
});
