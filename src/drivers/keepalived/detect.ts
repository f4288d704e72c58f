/** What a host needs to hold addresses that move. */
import type { HostProgram } from '../kind.ts';

export const movingAddressPrograms: HostProgram[] = [
  { name: 'keepalived', package: 'keepalived' },
  { name: 'nft', package: 'nftables' },
  { name: 'ip', package: 'iproute2' },
];
