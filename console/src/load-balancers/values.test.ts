import { describe, expect, it } from 'vitest';
import type { LoadBalancer } from './data.ts';
import { addressesOf } from './values.ts';

const addresses = (vip_address: string | null, ...others: string[]) =>
  addressesOf({ vip_address, additional_vips: others.map((ip_address) => ({ ip_address })) } as LoadBalancer);

describe('the addresses of a load balancer', () => {
  it('are one, two of the family dual, and none before it has one', () => {
    expect(addresses('10.0.0.1')).toEqual(['10.0.0.1']);
    expect(addresses('10.0.0.1', 'fd00::1')).toEqual(['10.0.0.1', 'fd00::1']);
    expect(addresses(null)).toEqual([]);
  });
});
