/** Pure: the differences between two specs, for the log. Members are separate: the runtime API reports their changes. */
import { isDeepStrictEqual } from 'node:util';
import { addressesOf } from '../load-balancer.ts';
import type { Spec } from './specs.ts';

/** `before` undefined: the load balancer is new; `after` null: it is removed. */
export function changesOf(before: Spec | undefined, after: Spec | null): string[] {
  if (!before) return after ? ['created'] : [];
  if (!after) return ['removed'];
  const changed = String(addressesOf(before)) === String(addressesOf(after)) ? [] : ['address changed'];
  if (before.enabled !== after.enabled) changed.push(after.enabled ? 'enabled' : 'disabled');
  const bare = (pools: Spec['pools']) => pools.map((pool) => ({ ...pool, members: [] }));
  return [
    ...changed,
    ...listChanges('listener', before.listeners, after.listeners),
    ...listChanges('pool', bare(before.pools), bare(after.pools)),
  ];
}

function listChanges<T extends { id: string }>(kind: string, before: T[], after: T[]): string[] {
  const old = new Map(before.map((each) => [each.id, each]));
  const kept = new Set(after.map(({ id }) => id));
  const changed = after.flatMap((each) => {
    const previous = old.get(each.id);
    if (!previous) return [`${kind} ${each.id} added`];
    return isDeepStrictEqual(previous, each) ? [] : [`${kind} ${each.id} changed`];
  });
  return [...changed, ...before.filter(({ id }) => !kept.has(id)).map(({ id }) => `${kind} ${id} removed`)];
}

/** For the simulated driver and UDP, which have no runtime API. */
export function memberChanges(
  before: Spec,
  after: Spec,
  of: (pool: Spec['pools'][number]) => boolean = () => true,
): string[] {
  const members = ({ pools }: Spec) => pools.filter(of).flatMap((pool) => pool.members);
  return listChanges('member', members(before), members(after));
}
