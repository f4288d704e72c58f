import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

/** Without the fields that are always null. */
export type Volume = Omit<components['schemas']['Volume'], 'limiter_stats' | 'volume_image_metadata'>;

export const KIND = 'volumes';

/** The operations of one volume. */
export const VOLUME = '/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}';

export const volumesQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET('/cloud/v1/volumes/{project_id}/{region_id}', { params: { path: scopeParams(scope), query } })),
      ),
  });

export const volumeQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(VOLUME, { params: { path: volumeParams(scope, id) } })),
  });

export const CurrentVolume = currentResource(volumeQuery);

/** The types that the region offers. */
export const volumeTypesQuery = ({ region }: Scope) =>
  queryOptions({
    queryKey: ['regions', region, 'volume-types'],
    queryFn: async () => {
      const params = { path: { region_id: region }, query: { show_volume_types: true } };
      return (await unwrap(api.GET('/cloud/v1/regions/{region_id}', { params }))).available_volume_types ?? [];
    },
  });

export function volumeParams(scope: Scope, id: string) {
  return { ...scopeParams(scope), volume_id: id };
}

/** The query of a new volume's price; null while the size is not valid. */
export function newVolumePrice(size: unknown, type: string): Record<string, unknown> | null {
  if (!Number.isInteger(size) || Number(size) < 1 || Number(size) > 102_400) return null;
  return { source: 'new-volume', size, type_name: type };
}
