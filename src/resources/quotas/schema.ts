/** Quota figures: every kind has a `_limit` and a `_usage` (docs/interface.md, "Quotas"). */
import { Type } from 'typebox';
import type { Static, TInteger, TOptional } from 'typebox';
import { IntegerId, Nullable } from '../../http/shapes.ts';
import { globalKinds, regionalKinds } from '../../quota/kinds.ts';
import type { Kind } from '../../quota/kinds.ts';

export const maxLimit = Number.MAX_SAFE_INTEGER;

const figures = (kinds: Kind[]): Record<string, TOptional<TInteger>> =>
  Object.fromEntries(
    kinds.flatMap((kind) => [
      [`${kind}_limit`, Type.Optional(Type.Integer())],
      [`${kind}_usage`, Type.Optional(Type.Integer())],
    ]),
  );

export const GlobalQuotas = Type.Object(figures(globalKinds));
export const RegionalQuotas = Type.Object({
  region_id: Type.Optional(Type.Integer()),
  ...figures(regionalKinds),
});
/** What `updateClientQuotas` answers: the figures of the region, or the global ones. */
export const ClientQuotaFigures = Type.Object({ ...RegionalQuotas.properties, ...GlobalQuotas.properties });
export const AllClientQuotas = Type.Object({
  global_quotas: GlobalQuotas,
  regional_quotas: Type.Array(RegionalQuotas),
});

export const ClientPath = Type.Object({ client_id: IntegerId });
export const ClientRegionPath = Type.Object({ client_id: IntegerId, region_id: IntegerId });

const Limit = Nullable(Type.Integer({ minimum: 0, maximum: maxLimit }));

/** Regional kinds with a `region_id`, global kinds without; null goes back to the default. */
export const UpdateClientQuotas = Type.Object(
  {
    region_id: Type.Optional(IntegerId),
    ...Object.fromEntries([...regionalKinds, ...globalKinds].map((kind) => [`${kind}_limit`, Type.Optional(Limit)])),
  },
  { additionalProperties: false },
);
export type UpdateClientQuotas = { region_id?: number } & Record<string, number | null | undefined>;

/** Defaults by kind; a kind that the file leaves out may not be used at all. */
export const QuotasFile = Type.Object(
  {
    default_limits: Type.Object(
      Object.fromEntries(
        [...regionalKinds, ...globalKinds].map((kind) => [
          kind,
          Type.Optional(Type.Integer({ minimum: 0, maximum: maxLimit })),
        ]),
      ),
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type QuotasFile = Static<typeof QuotasFile>;
