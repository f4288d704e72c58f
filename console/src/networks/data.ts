import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { scopeParams } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';

export type Network = components['schemas']['Network'];
export type Subnet = components['schemas']['Subnet'];

export const networksQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ['networks', scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET('/cloud/v1/networks/{project_id}/{region_id}', { params: { path: scopeParams(scope), query } })),
      ),
  });

export const subnetsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ['subnets', scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(api.GET('/cloud/v1/subnets/{project_id}/{region_id}', { params: { path: scopeParams(scope), query } })),
      ),
  });
