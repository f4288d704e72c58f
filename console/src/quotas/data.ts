import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import type { Scope } from '../ui/scope.tsx';

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

/** Those of a client in the region of the URL; of other clients only for the operator. */
export const clientQuotasQuery = ({ region }: Scope, clientId: number) =>
  queryOptions({
    queryKey: ['quotas', clientId, region],
    queryFn: async () => {
      const [regional, global] = await Promise.all([
        unwrap(
          api.GET('/cloud/v2/regional_quotas/{client_id}/{region_id}', {
            params: { path: { client_id: clientId, region_id: region } },
          }),
        ),
        unwrap(api.GET('/cloud/v2/global_quotas/{client_id}', { params: { path: { client_id: clientId } } })),
      ]);
      return { regional, global };
    },
  });

export type Figures = Readonly<Record<string, unknown>>;

/** The quotas in an object of `<kind>_limit` and `<kind>_usage`. */
export function allQuotasOf(figures: Figures): Quota[] {
  return Object.entries(figures)
    .filter(([name]) => name.endsWith('_limit'))
    .map(([name, limit]) => {
      const kind = name.slice(0, -'_limit'.length);
      return { kind, limit: Number(limit), usage: Number(figures[`${kind}_usage`] ?? 0) };
    });
}

/** The same, with kinds that are not offered (limit 0) only where used. */
export function quotasOf(figures: Figures | undefined): Quota[] {
  return allQuotasOf(figures ?? {}).filter(({ limit, usage }) => limit > 0 || usage > 0);
}

/** Percent of the limit, up to 100. */
export function percentOf({ limit, usage }: Quota): number {
  return limit === 0 ? 100 : Math.min(100, (usage / limit) * 100);
}

export type Threshold = components['schemas']['NotificationThreshold'];

export const THRESHOLD = '/cloud/v2/client_quotas/{client_id}/notification_threshold';

export const thresholdQuery = (clientId: number) =>
  queryOptions({
    queryKey: ['thresholds', clientId],
    queryFn: () => unwrap(api.GET(THRESHOLD, { params: { path: { client_id: clientId } } })),
  });

export const quotaRequestsQuery = queryOptions({
  queryKey: ['quota_requests'],
  queryFn: () => allRows((query) => unwrap(api.GET('/cloud/v2/limits_request', { params: { query } }))),
});
