/** Requests and responses of quota requests (docs/interface.md, "Quotas"). */
import { type Static, type TSchema, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  FilterId,
  Input,
  Instant,
  IntegerId,
  maxFilterValues,
  Nullable,
  OrNull,
  OwnClient,
  Paging,
} from '../../http/shapes.ts';
import { globalKinds, type Kind, meaningOfKind, regionalKinds } from '../../quota/kinds.ts';
import { GlobalLimits, maxLimit, RegionalLimits } from '../quotas/schema.ts';

const maxRegions = 100;

/** `region_id` and limits by `<kind>_limit`. */
type LimitsOfRegion = Record<string, number | undefined>;
export interface RequestedLimits {
  global_limits?: Record<string, number>;
  regional_limits?: LimitsOfRegion[];
}

const limits = (kinds: Kind[]): Record<string, TSchema> =>
  Object.fromEntries(
    kinds.map((kind) => [
      `${kind}_limit`,
      Type.Optional(Type.Integer({ minimum: 0, maximum: maxLimit, description: `Limit: ${meaningOfKind[kind]}` })),
    ]),
  );

/** A field of official clients that no quota has. */
const deprecated = {
  baremetal_gpu_count_limit: Type.Optional(Type.Integer({ deprecated: true, description: 'Ignored' })),
};

const NewLimits = Input(
  'NewRequestedLimits',
  {
    global_limits: Type.Optional(Input('RequestedGlobalLimits', limits(globalKinds), 'Limits that hold everywhere')),
    regional_limits: Type.Optional(
      Type.Array(
        Input('RequestedRegionalLimits', {
          region_id: Type.Optional(Described(IntegerId, 'ID of the region')),
          ...deprecated,
          ...limits(regionalKinds),
        }),
        { maxItems: maxRegions, description: 'Limits in regions; each entry needs a `region_id`' },
      ),
    ),
  },
  'The limits that are needed; at least one',
);

export const CreateQuotaRequest = Body(
  'CreateQuotaRequest',
  [
    {
      description: 'We move our archive here.',
      requested_limits: { regional_limits: [{ region_id: 1, volume_count_limit: 200, volume_size_limit: 50_000 }] },
    },
  ],
  {
    description: Type.String({ maxLength: 1000, description: 'Why the limits are needed' }),
    requested_limits: Type.Unsafe<RequestedLimits>(NewLimits),
    client_id: OwnClient,
  },
);
export type CreateQuotaRequest = Static<typeof CreateQuotaRequest>;

const Status = Type.Enum(['done', 'in progress', 'rejected'], {
  description: '`in progress`, `done` (approved) or `rejected`',
});
export type QuotaRequestStatus = Static<typeof Status>;

export const ListQuotaRequests = Type.Object({
  ...Paging(1000),
  created_from: Type.Optional(Described(Instant, 'Only requests created at or after this date')),
  created_to: Type.Optional(Described(Instant, 'Only requests created at or before this date')),
  request_ids: Type.Optional(
    Type.Array(FilterId, { maxItems: maxFilterValues, description: 'Only requests with these IDs' }),
  ),
  status: Type.Optional(
    Type.Array(Status, { maxItems: maxFilterValues, description: 'Only requests in these states' }),
  ),
});
export type ListQuotaRequests = Static<typeof ListQuotaRequests>;

const Limits = Component(
  'RequestedLimits',
  {
    global_limits: Type.Optional(Described(GlobalLimits, 'Limits that hold everywhere')),
    regional_limits: Type.Optional(Type.Array(RegionalLimits, { description: 'Limits in regions' })),
  },
  'The limits that were requested',
);

export const QuotaRequest = Component('QuotaRequest', {
  id: Type.Integer({ description: 'ID of the request' }),
  client_id: Type.Integer({ description: 'ID of the client' }),
  description: Type.String({ description: 'Why the limits are needed' }),
  requested_limits: Type.Unsafe<RequestedLimits>(Limits),
  status: Status,
  reason: OrNull.text('What the operator wrote about the decision, or null'),
  created_at: Described(DateTime, 'When the request was created'),
  updated_at: Described(Nullable(DateTime), 'When the request was decided; null until then'),
});
export type QuotaRequest = Static<typeof QuotaRequest>;

export const QuotaRequestCollection = Collection(QuotaRequest);

const Reason = Type.String({ minLength: 1, maxLength: 1000, description: 'For the client; part of the notification' });

export const ApproveQuotaRequest = Body('ApproveQuotaRequest', [{}], { reason: Type.Optional(Nullable(Reason)) });

export const DeclineQuotaRequest = Body(
  'DeclineQuotaRequest',
  [{ reason: 'The region has no space for 50 TB; write to us about another one.' }],
  { reason: Reason },
);
