/** For tests: a region as the first of its hosts sees it. */
import type { HostView, RegionView } from '../../hosts/part.ts';

export function viewOf(names: string[], changes: Record<string, Partial<HostView>> = {}): RegionView {
  const hosts = names.map((name, at) => ({
    ...{
      name,
      address: `10.77.0.${11 + at}`,
      interface: 'lo',
      state: 'active' as const,
      leaseValid: true,
      converged: true,
    },
    ...changes[name],
  }));
  return {
    ...{ regionId: 1, vipRange: '10.77.1.0/24', vipRangeV6: 'fd00:77:0:1::/64', storage: null, self: names[0]!, hosts },
    settings: {
      ...{ nfsAddresses: [], apiAddress: '10.77.3.1', registryAddress: 'fd00:77:3::1' },
      ...{ addressGroups: 6, virtualRouterId: 100, leaseSeconds: 3 },
    },
  };
}
