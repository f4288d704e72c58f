/** The operations that preview prices. */
import { projectReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import {
  FlavorCollection,
  ListFlavors,
  LoadBalancerPrice,
  Price,
  PriceFileShare,
  PriceLoadBalancer,
  PriceLoadBalancerV1,
  PriceSnapshot,
  PriceVolume,
} from './schema.ts';
import type { Pricing } from './service.ts';

const tag = {
  name: 'Prices',
  description:
    'The price of a resource before it is created. Prices come from the price book of the region, include tax and ' +
    'contain the discount of the client. A month has 730 hours. Hours are rounded to six decimal places, months to two.\n\n' +
    '| `price_status` | Meaning |\n|---|---|\n' +
    '| `show` | the figures are valid |\n' +
    '| `hide` | the price book has no price for this; the figures are null |\n' +
    '| `error` | the price book is faulty; the figures are null |',
};
const operation = operationsOf(tag);
const v1 = '/cloud/v1/pricing/:project_id/:region_id';
const v2 = '/cloud/v2/pricing/:project_id/:region_id';

export const pricingOperations = ({ pricing }: { pricing: Pricing }) => [
  operation('POST', `${v1}/file_shares`, {
    id: 'previewFileSharePrice',
    summary: 'Preview the price of a file share',
    access: projectReader,
    body: PriceFileShare,
    response: Price,
    handle: ({ by, scope, body }) => pricing.fileShare(scope, by.actor.clientId, body),
  }),
  operation('POST', `${v1}/volumes`, {
    id: 'previewVolumePrice',
    summary: 'Preview the price of a volume',
    access: projectReader,
    body: PriceVolume,
    response: Price,
    handle: ({ by, scope, body }) => pricing.volume(scope, by.actor.clientId, body),
  }),
  operation('POST', `${v1}/snapshots`, {
    id: 'previewSnapshotPrice',
    summary: 'Preview the price of a snapshot',
    description: 'The snapshot has the current size of the volume.',
    access: projectReader,
    body: PriceSnapshot,
    response: Price,
    handle: ({ by, scope, body }) => pricing.snapshot(scope, by.actor.clientId, body.volume_id),
  }),
  operation('POST', `${v2}/loadbalancers`, {
    id: 'previewLoadBalancerPrice',
    summary: 'Preview the price of a load balancer',
    description: 'Lists the price of each part.',
    access: projectReader,
    body: PriceLoadBalancer,
    response: LoadBalancerPrice,
    handle: ({ by, scope, body }) => pricing.loadBalancer(scope, by.actor.clientId, body),
  }),
  operation('POST', `${v1}/loadbalancers`, {
    id: 'previewLoadBalancerPriceV1',
    summary: 'Preview the price of a load balancer (v1)',
    description: 'Returns one price for all parts. Use v2.',
    deprecated: true,
    access: projectReader,
    body: PriceLoadBalancerV1,
    response: Price,
    handle: ({ by, scope, body }) => pricing.loadBalancerV1(scope, by.actor.clientId, body.flavor),
  }),
  operation('GET', '/cloud/v1/lbflavors/:project_id/:region_id', {
    id: 'listLoadBalancerFlavors',
    summary: 'List the flavors of load balancers',
    description: 'The smallest flavor comes first. A flavor changes the price of a load balancer only.',
    access: projectReader,
    query: ListFlavors,
    response: FlavorCollection,
    handle: ({ by, scope, query }) => pricing.flavors(scope, by.actor.clientId, query),
  }),
];
