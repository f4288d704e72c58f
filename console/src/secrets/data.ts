import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type Secret = components['schemas']['Secret'];

export const KIND = 'secrets';

/** The operations of one secret. */
export const SECRET = '/cloud/v1/secrets/{project_id}/{region_id}/{secret_id}';

export const secretParams = (scope: Scope, id: string) => ({ ...scopeParams(scope), secret_id: id });

export const secretsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET('/cloud/v1/secrets/{project_id}/{region_id}', { params: { path: scopeParams(scope), query } })),
      ),
  });

export const secretQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(SECRET, { params: { path: secretParams(scope, id) } })),
  });

export const CurrentSecret = currentResource(secretQuery);
