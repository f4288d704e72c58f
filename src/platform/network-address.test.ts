import { describe, expect, it } from 'vitest';
import { canonicalAddress, canonicalNetwork, isInNetworks, lowestFreeAddress } from './network-address.ts';

describe('the lowest free address of a network', () => {
  it('is neither its first nor its last address, nor one that is taken', () => {
    expect(lowestFreeAddress('127.64.0.0/16', new Set())).toBe('127.64.0.1');
    expect(lowestFreeAddress('127.64.0.0/16', new Set(['127.64.0.1', '127.64.0.3']))).toBe('127.64.0.2');
    expect(lowestFreeAddress('10.0.0.0/30', new Set(['10.0.0.1']))).toBe('10.0.0.2');
    expect(lowestFreeAddress('10.0.0.0/30', new Set(['10.0.0.1', '10.0.0.2']))).toBeNull();
  });

  it('counts across byte boundaries', () => {
    expect(lowestFreeAddress('10.0.254.0/23', new Set([...every('10.0.254'), ...every('10.0.255')]))).toBeNull();
    expect(lowestFreeAddress('10.0.0.0/8', new Set(every('10.0.0')))).toBe('10.0.1.0');
    expect(lowestFreeAddress('250.0.0.0/8', new Set())).toBe('250.0.0.1');
  });

  it('of a network of one or two addresses may be any of them', () => {
    expect(lowestFreeAddress('10.0.0.4/31', new Set())).toBe('10.0.0.4');
    expect(lowestFreeAddress('10.0.0.4/31', new Set(['10.0.0.4']))).toBe('10.0.0.5');
    expect(lowestFreeAddress('10.0.0.4/32', new Set())).toBe('10.0.0.4');
    expect(lowestFreeAddress('10.0.0.4/32', new Set(['10.0.0.4']))).toBeNull();
  });
});

describe('a network', () => {
  it.each([
    ['10.0.0.0/8', '10.0.0.0/8', '::ffff:10.0.0.0/104', '::FFFF:a00:0/104'],
    ['1.2.3.4/32', '1.2.3.4', '::ffff:1.2.3.4', '::ffff:1.2.3.4/128'],
    ['0.0.0.0/0', '::ffff:0:0/96'],
    ['2001:db8::/32', '2001:DB8:0::/32'],
  ])('has one canonical form: %s', (canonical, ...spellings) => {
    expect(spellings.map(canonicalNetwork)).toEqual(spellings.map(() => canonical));
  });

  it.each(['10.0.0.1/8', '::ffff:10.0.0.1/104', '::ffff:10.0.0.0/95', '10.0.0.0/33', '10.0.0.0/8/8', 'x', ''])(
    'is not %s',
    (text) => expect(canonicalNetwork(text)).toBeNull(),
  );
});

describe('an address', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3', '::ffff:10.1.2.3', '::FFFF:a01:203', '::10.1.2.3'],
    ['2001:db8::1', '2001:DB8:0:0::1', '2001:0db8::0001'],
    ['::1', '0:0::1'],
    ['::', '0::0'],
  ])('has one canonical form: %s', (canonical, ...spellings) => {
    expect(spellings.map(canonicalAddress)).toEqual(spellings.map(() => canonical));
  });

  it.each([
    ['10.1.2.3', '10.0.0.0/8', '10.1.2.0/23', '10.1.2.3', '0.0.0.0/0', '::ffff:10.0.0.0/104'],
    ['fd00:1::1', 'fd00::/8', 'fd00:1::/33', 'fd00:1::1/128', '::/0'],
  ])('is in networks: %s', (address, ...networks) => {
    for (const network of networks) expect([network, isInNetworks(address, [network])]).toEqual([network, true]);
  });

  it.each([
    ['10.1.2.3', '10.2.0.0/15', '10.1.2.4/30', '::/0', '10.1.2.2'],
    ['fd00:1::1', 'fd00:2::/32', '0.0.0.0/0', 'fd00:1:8000::/33', 'fd00:1::1:0/112'],
  ])('is not in others: %s', (address, ...networks) => {
    for (const network of networks) expect([network, isInNetworks(address, [network])]).toEqual([network, false]);
  });
});

function every(prefix: string): string[] {
  return Array.from({ length: 256 }, (_, i) => `${prefix}.${i}`);
}
