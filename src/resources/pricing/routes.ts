import type { Routes } from '../../http/app.ts';
import { ProjectRegion } from '../../http/shapes.ts';
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

export function pricingRoutes(pricing: Pricing): Routes {
  return (app) => {
    app.post(
      '/cloud/v1/pricing/:project_id/:region_id/file_shares',
      {
        schema: {
          operationId: 'previewFileSharePrice',
          summary: 'Preview the price of a file share, tax included',
          tags: ['Prices'],
          params: ProjectRegion,
          body: PriceFileShare,
          response: { 200: Price },
        },
      },
      async (request) => pricing.fileShare(request.scope, request.by.actor.clientId, request.body),
    );

    app.post(
      '/cloud/v1/pricing/:project_id/:region_id/volumes',
      {
        schema: {
          operationId: 'previewVolumePrice',
          summary: 'Preview the price of a volume, tax included',
          tags: ['Prices'],
          params: ProjectRegion,
          body: PriceVolume,
          response: { 200: Price },
        },
      },
      (request) => pricing.volume(request.scope, request.by.actor.clientId, request.body),
    );

    app.post(
      '/cloud/v1/pricing/:project_id/:region_id/snapshots',
      {
        schema: {
          operationId: 'previewSnapshotPrice',
          summary: 'Preview the price of a snapshot of a volume, tax included',
          tags: ['Prices'],
          params: ProjectRegion,
          body: PriceSnapshot,
          response: { 200: Price },
        },
      },
      (request) => pricing.snapshot(request.scope, request.by.actor.clientId, request.body.volume_id),
    );

    app.post(
      '/cloud/v2/pricing/:project_id/:region_id/loadbalancers',
      {
        schema: {
          operationId: 'previewLoadBalancerPrice',
          summary: 'Preview the price of a load balancer by its parts, tax included',
          tags: ['Prices'],
          params: ProjectRegion,
          body: PriceLoadBalancer,
          response: { 200: LoadBalancerPrice },
        },
      },
      async (request) => pricing.loadBalancer(request.scope, request.by.actor.clientId, request.body),
    );

    app.post(
      '/cloud/v1/pricing/:project_id/:region_id/loadbalancers',
      {
        schema: {
          operationId: 'previewLoadBalancerPriceV1',
          summary: 'Preview the price of a load balancer, tax included',
          tags: ['Prices'],
          deprecated: true,
          params: ProjectRegion,
          body: PriceLoadBalancerV1,
          response: { 200: Price },
        },
      },
      async (request) => pricing.loadBalancerV1(request.scope, request.by.actor.clientId, request.body.flavor),
    );

    app.get(
      '/cloud/v1/lbflavors/:project_id/:region_id',
      {
        schema: {
          operationId: 'listLoadBalancerFlavors',
          summary: 'List the flavors of load balancers',
          tags: ['Prices'],
          params: ProjectRegion,
          querystring: ListFlavors,
          response: { 200: FlavorCollection },
        },
      },
      async (request) => pricing.flavors(request.scope, request.by.actor.clientId, request.query),
    );
  };
}
