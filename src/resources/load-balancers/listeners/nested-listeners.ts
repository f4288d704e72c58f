/** Listeners and pools in the create of a load balancer. Paths are such as `listeners.0.pools.0.members.1.address`. */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../../authz/actor.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { MemberRule } from '../../../platform/member-networks.ts';
import { newMemberSettings } from '../members/normalize.ts';
import { memberListErrors, memberSubnets } from '../members/validation.ts';
import { newPoolSettings } from '../pools/normalize.ts';
import type { CreatedPool, Pools, NewPart } from '../pools/service.ts';
import { poolErrors, poolSecrets } from '../pools/validation.ts';
import { referenceErrors, type SecretsForUse } from '../references.ts';
import type { VipFamily } from '../schema.ts';
import type { ListenerRow } from '../table.ts';
import { type ListenerSettings, newListenerSettings } from './normalize.ts';
import type { NestedListener } from './schema.ts';
import * as store from './store.ts';
import { listenerErrors, listenerSecrets, portErrors } from './validation.ts';

export interface NestedListeners {
  scope: Scope;
  loadBalancerId: string;
  creatorTaskId: string;
  now: Date;
  listeners: NestedListener[];
}

/** Ids under the keys of a task's `created_resources`. */
type CreatedListeners = CreatedPool & { listeners: string[] };

/** All errors but those of `nestedReferenceErrors`. `family`: of the load balancer. */
export function nestedErrors(listeners: NestedListener[], family: VipFamily, rule: MemberRule): FieldError[] {
  const address = family === 'ipv6' ? '::' : '0.0.0.0';
  const plans = listeners.map(planOf);
  return [
    ...portErrors(plans.map((plan) => plan.settings)),
    ...plans.flatMap(({ settings, pools, path }) => [
      ...listenerErrors(settings, path),
      ...pools.flatMap((pool) => [
        ...poolErrors(pool.settings, [settings.protocol], address, pool.path),
        ...memberListErrors(pool.members, pool.settings, `${pool.path}members.`, rule),
      ]),
    ]),
  ];
}

function planOf(body: NestedListener, i: number) {
  const path = `listeners.${i}.`;
  const pools = (body.pools ?? []).map((pool, j) => ({
    settings: newPoolSettings(pool),
    members: (pool.members ?? []).map(newMemberSettings),
    path: `${path}pools.${j}.`,
  }));
  return { settings: newListenerSettings(body), pools, path };
}

/** Unknown secrets and subnets; the known secrets are held until the transaction ends. */
export function nestedReferenceErrors(
  secrets: SecretsForUse,
  tx: Tx,
  scope: Scope,
  listeners: NestedListener[],
): Promise<FieldError[]> {
  const plans = listeners.map(planOf);
  const allPools = plans.flatMap((plan) => plan.pools);
  return referenceErrors(tx, secrets, scope, {
    secrets: [
      ...plans.flatMap(({ settings, path }) => listenerSecrets(settings, null, path)),
      ...allPools.flatMap(({ settings, path }) => poolSecrets(settings, null, path)),
    ],
    subnets: allPools.flatMap(({ members, path }) => memberSubnets(members, [], `${path}members.`)),
  });
}

/** Call when `nestedErrors` and `nestedReferenceErrors` found none, in the transaction that inserts the load balancer. */
export async function insertNested(
  { insert: insertPool }: Pick<Pools, 'insert'>,
  tx: Tx,
  { scope, loadBalancerId, creatorTaskId, now, listeners }: NestedListeners,
): Promise<CreatedListeners> {
  const created: CreatedListeners = { listeners: [], pools: [], members: [], healthmonitors: [] };
  const { projectId, regionId } = scope;
  for (const [i, { settings, pools }] of listeners.map(planOf).entries()) {
    // Lists are in the order of creation, so each listener gets a millisecond of its own.
    const createdAt = new Date(now.getTime() + i);
    const place = { projectId, regionId, loadBalancerId, creatorTaskId, createdAt };
    let defaultPoolId: string | null = null;
    for (const pool of pools) {
      const ids = await insertPool(tx, { ...place, settings: pool.settings, members: pool.members });
      for (const [key, added] of Object.entries(ids)) created[key as keyof CreatedPool].push(...added);
      defaultPoolId = ids.pools[0]!;
    }
    const listener = newListener({ ...place, settings, defaultPoolId });
    await store.insert(tx, listener);
    created.listeners.push(listener.id);
  }
  return created;
}

export function newListener({
  settings,
  ...place
}: NewPart & { settings: ListenerSettings; defaultPoolId: string | null }): ListenerRow {
  return {
    id: randomUUID(),
    ...place,
    ...settings,
    provisioningStatus: 'PENDING_CREATE',
    operatingStatus: 'OFFLINE',
    deletedAt: null,
  };
}
