/**
 * Listeners and pools that come with a new load balancer: the same checks as for those that come alone, with paths such
 * as `listeners.0.pools.0.members.1.address`.
 */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../../authz/actor.ts';
import { invalidInput } from '../../../errors/catalogue.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { MemberRule } from '../../../platform/member-networks.ts';
import { memberFaults, settingFaults as poolFaults } from '../pools/checks.ts';
import { referenceFaults, secretsWanted as secretsOfPool, subnetsWanted } from '../pools/references.ts';
import type { SecretsForUse } from '../pools/references.ts';
import type { LbPools } from '../pools/service.ts';
import { memberSettings, newSettings as newPoolSettings } from '../pools/settings.ts';
import { samePort, secretsWanted, settingFaults } from './checks.ts';
import type { NestedListener } from './schema.ts';
import { newSettings } from './settings.ts';
import type { ListenerSettings } from './settings.ts';
import * as store from './store.ts';

export interface NestedDeps {
  secrets: SecretsForUse;
  lbPools: Pick<LbPools, 'insert'>;
}

export interface Nested {
  scope: Scope;
  loadBalancerId: string;
  creatorTaskId: string;
  now: Date;
  listeners: NestedListener[];
}

/** Ids under the keys of a task's `created_resources`. */
export type CreatedNested = Record<'listeners' | 'pools' | 'members' | 'healthmonitors', string[]>;

/** Everything that is wrong by itself; what is unknown, `insertNested` tells. */
export function checkNested(listeners: NestedListener[], rule: MemberRule): FieldError[] {
  const plans = listeners.map(planOf);
  return plans.flatMap(({ settings, pools, path }, i) => {
    const first = plans.findIndex((other) => samePort(other.settings, settings));
    const taken = { path: `${path}protocol_port`, message: `is that of listeners.${first}, too` };
    return [
      ...settingFaults(settings, path),
      ...(first < i ? [taken] : []),
      ...pools.flatMap((pool) => [
        ...poolFaults(pool.settings, [settings.protocol], pool.path),
        ...memberFaults(pool.members, pool.settings, `${pool.path}members`, rule),
      ]),
    ];
  });
}

function planOf(body: NestedListener, i: number) {
  const path = `listeners.${i}.`;
  const pools = (body.pools ?? []).map((pool, j) => ({
    settings: newPoolSettings(pool),
    members: (pool.members ?? []).map(memberSettings),
    path: `${path}pools.${j}.`,
  }));
  return { settings: newSettings(body), pools, path };
}

/**
 * For a load balancer that is inserted in the same transaction, after `checkNested`.
 * @throws ClientError 400 naming every secret and subnet that is unknown
 */
export async function insertNested({ secrets, lbPools }: NestedDeps, tx: Tx, nested: Nested): Promise<CreatedNested> {
  const { scope, loadBalancerId, creatorTaskId, now } = nested;
  const plans = nested.listeners.map(planOf);
  const pools = plans.flatMap((plan) => plan.pools);
  const faults = await referenceFaults(tx, secrets, scope, {
    secrets: [
      ...plans.flatMap(({ settings, path }) => secretsWanted(settings, null, path)),
      ...pools.flatMap(({ settings, path }) => secretsOfPool(settings, null, path)),
    ],
    subnets: pools.flatMap(({ members, path }) => subnetsWanted(members, [], `${path}members`)),
  });
  if (faults.length > 0) throw invalidInput(faults);
  const created: CreatedNested = { listeners: [], pools: [], members: [], healthmonitors: [] };
  const { projectId, regionId } = scope;
  for (const [i, { settings, pools }] of plans.entries()) {
    // Lists are in the order of making, so no two are of the same millisecond.
    const createdAt = new Date(now.getTime() + i);
    const placed = { projectId, regionId, loadBalancerId, creatorTaskId, createdAt };
    let defaultPoolId: string | null = null;
    for (const pool of pools) {
      const made = await lbPools.insert(tx, { ...placed, settings: pool.settings, members: pool.members });
      for (const [key, ids] of Object.entries(made)) created[key as keyof CreatedNested].push(...ids);
      defaultPoolId = made.pools[0]!;
    }
    const listener = newListener({ ...placed, settings, defaultPoolId });
    await store.insert(tx, listener);
    created.listeners.push(listener.id);
  }
  return created;
}

type Placed = Pick<
  store.ListenerRow,
  'projectId' | 'regionId' | 'loadBalancerId' | 'creatorTaskId' | 'createdAt' | 'defaultPoolId'
>;

export function newListener({ settings, ...placed }: Placed & { settings: ListenerSettings }): store.ListenerRow {
  return {
    id: randomUUID(),
    ...placed,
    ...settings,
    provisioningStatus: 'PENDING_CREATE',
    operatingStatus: 'OFFLINE',
    deletedAt: null,
  };
}
