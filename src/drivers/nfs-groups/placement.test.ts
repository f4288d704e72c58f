import { describe, expect, it } from 'vitest';
import { hostsBefore, isOverloaded, type Placement } from './placement.ts';

const hosts = ['h1', 'h2', 'h3'];
const groups = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];
const placed = (self: string, holders: (string | null)[], eligible = hosts): Placement => ({
  self,
  eligible,
  holders: new Map(groups.map((group, at) => [group, holders[at] ?? null])),
});
const ranks = (group: string, holders: (string | null)[], previous: string | null = null, eligible = hosts) =>
  hosts.map((self) => hostsBefore(group, placed(self, holders, eligible), previous)?.length ?? null);

describe('the placement of NFS groups', () => {
  it('spreads free groups over the hosts', () => {
    expect(groups.map((group) => ranks(group, []).indexOf(0))).toEqual([0, 1, 2, 0]);
  });

  it('gives every host another rank', () => {
    for (const group of groups) expect([...ranks(group, ['h1', 'h2'])].sort()).toEqual([0, 1, 2]);
  });

  it('prefers hosts that hold fewer groups', () => {
    expect(ranks('10.0.0.4', ['h1', 'h1', 'h2'])).toEqual([2, 1, 0]);
  });

  it('prefers every other host to the one whose lock expired', () => {
    expect(ranks('10.0.0.1', [null, 'h2', 'h3'], 'h1')[0]).toBe(2);
  });

  it('leaves groups to hosts that may hold them', () => {
    expect(ranks('10.0.0.1', [], null, ['h2', 'h3'])).toEqual([null, 0, 1]);
  });

  it('moves a group when another host holds two fewer', () => {
    expect(isOverloaded(placed('h1', ['h1', 'h1', 'h2', 'h3']))).toBe(false);
    expect(isOverloaded(placed('h1', ['h1', 'h1', 'h2', null]))).toBe(true);
    expect(isOverloaded(placed('h1', ['h1', 'h1', 'h2', null], ['h1', 'h2']))).toBe(false);
  });
});
