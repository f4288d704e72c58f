/**
 * Prices, in exact decimals. All prices include tax. An hour is rounded to six places, a month (730 hours, from the
 * unrounded hour) to two, halves up. What the book does not price is hidden; a book that cannot be read is an error.
 */
import { Big } from 'big.js';
import type { Logger } from 'pino';
import type { Scope } from '../../authz/actor.ts';
import { flavors } from '../load-balancers/schema.ts';
import type { FlavorName } from '../load-balancers/schema.ts';
import type { FlavorCollection, ListFlavors } from './schema.ts';
import type { LoadBalancerPrice, Price, PriceBook, PricedUnit, PriceFileShare, PriceLoadBalancer } from './schema.ts';

export const hoursPerMonth = 730;
const hourPlaces = 6;
const monthPlaces = 2;

/** The book of a region: null when it has none. @throws when the book is broken */
export type BookOfRegion = (regionId: number) => PriceBook | null;

export type Pricing = ReturnType<typeof createPricing>;

export function createPricing(bookOfRegion: BookOfRegion, log: Logger) {
  /** The price of `amount` units at the caller's discount. */
  const price = (scope: Scope, clientId: number, unit: PricedUnit, amount: number): Price => {
    try {
      const book = bookOfRegion(scope.regionId);
      const unitHour = book?.unit_hours[unit];
      if (!book || unitHour === undefined) return withoutPrice('hide');
      return calculate(book, clientId, new Big(unitHour).times(amount));
    } catch (error) {
      log.error({ err: error, regionId: scope.regionId }, 'the price book is broken');
      return withoutPrice('error');
    }
  };

  const loadBalancerV1 = (scope: Scope, clientId: number, flavor: FlavorName): Price =>
    price(scope, clientId, `load_balancer_${flavor}`, 1);

  return {
    loadBalancerV1,

    /** By part: its flavor is all that is paid for. What has no price, as a floating IP, leaves the whole without one. */
    loadBalancer(scope: Scope, clientId: number, asked: PriceLoadBalancer): LoadBalancerPrice {
      const whole = asked.floating_ip ? withoutPrice('hide') : loadBalancerV1(scope, clientId, asked.flavor);
      return byPart(whole);
    },

    /** What a load balancer may be, with what it costs when that is asked for. */
    flavors(scope: Scope, clientId: number, query: ListFlavors): FlavorCollection {
      const { include_prices, limit = 1000, offset = 0 } = query;
      const all = (Object.keys(flavors) as FlavorName[]).map((name) => {
        const flavor = { flavor_id: name, flavor_name: name, ...flavors[name] };
        if (!include_prices) return flavor;
        const { currency_code, price_per_hour, price_per_month, price_status } = loadBalancerV1(scope, clientId, name);
        return { ...flavor, currency_code, price_per_hour, price_per_month, price_status };
      });
      return { count: all.length, results: all.slice(offset, offset + limit) };
    },

    fileShare: (scope: Scope, clientId: number, share: PriceFileShare): Price =>
      price(
        scope,
        clientId,
        share.type_name === 'vast' ? 'file_share_vast_gib' : 'file_share_standard_gib',
        share.size,
      ),
  };
}

/** Clients that stand in the book twice. */
export function checkPriceBook(book: PriceBook) {
  const seen = new Set<number>();
  return (book.discounts ?? []).flatMap(({ client_id }, i) => {
    const twice = seen.has(client_id);
    seen.add(client_id);
    return twice ? [{ path: `discounts.${i}.client_id`, message: 'stands in the book twice' }] : [];
  });
}

function calculate(book: PriceBook, clientId: number, netHour: Big): Price {
  const discount = book.discounts?.find((candidate) => candidate.client_id === clientId)?.percent ?? 0;
  const fullHour = netHour.times(new Big(100).plus(book.tax_percent)).div(100);
  const hour = fullHour.times(new Big(100).minus(discount)).div(100);
  return {
    currency_code: book.currency,
    discount_percent: Number(discount),
    price_per_hour: hour.round(hourPlaces, Big.roundHalfUp).toNumber(),
    price_per_month: month(hour),
    price_status: 'show',
    price_without_discount_per_month: month(fullHour),
    tax_percent: Number(book.tax_percent),
  };
}

function byPart({ price_per_hour, price_per_month, ...rest }: Price): LoadBalancerPrice {
  return {
    ...rest,
    per_hour: { external_ip: null, flavor: price_per_hour, floating_ip: null },
    per_month: { external_ip: null, flavor: price_per_month, floating_ip: null },
    total_price_per_hour: price_per_hour,
    total_price_per_month: price_per_month,
  };
}

function month(hour: Big): number {
  return hour.times(hoursPerMonth).round(monthPlaces, Big.roundHalfUp).toNumber();
}

function withoutPrice(status: 'hide' | 'error'): Price {
  return {
    currency_code: null,
    discount_percent: null,
    price_per_hour: null,
    price_per_month: null,
    price_status: status,
    price_without_discount_per_month: null,
    tax_percent: 0,
  };
}
