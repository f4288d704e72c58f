import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type FileShare = components['schemas']['FileShare'];
export type FileShareUsage = components['schemas']['FileShareUsage'];
export type AccessRule = components['schemas']['FileShareAccessRule'];

/** The first part of every key of queries of file shares; events of this kind refresh them. */
export const KIND = 'file_shares';

/** The operations of one file share. */
export const SHARE = '/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}';

export const shareParams = (scope: Scope, id: string) => ({ ...scopeParams(scope), file_share_id: id });

export const fileSharesQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(
          api.GET('/cloud/v1/file_shares/{project_id}/{region_id}', { params: { path: scopeParams(scope), query } }),
        ),
      ),
  });

export const fileShareQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(SHARE, { params: { path: shareParams(scope, id) } })),
  });

export const CurrentShare = currentResource(fileShareQuery);

/** By the ID of the share, of one or all; without shares that were not measured. */
export const usageQuery = (scope: Scope, id?: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, 'usage', id],
    queryFn: async () => {
      const { results } = await allRows((query) =>
        unwrap(
          api.GET('/cloudyard/v1/file_shares/{project_id}/{region_id}/usage', {
            params: { path: scopeParams(scope), query: { ...query, ...(id !== undefined && { file_share_id: id }) } },
          }),
        ),
      );
      return new Map(results.map((usage) => [usage.file_share_id, usage]));
    },
  });

export const accessRulesQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id, 'access-rules'],
    queryFn: () => unwrap(api.GET(`${SHARE}/access_rule`, { params: { path: shareParams(scope, id), query: {} } })),
    // A rule ends its transition without a task.
    refetchInterval: ({ state }) => (state.data?.results.some((rule) => rule.state !== 'active') ? 2000 : false),
  });

/** The query of a share's price; null while the size is not valid. */
export function newSharePrice(size: unknown, type: string): Record<string, unknown> | null {
  return Number.isInteger(size) && Number(size) > 0 ? { source: 'new-file-share', size, type_name: type } : null;
}
