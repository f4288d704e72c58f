/** The hosts that serve a load balancer, as `vrrp_ips`. */
import type { Db } from '../../platform/db.ts';
import { addressGroupName, addressGroupOf } from '../../platform/address-groups.ts';
import { hostsOfRegion } from '../../hosts/store.ts';
import type { RegionFacts } from '../regions/service.ts';
import type { LoadBalancer } from './schema.ts';
import type { LoadBalancerRow } from './table.ts';

/** A host that can serve now. */
export interface Instance {
  address: string;
  /** The groups that it holds. */
  heldGroups: readonly string[];
}

/** Ordered by name. Null: the region has one host. */
export async function instancesOf(db: Db, { id, hosted }: RegionFacts): Promise<Instance[] | null> {
  if (!hosted) return null;
  const rows = await hostsOfRegion(db, id);
  return rows
    .filter(({ leaseValid, converged }) => leaseValid && converged)
    .map(({ address, report }) => ({ address, heldGroups: report.heldGroups }));
}

/** One host: its address is that of the load balancer. Several: the one that has the address is MASTER. */
export function vrrpIps(
  row: Pick<LoadBalancerRow, 'vipAddress' | 'vipSubnetId'>,
  { hosted }: Pick<RegionFacts, 'hosted'>,
  instances: Instance[] | null,
): LoadBalancer['vrrp_ips'] {
  const subnet_id = row.vipSubnetId;
  if (!hosted || !instances) return [{ ip_address: row.vipAddress, role: 'STANDALONE', subnet_id }];
  const group = addressGroupOf(row.vipAddress, hosted);
  const name = group === null ? null : addressGroupName(group);
  return instances.map(({ address, heldGroups }) => ({
    ip_address: address,
    role: name !== null && heldGroups.includes(name) ? ('MASTER' as const) : ('BACKUP' as const),
    subnet_id,
  }));
}
