/** The price preview (docs/interface.md, "Prices"), and the price book as an operator writes it. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, maxSizeGib, Nullable, Paging, ShortText, Uuid } from '../../http/shapes.ts';
import { VolumeTypeName } from '../volumes/schema.ts';
import { FlavorName, FloatingIp, VipFamily } from '../load-balancers/schema.ts';

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

export const PriceVolume = Type.Object(
  {
    size: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 102_400, description: 'GiB' }))),
    snapshot_id: Type.Optional(Nullable(Uuid)),
    source: Type.Enum(['image', 'new-volume', 'snapshot']),
    type_name: Type.Optional(Nullable(VolumeTypeName)),
  },
  { additionalProperties: false },
);
export type PriceVolume = Static<typeof PriceVolume>;

export const PriceSnapshot = Type.Object({ volume_id: Uuid }, { additionalProperties: false });

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

export const PriceLoadBalancerV1 = Type.Object({ flavor: FlavorName }, { additionalProperties: false });
export const PriceLoadBalancer = Type.Object(
  {
    flavor: FlavorName,
    floating_ip: Type.Optional(FloatingIp),
    vip_ip_family: Type.Optional(Nullable(VipFamily)),
    vip_network_id: Type.Optional(Nullable(ShortText)),
    vip_port_id: Type.Optional(Nullable(ShortText)),
    vip_subnet_id: Type.Optional(Nullable(ShortText)),
  },
  { additionalProperties: false },
);
export type PriceLoadBalancer = Static<typeof PriceLoadBalancer>;

const PriceByPart = Type.Object({ external_ip: MaybeNumber, flavor: MaybeNumber, floating_ip: MaybeNumber });
export const LoadBalancerPrice = Type.Object({
  currency_code: Nullable(Currency),
  discount_percent: MaybeNumber,
  per_hour: PriceByPart,
  per_month: PriceByPart,
  price_status: Type.Enum(['error', 'hide', 'show']),
  price_without_discount_per_month: MaybeNumber,
  tax_percent: Type.Number(),
  total_price_per_hour: MaybeNumber,
  total_price_per_month: MaybeNumber,
});
export type LoadBalancerPrice = Static<typeof LoadBalancerPrice>;

const Flavor = Type.Object({
  flavor_id: Type.String(),
  flavor_name: Type.String(),
  ram: Type.Integer({ description: 'MiB' }),
  vcpus: Type.Integer(),
  ...Type.Partial(Type.Pick(Price, ['currency_code', 'price_per_hour', 'price_per_month', 'price_status'])).properties,
});
export const FlavorCollection = Collection(Flavor);
export type FlavorCollection = Static<typeof FlavorCollection>;

export const ListFlavors = Type.Object({
  ...Paging(1000),
  include_prices: Type.Optional(Type.Boolean({ default: false })),
});
export type ListFlavors = Static<typeof ListFlavors>;

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
        volume_cold_gib: Type.Optional(Decimal),
        volume_ssd_hiiops_gib: Type.Optional(Decimal),
        volume_ssd_local_gib: Type.Optional(Decimal),
        volume_ssd_lowlatency_gib: Type.Optional(Decimal),
        volume_standard_gib: Type.Optional(Decimal),
        volume_ultra_gib: Type.Optional(Decimal),
        /** Of whatever type its volume is. */
        snapshot_gib: Type.Optional(Decimal),
        /** A load balancer of a flavor. */
        'load_balancer_lb1-1-2': Type.Optional(Decimal),
        'load_balancer_lb1-2-4': Type.Optional(Decimal),
        'load_balancer_lb1-4-8': Type.Optional(Decimal),
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
