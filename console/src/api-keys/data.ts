import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type ApiKey = components['schemas']['ApiKey'];

export const KIND = 'api_keys';
export const KEYS = '/cloud/v1/caas/keys/{project_id}/{region_id}';
export const KEY = '/cloud/v1/caas/keys/{project_id}/{region_id}/{key_name}';

export const keyParams = (scope: Scope, name: string) => ({ ...scopeParams(scope), key_name: name });

export const apiKeysQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () => allRows((query) => unwrap(api.GET(KEYS, { params: { path: scopeParams(scope), query } }))),
  });

export const apiKeyQuery = (scope: Scope, name: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, name],
    queryFn: () => unwrap(api.GET(KEY, { params: { path: keyParams(scope, name) } })),
    // A key becomes active when this server has read it, and expires without an event.
    refetchInterval: ({ state }) => (state.data?.status === 'pending' ? 2000 : 60_000),
  });

export const CurrentKey = currentResource(apiKeyQuery, 'name');
