import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type Registry = components['schemas']['Registry'];
export type RegistryUser = components['schemas']['RegistryUser'];
export type Artifact = components['schemas']['RegistryArtifact'];

/** The first part of every key of queries of registries and their contents. */
export const KIND = 'registries';
export const REGISTRIES = '/cloud/v1/registries/{project_id}/{region_id}';
export const REGISTRY = '/cloud/v1/registries/{project_id}/{region_id}/{registry_id}';
export const USER = '/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/users/{user_id}';

export const registryParams = (scope: Scope, id: number | string) => ({
  ...scopeParams(scope),
  registry_id: Number(id),
});

export const registriesQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () => allRows((query) => unwrap(api.GET(REGISTRIES, { params: { path: scopeParams(scope), query } }))),
  });

export const registryQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id)],
    queryFn: () => unwrap(api.GET(REGISTRY, { params: { path: registryParams(scope, id) } })),
  });

export const CurrentRegistry = currentResource(registryQuery);

export const usersQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'users'],
    queryFn: () =>
      allRows((query) => unwrap(api.GET(`${REGISTRY}/users`, { params: { path: registryParams(scope, id), query } }))),
  });

export const repositoriesQuery = (scope: Scope, id: number | string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'repositories'],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET(`${REGISTRY}/repositories`, { params: { path: registryParams(scope, id), query } })),
      ),
  });

export const artifactsQuery = (scope: Scope, id: number | string, repository: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, String(id), 'repositories', repository],
    queryFn: () =>
      allRows((query) =>
        unwrap(
          api.GET(`${REGISTRY}/repositories/{repository_name}/artifacts`, {
            params: { path: { ...registryParams(scope, id), repository_name: repository }, query },
          }),
        ),
      ),
  });

const NEVER = /^(9999|0001)-/;

/** Null where the API writes a date that means never. */
export function dateOrNever(at: string): string | null {
  return NEVER.test(at) ? null : at;
}
