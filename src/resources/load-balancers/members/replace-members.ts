/**
 * Pure: what becomes of a pool's members when a client gives a new sequence. A member is its address and port: whoever is
 * in both sequences stays the same row, whatever else is said of it, so that the host keeps its connections and counters.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { MemberSettings } from '../pools/settings.ts';
import type { MemberRow } from '../pools/store.ts';

export interface SequenceChange {
  /** All members afterwards, in order. */
  members: MemberRow[];
  /** Those among them that are new or differ from their row. */
  written: MemberRow[];
  /** Ids of rows that go. */
  removed: string[];
}

export function endpointOf(member: Pick<MemberSettings, 'address' | 'protocolPort'>): string {
  return `${member.address} ${member.protocolPort}`;
}

/** `wanted` names no endpoint twice (checks.ts). */
export function changeSequence(poolId: string, present: MemberRow[], wanted: MemberSettings[]): SequenceChange {
  const rows = new Map(present.map((member) => [endpointOf(member), member]));
  const members = wanted.map((settings, position): MemberRow => {
    const row = rows.get(endpointOf(settings));
    return row ? { ...row, ...settings, position } : newMember(poolId, settings, position);
  });
  const staying = new Set(members.map((member) => member.id));
  return {
    members,
    written: members.filter((member) => !isDeepStrictEqual(member, rows.get(endpointOf(member)))),
    removed: present.filter((member) => !staying.has(member.id)).map((member) => member.id),
  };
}

/** OFFLINE until the proxy says something of it. */
export function newMember(poolId: string, settings: MemberSettings, position: number): MemberRow {
  return { id: randomUUID(), poolId, position, operatingStatus: 'OFFLINE', ...settings };
}
