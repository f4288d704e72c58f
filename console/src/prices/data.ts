import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { queryClient } from '../api/query-client.ts';
import { flavorSize } from '../load-balancers/values.ts';
import { priceOf } from '../ui/price.tsx';
import { regionsQuery, type Scope, scopeParams } from '../ui/scope.tsx';
import { volumesQuery, volumeTypesQuery } from '../volumes/data.ts';

type Price = components['schemas']['Price'];

export interface PriceRow {
  /** `Volume, standard` */
  readonly name: string;
  /** `100 GiB` */
  readonly amount: string;
  readonly price: Price;
}

/** The prices of everything that the region offers, for storage of `size` GiB. The API has previews, so each row is one. */
export const pricesQuery = (scope: Scope, size: number) =>
  queryOptions({
    queryKey: ['prices', 'book', scope.project, scope.region, size],
    queryFn: async (): Promise<PriceRow[]> => {
      const [storage, snapshot, balancers] = await Promise.all([
        storagePrices(scope, size),
        snapshotPrice(scope),
        balancerPrices(scope),
      ]);
      return [...storage, ...snapshot, ...balancers];
    },
    placeholderData: keepPreviousData,
  });

async function storagePrices(scope: Scope, size: number): Promise<PriceRow[]> {
  const regions = await queryClient.fetchQuery(regionsQuery);
  const shareTypes = regions.results.find(({ id }) => id === scope.region)?.file_share_types ?? [];
  const volumeTypes = await queryClient.fetchQuery(volumeTypesQuery(scope));
  const amount = `${size} GiB`;
  return Promise.all([
    ...shareTypes.map(async (type) => ({
      name: `File share, ${type}`,
      amount,
      price: await priceOf(scope, 'file_shares', { size, source: 'new-file-share', type_name: type }),
    })),
    ...volumeTypes.map(async (type) => ({
      name: `Volume, ${type}`,
      amount,
      price: await priceOf(scope, 'volumes', { size, source: 'new-volume', type_name: type }),
    })),
  ]);
}

/** The API prices the snapshot of a volume that exists. */
async function snapshotPrice(scope: Scope): Promise<PriceRow[]> {
  const [volume] = (await queryClient.fetchQuery(volumesQuery(scope))).results;
  if (!volume) return [];
  const price = await priceOf(scope, 'snapshots', { volume_id: volume.id });
  return [{ name: `Snapshot of the volume ${volume.name}`, amount: `${volume.size} GiB`, price }];
}

async function balancerPrices(scope: Scope): Promise<PriceRow[]> {
  const { results } = await unwrap(
    api.GET('/cloud/v1/lbflavors/{project_id}/{region_id}', {
      params: { path: scopeParams(scope), query: { limit: 1000 } },
    }),
  );
  return Promise.all(
    results.map(async (flavor) => ({
      name: `Load balancer, ${flavor.flavor_name}`,
      amount: flavorSize(flavor),
      price: await priceOf(scope, 'loadbalancers', { flavor: flavor.flavor_name }),
    })),
  );
}
