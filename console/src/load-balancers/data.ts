import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { type Scope, scopeParams } from '../ui/scope.tsx';

type Schemas = components['schemas'];
/** Without the fields that are always null. */
export type LoadBalancer = Omit<Schemas['LoadBalancer'], 'ddos_profile' | 'vip_fqdn'>;
export type Listener = Schemas['Listener'];
export type LbPool = Schemas['LbPool'];
export type LbPoolMember = Schemas['LbPoolMember'];
export type L7Rule = Schemas['L7Rule'];
/** A policy with its rules instead of references to them. */
export type L7Policy = Omit<Schemas['L7Policy'], 'rules'> & { readonly rules: readonly L7Rule[] };

/** The parts of a load balancer, each with its own status. */
export interface Tree {
  readonly listeners: readonly Listener[];
  readonly pools: readonly LbPool[];
  /** By listener and position. */
  readonly policies: readonly L7Policy[];
}

/** The first part of every key of queries of load balancers and their parts; events of these refresh them. */
export const KIND = 'load_balancers';
export const BALANCERS = '/cloud/v1/loadbalancers/{project_id}/{region_id}';
export const BALANCER = `${BALANCERS}/{load_balancer_id}` as const;

export const balancerParams = (scope: Scope, id: string) => ({ ...scopeParams(scope), load_balancer_id: id });

export const loadBalancersQuery = (scope: Scope) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region],
    queryFn: () => allRows((query) => unwrap(api.GET(BALANCERS, { params: { path: scopeParams(scope), query } }))),
  });

export const loadBalancerQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(BALANCER, { params: { path: balancerParams(scope, id), query: {} } })),
  });

const listenersOf = (scope: Scope, filter: { load_balancer_id?: string; show_stats?: boolean }) =>
  allRows((query) =>
    unwrap(
      api.GET('/cloud/v1/lblisteners/{project_id}/{region_id}', {
        params: { path: scopeParams(scope), query: { ...query, ...filter } },
      }),
    ),
  );

async function poolsOf(scope: Scope, filter: { load_balancer_id?: string }): Promise<LbPool[]> {
  const { results } = await allRows((query) =>
    unwrap(
      api.GET('/cloud/v1/lbpools/{project_id}/{region_id}', {
        params: { path: scopeParams(scope), query: { ...query, ...filter, details: true } },
      }),
    ),
  );
  // With `details` the members are whole.
  return results as LbPool[];
}

async function policiesOf(scope: Scope, listenerIds: ReadonlySet<string>): Promise<L7Policy[]> {
  const path = scopeParams(scope);
  const { results } = await allRows((query) =>
    unwrap(api.GET('/cloud/v1/l7policies/{project_id}/{region_id}', { params: { path, query } })),
  );
  const own = results.filter((policy) => listenerIds.has(policy.listener_id));
  const complete = own.map(async (policy): Promise<L7Policy> => {
    if (policy.rules.length === 0) return { ...policy, rules: [] };
    const { results: rules } = await unwrap(
      api.GET('/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules', {
        params: { path: { ...path, l7policy_id: policy.id }, query: {} },
      }),
    );
    return { ...policy, rules };
  });
  return (await Promise.all(complete)).toSorted((a, b) => a.position - b.position);
}

export const treeQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id, 'tree'],
    queryFn: async (): Promise<Tree> => {
      const [{ results: listeners }, pools] = await Promise.all([
        listenersOf(scope, { load_balancer_id: id }),
        poolsOf(scope, { load_balancer_id: id }),
      ]);
      return { listeners, pools, policies: await policiesOf(scope, new Set(listeners.map((each) => each.id))) };
    },
  });

/** The listeners with their counters. The server reads them from the proxy every 10 seconds. */
export const countersQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id, 'counters'],
    queryFn: async () => (await listenersOf(scope, { load_balancer_id: id, show_stats: true })).results,
    // Traffic has no events.
    refetchInterval: 10_000,
    staleTime: 0,
  });

export type TrafficHistory = Schemas['LoadBalancerTrafficHistory'];

/** Of one listener, or of all. */
export const trafficQuery = (scope: Scope, id: string, hours: number, listener: string | undefined) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id, 'traffic', hours, listener],
    queryFn: () =>
      unwrap(
        api.GET('/cloudyard/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/traffic', {
          params: {
            path: balancerParams(scope, id),
            query: { hours, ...(listener !== undefined && { listener_id: listener }) },
          },
        }),
      ),
    refetchInterval: 60_000,
  });

export const flavorsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ['load_balancer_flavors', scope.project, scope.region],
    queryFn: () =>
      allRows((query) =>
        unwrap(
          api.GET('/cloud/v1/lbflavors/{project_id}/{region_id}', {
            params: { path: scopeParams(scope), query: { ...query, include_prices: true } },
          }),
        ),
      ),
  });

interface SecretUse {
  readonly id: string;
  readonly balancerId: string;
  readonly kind: 'listener' | 'pool';
  readonly name: string;
  readonly as: string;
}

/** The listeners and pools that use a secret. */
export const secretUsesQuery = (scope: Scope, secretId: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, 'secret-uses', secretId],
    queryFn: async (): Promise<SecretUse[]> => {
      const [{ results: listeners }, pools] = await Promise.all([listenersOf(scope, {}), poolsOf(scope, {})]);
      const ofListeners = listeners.flatMap((each): SecretUse[] => {
        const as = [
          ...(each.secret_id === secretId ? ['certificate'] : []),
          ...(each.sni_secret_id?.includes(secretId) ? ['further certificate'] : []),
        ];
        const { id, name, load_balancer_id } = each;
        return as.map((role) => ({ id, name, balancerId: load_balancer_id ?? '', kind: 'listener', as: role }));
      });
      const ofPools = pools.flatMap((each): SecretUse[] => {
        const roles = [
          ['client certificate', each.secret_id],
          ['CA certificates', each.ca_secret_id],
          ['revocation lists', each.crl_secret_id],
        ] as const;
        const balancerId = each.loadbalancers[0]?.id ?? '';
        return roles
          .filter(([, used]) => used === secretId)
          .map(([as]) => ({ id: each.id, name: each.name, balancerId, kind: 'pool', as }));
      });
      return [...ofListeners, ...ofPools];
    },
  });
