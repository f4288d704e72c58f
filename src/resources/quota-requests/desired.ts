/** Pure: the limits of a request as a list, and the message about a decision. */
import { globalRegion, type Kind, meaningOfKind } from '../../quota/kinds.ts';
import type { Message } from '../notifications/service.ts';
import type { RequestedLimits } from './schema.ts';
import type { QuotaRequestRow } from './store.ts';

/** One limit of a request. */
export interface RequestedLimit {
  /** Its place in the request: `requested_limits.global_limits.project_count_limit`. */
  path: string;
  regionId: number;
  kind: Kind;
  limit: number;
}

/** The limits in the order of locking counters: global ones first, then by region. */
export function limitsOf({ global_limits = {}, regional_limits = [] }: RequestedLimits): RequestedLimit[] {
  const scopes = [
    { regionId: globalRegion, path: 'requested_limits.global_limits', limits: global_limits },
    ...regional_limits.map(({ region_id, ...limits }, i) => ({
      regionId: region_id ?? globalRegion,
      path: `requested_limits.regional_limits.${i}`,
      limits,
    })),
  ];
  return scopes
    .flatMap(({ regionId, path, limits }) =>
      Object.entries(limits).flatMap(([name, limit]) => {
        const kind = name.replace(/_limit$/, '') as Kind;
        return kind in meaningOfKind && limit !== undefined ? [{ path: `${path}.${name}`, regionId, kind, limit }] : [];
      }),
    )
    .sort((one, other) => one.regionId - other.regionId);
}

/** The notification about a decided request. */
export function decisionMessage(row: QuotaRequestRow, nameOf: (regionId: number) => string): Message {
  const approved = row.status === 'done';
  const verb = approved ? 'approved' : 'declined';
  const effect = approved ? 'The new limits apply now:' : 'The limits have not changed. These were requested:';
  return {
    clientId: row.clientId,
    type: `quota_request_${verb}`,
    subject: `Quota request ${row.id} was ${verb}`,
    body: {
      paragraphs: [
        `Quota request ${row.id} was ${verb}. ${effect}`,
        ...(row.reason === null ? [] : [`Reason: ${row.reason}`]),
      ],
      figures: {
        columns: ['Region', 'Quota', 'Limit'],
        rows: limitsOf(row.requestedLimits).map(({ regionId, kind, limit }) => [
          regionId === globalRegion ? 'all' : nameOf(regionId),
          `${meaningOfKind[kind]} (${kind})`,
          String(limit),
        ]),
      },
    },
    data: { request_id: row.id, status: row.status, reason: row.reason, requested_limits: row.requestedLimits },
  };
}
