import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MemberSettings, newMemberSettings } from './normalize.ts';
import { endpointOf, newMember, replaceMembers } from './replacement.ts';

const settings = fc
  .record({
    address: fc.constantFrom('10.0.0.1', '10.0.0.2', '::1'),
    protocol_port: fc.constantFrom(80, 81, 82),
    weight: fc.constantFrom(1, 2),
    backup: fc.boolean(),
  })
  .map((body): MemberSettings => newMemberSettings(body));
const pool = { id: 'pool', healthMonitor: null };
const sequence = fc.uniqueArray(settings, { selector: endpointOf, maxLength: 9 });

describe('replacing the members of a pool', () => {
  it('returns the new list, keeps the rows of members in both lists, and writes only differences', () => {
    fc.assert(
      fc.property(sequence, sequence, (before, next) => {
        const present = before.map((member, position) => newMember(pool, member, position));
        const rowOf = new Map(present.map((row) => [endpointOf(row), row]));
        const { members, written, removed } = replaceMembers(pool, present, next);

        expect(members).toMatchObject(next.map((member, position) => ({ ...member, position })));
        for (const row of members) {
          const was = rowOf.get(endpointOf(row));
          if (was) expect([row.id, row.operatingStatus]).toEqual([was.id, was.operatingStatus]);
          else expect(present.some(({ id }) => id === row.id)).toBe(false);
        }
        const kept = new Set(next.map(endpointOf));
        expect(removed).toEqual(present.filter((row) => !kept.has(endpointOf(row))));
        // The writes produce the new list, and a repetition writes nothing.
        const rows = new Map(present.filter((row) => !removed.includes(row)).map((row) => [row.id, row]));
        for (const row of written) rows.set(row.id, row);
        const after = [...rows.values()].sort((a, b) => a.position - b.position);
        expect(after).toEqual(members);
        expect(replaceMembers(pool, after, next)).toEqual({ members, written: [], removed: [] });
      }),
    );
  });
});
