/**
 * Prices, in exact decimals. All prices include tax. An hour is rounded to six places, a month (730 hours, from the
 * unrounded hour) to two, halves up. A unit without a price in the book is hidden; an unreadable book is an error.
 */
import { Big } from 'big.js';
import type { Scope } from '../../authz/actor.ts';
import { ClientError, errorsOfRepeated, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import type { Logger } from '../../platform/log.ts';
import { flavorErrors } from '../load-balancers/flavors.ts';
import type { Regions } from '../regions/service.ts';
import { type Collection, pageOf } from '../service-kit.ts';
import { requireSizeOf, type Snapshots } from '../snapshots/service.ts';
import type { Volumes } from '../volumes/service.ts';
import type {
  ListFlavors,
  LoadBalancerFlavor,
  LoadBalancerPrice,
  Price,
  PriceBook,
  PricedUnit,
  PriceFileShare,
  PriceLoadBalancer,
  PriceVolume,
} from './schema.ts';

const hoursPerMonth = 730;
/** A factor instead of a division by 100: Big.js rounds quotients to 20 places, but keeps products exact. */
const percent = '0.01';
const hourPlaces = 6;
const monthPlaces = 2;

/** The book of a region; null when it has none. @throws when the book is invalid */
export type BookOfRegion = (regionId: number) => PriceBook | null;

export type Pricing = ReturnType<typeof createPricing>;

/** The sources of the sizes of existing resources, and of the flavors of regions. */
interface PricingSources {
  regions: Pick<Regions, 'get'>;
  volumes: Pick<Volumes, 'get'>;
  snapshots: Pick<Snapshots, 'get'>;
}

export function createPricing(
  bookOfRegion: BookOfRegion,
  log: Logger,
  { regions, volumes, snapshots }: PricingSources,
) {
  /** The price of `amount` units at the caller's discount. */
  const price = (scope: Scope, clientId: number, unit: PricedUnit, amount: number): Price => {
    try {
      const book = bookOfRegion(scope.regionId);
      const unitHour = (book?.unit_hours as Partial<Record<PricedUnit, string | number>> | undefined)?.[unit];
      if (!book || unitHour === undefined) return withoutPrice('hide');
      return calculate(book, clientId, new Big(unitHour).times(amount));
    } catch (error) {
      log.error({ err: error, regionId: scope.regionId }, 'the price book is invalid');
      return withoutPrice('error');
    }
  };

  const flavorsOf = (scope: Scope) => regions.get(scope.regionId)!.loadBalancerFlavors;

  const loadBalancerV1 = (scope: Scope, clientId: number, flavor: string): Price => {
    requireNoErrors(flavorErrors(flavorsOf(scope), flavor));
    return price(scope, clientId, `load_balancer_${flavor}`, 1);
  };

  const snapshotOf = (scope: Scope, clientId: number, gib: number): Price =>
    price(scope, clientId, 'snapshot_gib', gib);

  return {
    snapshotOf,

    /** The price of a new volume, whose size and type default to those of its snapshot. */
    async volume(scope: Scope, clientId: number, body: PriceVolume): Promise<Price> {
      // Images are not supported, so a volume from one has no price.
      if (body.source === 'image') return withoutPrice('hide');
      const snapshot = await findReferenced('snapshot_id', body.snapshot_id, (id) => snapshots.get(scope, id));
      if (body.source === 'snapshot' && !snapshot) throw required('snapshot_id');
      if (body.source === 'snapshot') requireSizeOf(snapshot!, body.size);
      const size = body.size ?? snapshot?.size;
      if (size === undefined) throw required('size');
      const from = snapshot && !body.type_name ? await volumes.get(scope, snapshot.volume_id) : null;
      const type = body.type_name ?? from?.volume_type ?? 'standard';
      return price(scope, clientId, `volume_${type}_gib`, size);
    },

    /** The price of a snapshot of a volume, at the current size of the volume. */
    async snapshot(scope: Scope, clientId: number, volumeId: string): Promise<Price> {
      const volume = await findReferenced('volume_id', volumeId, (id) => volumes.get(scope, id));
      return snapshotOf(scope, clientId, volume!.size);
    },

    loadBalancerV1,

    /** The price of a load balancer by part: only the flavor is charged. With a part without a price, the total has none. */
    loadBalancer(scope: Scope, clientId: number, body: PriceLoadBalancer): LoadBalancerPrice {
      const whole = loadBalancerV1(scope, clientId, body.flavor);
      return byPart(body.floating_ip ? withoutPrice('hide') : whole);
    },

    /** The flavors of load balancers, with prices on request. */
    flavors(scope: Scope, clientId: number, query: ListFlavors): Collection<LoadBalancerFlavor> {
      const all = flavorsOf(scope).map(({ name, vcpus, ram }) => {
        const flavor = { flavor_id: name, flavor_name: name, vcpus, ram };
        if (!query.include_prices) return flavor;
        const { currency_code, price_per_hour, price_per_month, price_status } = loadBalancerV1(scope, clientId, name);
        return { ...flavor, currency_code, price_per_hour, price_per_month, price_status };
      });
      return pageOf(all, query);
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

function required(path: string): ClientError {
  return invalidInput([{ path, message: 'is required' }]);
}

/** The resource that an optional field refers to. @throws ClientError 400 that names the field */
async function findReferenced<T>(path: string, id: string | null | undefined, find: (id: string) => Promise<T>) {
  if (!id) return null;
  return find(id).catch((error: unknown) => {
    throw error instanceof ClientError ? invalidInput([{ path, message: error.message }]) : error;
  });
}

/** The errors in a price book: clients that are listed twice. */
export function checkPriceBook(book: PriceBook) {
  const clientIds = (book.discounts ?? []).map(({ client_id }) => client_id);
  return errorsOfRepeated(clientIds, (i) => ({ path: `discounts.${i}.client_id`, message: 'is listed twice' }));
}

function calculate(book: PriceBook, clientId: number, netHour: Big): Price {
  const discount = book.discounts?.find((candidate) => candidate.client_id === clientId)?.percent ?? 0;
  const fullHour = netHour.times(new Big(100).plus(book.tax_percent)).times(percent);
  const hour = fullHour.times(new Big(100).minus(discount)).times(percent);
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
