/** The drivers of a region of several hosts, for `doctor`, where they are not those of a region of one host. */
import { movingAddressPrograms } from '../drivers/keepalived/detect.ts';
import type { HostProgram } from '../drivers/kind.ts';
import { hostDriverKinds } from '../drivers/kinds.ts';
import { nfsGroupPrograms } from '../drivers/nfs-groups/detect.ts';
import { missingOf, packagesOf } from '../drivers/programs.ts';
import { simulatedStatus } from '../drivers/simulated/lifecycle.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import { hostedRegion, type HostedRegion } from '../resources/regions/host-configuration.ts';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { hasNfsGroups, withoutNfsGroups, withoutStorage } from './host-parts.ts';
import type { Settings } from './settings.ts';

/** By title; of the first region of several hosts. Empty: every region has one host. */
export function detectHostedDrivers(regions: RegionConfiguration[], settings: Settings): Record<string, DriverStatus> {
  const [region] = regions.map(hostedRegion).filter((each) => each !== null);
  if (!region) return {};
  const { fileShare, volume, registry } = hostDriverKinds;
  const stored = simulatedStatus(withoutStorage(region));
  return {
    ...(settings.drivers.fileShare.driver !== 'simulated' && { [fileShare.title]: fileShares(region, settings) }),
    ...(!region.storage && { [volume.title]: stored, [registry.title]: stored }),
    addresses: statusWith(movingAddressPrograms, 'keepalived', 'addresses that move between the hosts'),
  };
}

function fileShares(region: HostedRegion, settings: Settings): DriverStatus {
  if (!region.storage || !hasNfsGroups(region, settings)) return simulatedStatus(withoutNfsGroups(region));
  const groups = region.settings.nfsAddresses.length;
  const detail = `NFSv4 exports of the CephFS ${region.storage.filesystem}, at ${groups} address${groups === 1 ? '' : 'es'}`;
  return statusWith(nfsGroupPrograms, 'ganesha', detail);
}

function statusWith(programs: HostProgram[], driver: string, detail: string): DriverStatus {
  const missing = missingOf(programs);
  if (missing.length === 0) return { driver, real: true, healthy: true, detail };
  return {
    ...{ driver, real: true, healthy: false, detail: `missing: ${missing.map(({ name }) => name).join(', ')}` },
    remedy: `sudo apt-get install ${packagesOf(missing).join(' ')}`,
  };
}
