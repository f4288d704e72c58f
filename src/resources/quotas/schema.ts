/** Quota figures: every kind has a `_limit` and a `_usage` (docs/interface.md, "Quotas"). */
import { type Static, type TInteger, type TOptional, Type } from 'typebox';
import { Body, Collection, Component, Described, extending, IntegerId, OrNull } from '../../http/shapes.ts';
import { globalKinds, type Kind, meaningOfKind, regionalKinds } from '../../quota/kinds.ts';

export const maxLimit = Number.MAX_SAFE_INTEGER;

type Figures = Record<string, TOptional<TInteger>>;

const limit = (kind: Kind): Figures => ({
  [`${kind}_limit`]: Type.Optional(Type.Integer({ description: `Limit: ${meaningOfKind[kind]}` })),
});
const usage = (kind: Kind): Figures => ({
  [`${kind}_usage`]: Type.Optional(Type.Integer({ description: `Usage: ${meaningOfKind[kind]}` })),
});
const figures = (kinds: Kind[], ...shapes: ((kind: Kind) => Figures)[]): Figures =>
  Object.assign({}, ...kinds.flatMap((kind) => shapes.map((shape) => shape(kind))));

const region = { region_id: Type.Optional(Type.Integer({ description: 'ID of the region' })) };

export const GlobalLimits = Component('GlobalLimits', figures(globalKinds, limit));
export const RegionalLimits = Component('RegionalLimits', { ...region, ...figures(regionalKinds, limit) });
export const GlobalQuotas = Type.Object(figures(globalKinds, limit, usage), {
  title: 'GlobalQuotas',
  ...extending(GlobalLimits),
});
export const RegionalQuotas = Type.Object(
  { ...region, ...figures(regionalKinds, limit, usage) },
  { title: 'RegionalQuotas', ...extending(RegionalLimits) },
);
/** The answer of `updateClientQuotas`: the figures of the region, or the global ones. */
export const ClientQuotaFigures = Type.Object(
  { ...RegionalQuotas.properties, ...GlobalQuotas.properties },
  { title: 'ClientQuotaFigures', ...extending(RegionalQuotas, GlobalQuotas) },
);
export const AllClientQuotas = Component('AllClientQuotas', {
  global_quotas: Described(GlobalQuotas, 'Quotas that hold everywhere'),
  regional_quotas: Type.Array(RegionalQuotas, { description: 'Quotas of each region' }),
});

const QuotaDrift = Component('QuotaDrift', {
  client_id: Type.Integer({ description: 'ID of the client' }),
  region_id: OrNull.integer('ID of the region; null: a global quota'),
  kind: Type.String({ description: 'Kind of quota, such as `volume_count`' }),
  counted: Type.Integer({ description: 'The usage that limits are checked against' }),
  in_use: Type.Integer({ description: 'The usage of the resources' }),
});
export type QuotaDrift = Static<typeof QuotaDrift>;
export const QuotaDriftCollection = Collection(QuotaDrift);

const LimitOrDefault = Type.Union([Type.Integer({ minimum: 0, maximum: maxLimit }), Type.Null()], {
  title: 'QuotaLimitOrDefault',
});
const Limit = (kind: Kind) => Described(LimitOrDefault, `Limit: ${meaningOfKind[kind]}; null: the default`);

/** Regional kinds need a `region_id`, global kinds must not have one; null resets a limit to the default. */
export const UpdateClientQuotas = Body('UpdateClientQuotas', [{ region_id: 1, volume_count_limit: 20 }], {
  region_id: Type.Optional(Described(IntegerId, 'ID of the region, for regional kinds')),
  ...Object.fromEntries(
    [...regionalKinds, ...globalKinds].map((kind) => [`${kind}_limit`, Type.Optional(Limit(kind))]),
  ),
});
export type UpdateClientQuotas = { region_id?: number } & Record<string, number | null | undefined>;

/** Default limits by kind. The limit of an omitted kind is 0. */
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
