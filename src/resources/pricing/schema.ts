/** The price preview (interface.md 2.6 and 4.11), and the price book as an operator writes it. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { maxSizeGib, Nullable } from '../../http/shapes.ts';

const Currency = Type.Enum(['AZN', 'EUR', 'USD']);

export const PriceFileShare = Type.Object(
  {
    size: Type.Integer({ minimum: 1, maximum: maxSizeGib, description: 'GiB' }),
    source: Type.Enum(['new-file-share']),
    type_name: Type.Optional(Type.Enum(['standard', 'vast'], { default: 'standard' })),
  },
  { additionalProperties: false },
);
export type PriceFileShare = Static<typeof PriceFileShare>;

const MaybeNumber = Nullable(Type.Number());

export const Price = Type.Object({
  currency_code: Nullable(Currency),
  discount_percent: MaybeNumber,
  price_per_hour: MaybeNumber,
  price_per_month: MaybeNumber,
  price_status: Type.Enum(['error', 'hide', 'show']),
  price_without_discount_per_month: MaybeNumber,
  tax_percent: Type.Number(),
});
export type Price = Static<typeof Price>;

/** Exact: a plain decimal, better in quotes, so that no reader of YAML rounds it. */
const Decimal = Type.Union([
  Type.String({ pattern: '^\\d{1,12}(\\.\\d{1,12})?$' }),
  Type.Number({ minimum: 0, maximum: 1e12 }),
]);
const Percent = Type.Union([
  Type.String({ pattern: '^(100(\\.0+)?|\\d{1,2}(\\.\\d{1,6})?)$' }),
  Type.Number({ minimum: 0, maximum: 100 }),
]);

export const PriceBook = Type.Object(
  {
    currency: Currency,
    tax_percent: Percent,
    /** Price of one unit for one hour, without tax, by thing. What is not here has no price. */
    unit_hours: Type.Object(
      {
        file_share_standard_gib: Type.Optional(Decimal),
        file_share_vast_gib: Type.Optional(Decimal),
      },
      { additionalProperties: false },
    ),
    discounts: Type.Optional(
      Type.Array(
        Type.Object({ client_id: Type.Integer({ minimum: 1 }), percent: Percent }, { additionalProperties: false }),
      ),
    ),
  },
  { additionalProperties: false },
);
export type PriceBook = Static<typeof PriceBook>;
export type PricedUnit = keyof PriceBook['unit_hours'];
