import type { Routes } from '../../http/app.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import { Price, PriceFileShare } from './schema.ts';
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
  };
}
