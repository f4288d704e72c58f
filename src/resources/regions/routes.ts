import type { Routes } from '../../http/app.ts';
import { GetRegion, ListRegions, Region, RegionCollection, RegionPath } from './schema.ts';
import type { Regions } from './service.ts';

const tags = ['Regions'];

export function regionRoutes(regions: Regions): Routes {
  return (app) => {
    app.get(
      '/cloud/v1/regions',
      {
        schema: {
          operationId: 'listRegions',
          summary: 'List regions',
          tags,
          querystring: ListRegions,
          response: { 200: RegionCollection },
        },
      },
      async (request) => regions.list(request.query),
    );
    app.get(
      '/cloud/v1/regions/:region_id',
      {
        schema: {
          operationId: 'getRegion',
          summary: 'Get a region',
          tags,
          params: RegionPath,
          querystring: GetRegion,
          response: { 200: Region },
        },
      },
      async (request) => regions.show(request.params.region_id, request.query.show_volume_types),
    );
  };
}
