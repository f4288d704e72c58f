/** Requests and responses of price previews, and the shape of the price book that an operator writes. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  maxSizeGib,
  Named,
  Nullable,
  OrNull,
  Paging,
  ShortText,
  Uuid,
} from '../../http/shapes.ts';
import { FileShareTypeName } from '../file-shares/schema.ts';
import { VolumeTypeName } from '../volumes/schema.ts';
import { exampleFlavor, FlavorName, FloatingIp, VipFamily } from '../load-balancers/schema.ts';

const Currency = Type.Enum(['AZN', 'EUR', 'USD']);

export const PriceFileShare = Body('PriceFileShare', [{ source: 'new-file-share', size: 100, type_name: 'standard' }], {
  size: Type.Integer({ minimum: 1, maximum: maxSizeGib, description: 'Size in GiB' }),
  source: Type.Enum(['new-file-share'], { description: 'Always `new-file-share`' }),
  type_name: Type.Optional(
    Type.Enum(FileShareTypeName.enum, { default: 'standard', description: 'Type of the share' }),
  ),
});
export type PriceFileShare = Static<typeof PriceFileShare>;

export const PriceVolume = Body('PriceVolume', [{ source: 'new-volume', size: 100, type_name: 'standard' }], {
  size: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 102_400,
        description: 'Size in GiB; required unless a snapshot is given, whose size it must equal',
      }),
    ),
  ),
  snapshot_id: Type.Optional(
    Described(Nullable(Uuid), 'ID of the snapshot to copy; required with the source `snapshot`'),
  ),
  source: Type.Enum(['image', 'new-volume', 'snapshot'], {
    description: 'What the volume is created from; images are not supported and have no price',
  }),
  type_name: Type.Optional(
    Described(Nullable(VolumeTypeName), 'Type of the volume; by default that of the snapshot, or `standard`'),
  ),
});
export type PriceVolume = Static<typeof PriceVolume>;

export const PriceSnapshot = Body('PriceSnapshot', [{ volume_id: exampleUuid }], {
  volume_id: Described(Uuid, 'ID of the volume'),
});

const priceFields = {
  currency_code: Named('PriceCurrency', Nullable(Currency), 'Currency of the prices; null when no price is shown'),
  discount_percent: OrNull.number('Discount of the client in percent'),
  price_status: Type.Enum(['error', 'hide', 'show'], {
    title: 'PriceStatus',
    description: '`show`: the prices are valid; `hide`: the price book has no price; `error`: the price book is faulty',
  }),
  price_without_discount_per_month: OrNull.number('Price of a month (730 hours) with tax and without discount'),
  tax_percent: Type.Number({ description: 'Tax that the prices include, in percent; 0 when no price is shown' }),
};
const perHour = 'Price of an hour with tax';
const perMonth = 'Price of a month (730 hours) with tax';

export const Price = Component('Price', {
  ...priceFields,
  price_per_hour: OrNull.number(perHour),
  price_per_month: OrNull.number(perMonth),
});
export type Price = Static<typeof Price>;

const Flavor = Described(FlavorName, 'Flavor of the load balancer');
const flavor = exampleFlavor;

export const PriceLoadBalancerV1 = Body('PriceLoadBalancerV1', [{ flavor }], { flavor: Flavor });
const ignored = Described(Nullable(ShortText), 'Accepted and ignored');
export const PriceLoadBalancer = Body('PriceLoadBalancer', [{ flavor }], {
  flavor: Flavor,
  floating_ip: Type.Optional(
    Described(FloatingIp, 'Floating IP of the load balancer; floating IPs are not supported and have no price'),
  ),
  vip_ip_family: Type.Optional(Described(Nullable(VipFamily), 'Accepted and ignored')),
  vip_network_id: Type.Optional(ignored),
  vip_port_id: Type.Optional(ignored),
  vip_subnet_id: Type.Optional(ignored),
});
export type PriceLoadBalancer = Static<typeof PriceLoadBalancer>;

const PriceByPart = Component('LoadBalancerPriceByPart', {
  external_ip: OrNull.number('Price of the external IP address; always null'),
  flavor: OrNull.number('Price of the flavor'),
  floating_ip: OrNull.number('Price of the floating IP; always null'),
});
export const LoadBalancerPrice = Component('LoadBalancerPrice', {
  ...priceFields,
  per_hour: Described(PriceByPart, 'Prices of an hour with tax, by part'),
  per_month: Described(PriceByPart, 'Prices of a month (730 hours) with tax, by part'),
  total_price_per_hour: OrNull.number(perHour),
  total_price_per_month: OrNull.number(perMonth),
});
export type LoadBalancerPrice = Static<typeof LoadBalancerPrice>;

const { currency_code, price_per_hour, price_per_month, price_status } = Price.properties;
const LoadBalancerFlavor = Component('LoadBalancerFlavor', {
  flavor_id: Type.String({ description: 'ID of the flavor; the same as its name' }),
  flavor_name: Type.String({ description: 'Name of the flavor' }),
  ram: Type.Integer({ description: 'Memory in MiB' }),
  vcpus: Type.Integer({ description: 'Number of virtual CPUs' }),
  // Present with `include_prices` only.
  currency_code: Type.Optional(currency_code),
  price_per_hour: Type.Optional(price_per_hour),
  price_per_month: Type.Optional(price_per_month),
  price_status: Type.Optional(price_status),
});
export type LoadBalancerFlavor = Static<typeof LoadBalancerFlavor>;
export const FlavorCollection = Collection(LoadBalancerFlavor);

export const ListFlavors = Type.Object({
  ...Paging(1000),
  include_prices: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether the response contains the price of each flavor' }),
  ),
});
export type ListFlavors = Static<typeof ListFlavors>;

/** A number, or its digits in quotes, which keep it exact: YAML parsers round numbers. `rule`: see platform/yaml-file.ts. */
const Digits = (pattern: string, maximum: number, rule: string) =>
  Type.Unsafe<string | number>({ type: ['string', 'number'], pattern, minimum: 0, maximum, rule });
const Decimal = Digits('^\\d{1,12}(\\.\\d{1,12})?$', 1e12, 'a price from 0 to 1,000,000,000,000 such as "0.015"');
const Percent = Digits('^(100(\\.0+)?|\\d{1,2}(\\.\\d{1,6})?)$', 100, 'a percentage from 0 to 100 such as "2.5"');

export const PriceBook = Type.Object(
  {
    currency: Currency,
    tax_percent: Percent,
    /** Price of one unit for one hour without tax. A unit that is absent has no price. */
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
        /** For volumes of any type. */
        snapshot_gib: Type.Optional(Decimal),
      },
      /** `load_balancer_<flavor>`: one load balancer of the flavor. */
      {
        additionalProperties: false,
        patternProperties: { '^load_balancer_[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$': Decimal },
      },
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
export type PricedUnit = keyof PriceBook['unit_hours'] | `load_balancer_${string}`;
