import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

/** Without the field that is always null. */
export type Network = Omit<components['schemas']['Network'], 'segmentation_id'>;
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

/** The operations of one network and one subnet. */
export const NETWORK = '/cloud/v1/networks/{project_id}/{region_id}/{network_id}';
export const SUBNET = '/cloud/v1/subnets/{project_id}/{region_id}/{subnet_id}';

export function networkParams(scope: Scope, id: string) {
  return { ...scopeParams(scope), network_id: id };
}

export function subnetParams(scope: Scope, id: string) {
  return { ...scopeParams(scope), subnet_id: id };
}

export const networkQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: ['networks', scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(NETWORK, { params: { path: networkParams(scope, id) } })),
  });

export const CurrentNetwork = currentResource(networkQuery);

export const subnetQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: ['subnets', scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(SUBNET, { params: { path: subnetParams(scope, id) } })),
  });

export const CurrentSubnet = currentResource(subnetQuery);
