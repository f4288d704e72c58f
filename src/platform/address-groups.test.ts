import { expect, it } from 'vitest';
import { addressGroupOf } from './address-groups.ts';

const region = { vipRange: '10.77.1.0/24', vipRangeV6: 'fd00:77::/64', settings: { addressGroups: 12 } };

it.each([
  ['10.77.1.0', 0],
  ['10.77.1.13', 1],
  ['10.77.1.255', 3],
  ['fd00:77::d', 1],
  ['fd00:77::ffff:ffff:ffff:ffff', 3],
  ['10.77.2.1', null],
  ['fd00:78::1', null],
])('puts %s in the group %s', (address, group) => {
  expect(addressGroupOf(address, region)).toBe(group);
});

it('has no group without a range', () => {
  expect(addressGroupOf('fd00:77::1', { ...region, vipRangeV6: null })).toBeNull();
});
