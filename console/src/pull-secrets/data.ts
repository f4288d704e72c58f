import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type PullSecret = components['schemas']['PullSecret'];

export const KIND = 'pull_secrets';
export const SECRETS = '/cloud/v1/caas/secrets/{project_id}/{region_id}';
export const SECRET = '/cloud/v1/caas/secrets/{project_id}/{region_id}/{secret_name}';
export const VERIFY = '/cloudyard/v1/caas/secrets/{project_id}/{region_id}/{secret_name}/verify';

export const secretParams = (scope: Scope, name: string) => ({ ...scopeParams(scope), secret_name: name });

export const pullSecretsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () => allRows((query) => unwrap(api.GET(SECRETS, { params: { path: scopeParams(scope), query } }))),
  });

export const pullSecretQuery = (scope: Scope, name: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, name],
    queryFn: () => unwrap(api.GET(SECRET, { params: { path: secretParams(scope, name) } })),
  });

export const CurrentSecret = currentResource(pullSecretQuery, 'name');
