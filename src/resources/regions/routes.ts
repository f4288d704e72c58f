/** The operations of regions. */
import { tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { GetRegion, ListRegions, Region, RegionCollection } from './schema.ts';
import type { Regions } from './service.ts';

const operation = operationsOf({
  name: 'Regions',
  description: 'A region is a place where resources run. The operator declares the regions in a file.',
});

export const regionOperations = ({ regions }: { regions: Regions }) => [
  operation('GET', '/cloud/v1/regions', {
    id: 'listRegions',
    summary: 'List regions',
    access: tokenReader,
    query: ListRegions,
    response: RegionCollection,
    handle: ({ query }) => regions.list(query),
  }),
  operation('GET', '/cloud/v1/regions/:region_id', {
    id: 'getRegion',
    summary: 'Get a region',
    access: tokenReader,
    query: GetRegion,
    response: Region,
    handle: ({ params, query }) => regions.show(params.region_id, query.show_volume_types),
  }),
];
