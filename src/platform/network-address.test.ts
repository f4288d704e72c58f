import { describe, expect, it } from 'vitest';
import { lowestFreeAddress } from './network-address.ts';

describe('the lowest free address of a network', () => {
  it('is none of its ends, and none that is taken', () => {
    expect(lowestFreeAddress('127.64.0.0/16', new Set())).toBe('127.64.0.1');
    expect(lowestFreeAddress('127.64.0.0/16', new Set(['127.64.0.1', '127.64.0.3']))).toBe('127.64.0.2');
    expect(lowestFreeAddress('10.0.0.0/30', new Set(['10.0.0.1']))).toBe('10.0.0.2');
    expect(lowestFreeAddress('10.0.0.0/30', new Set(['10.0.0.1', '10.0.0.2']))).toBeNull();
  });

  it('counts over the borders of bytes', () => {
    expect(lowestFreeAddress('10.0.254.0/23', new Set([...every('10.0.254'), ...every('10.0.255')]))).toBeNull();
    expect(lowestFreeAddress('10.0.0.0/8', new Set(every('10.0.0')))).toBe('10.0.1.0');
    expect(lowestFreeAddress('250.0.0.0/8', new Set())).toBe('250.0.0.1');
  });

  it('of one that is nothing but its ends is one of them', () => {
    expect(lowestFreeAddress('10.0.0.4/31', new Set())).toBe('10.0.0.4');
    expect(lowestFreeAddress('10.0.0.4/31', new Set(['10.0.0.4']))).toBe('10.0.0.5');
    expect(lowestFreeAddress('10.0.0.4/32', new Set())).toBe('10.0.0.4');
    expect(lowestFreeAddress('10.0.0.4/32', new Set(['10.0.0.4']))).toBeNull();
  });
});

function every(prefix: string): string[] {
  return Array.from({ length: 256 }, (_, i) => `${prefix}.${i}`);
}
