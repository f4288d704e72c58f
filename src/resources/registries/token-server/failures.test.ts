import { expect, it } from 'vitest';
import { createFailures, limits } from './failures.ts';

const failures = () => createFailures({ now: () => new Date('2026-11-20T10:00:00Z') });
const times = (count: number, work: (i: number) => void) => Array.from({ length: count }, (_, i) => work(i));

it('counts the failures of one IPv6 network together', () => {
  const { record, retryAfter } = failures();
  times(limits.pair, (i) => record(['ci'], `2001:db8:1:2::${i + 1}`));
  expect(retryAfter('ci', '2001:db8:1:2:ffff::7')).toBe(60);
  expect(retryAfter('ci', '2001:db8:1:3::1')).toBeNull();
});

it('counts a name after a flood of others', () => {
  const { record, retryAfter } = failures();
  times(60_000, (i) => record([`flood${i}`], `198.51.${i >> 8}.${i & 255}`));
  times(limits.pair, () => record(['ci'], '192.0.2.1'));
  expect(retryAfter('ci', '192.0.2.1')).toBe(60);
});

it('counts a request once for its address, whatever number of names it has', () => {
  const { record, retryAfter } = failures();
  record(['ci'], '192.0.2.1');
  const names = Array.from({ length: 20 }, (_, i) => `ci of ${i}`);
  times(limits.pair, () => record(names, '192.0.2.1'));
  expect(retryAfter('ci of 7', '192.0.2.1')).toBe(60);
  expect(retryAfter('ci', '192.0.2.1')).toBeNull();
  times(limits.address, (i) => record([`n${i}`], '192.0.2.1'));
  expect(retryAfter('ci', '192.0.2.1')).toBe(60);
});
