/**
 * Pure: the members of a pool after a client sent a new list. The address and port identify a member: a member in both
 * lists keeps its row and id, so that the host keeps its connections and counters.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { MemberRow, PoolRow } from '../table.ts';
import type { MemberSettings } from './normalize.ts';

interface MemberReplacement {
  /** The new list, in order. */
  members: MemberRow[];
  /** New and changed members. */
  written: MemberRow[];
  /** The members that are not in the new list. */
  removed: MemberRow[];
}

export function endpointOf(member: Pick<MemberSettings, 'address' | 'protocolPort'>): string {
  return `${member.address} ${member.protocolPort}`;
}

type PoolOfMember = Pick<PoolRow, 'id' | 'healthMonitor'>;

/** `next` has no duplicates (validation.ts). */
export function replaceMembers(pool: PoolOfMember, current: MemberRow[], next: MemberSettings[]): MemberReplacement {
  const rows = new Map(current.map((member) => [endpointOf(member), member]));
  const members = next.map((settings, position): MemberRow => {
    const row = rows.get(endpointOf(settings));
    return row ? { ...row, ...settings, position } : newMember(pool, settings, position);
  });
  const kept = new Set(members.map((member) => member.id));
  return {
    members,
    written: members.filter((member) => !isDeepStrictEqual(member, rows.get(endpointOf(member)))),
    removed: current.filter((member) => !kept.has(member.id)),
  };
}

/** OFFLINE until the proxy reports its health, unless nothing checks it. */
export function newMember(pool: PoolOfMember, settings: MemberSettings, position: number): MemberRow {
  const isUnchecked = settings.adminStateUp && !pool.healthMonitor;
  const operatingStatus = isUnchecked ? 'NO_MONITOR' : 'OFFLINE';
  return { id: randomUUID(), poolId: pool.id, position, operatingStatus, ...settings };
}
