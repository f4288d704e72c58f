/** The programs that the real drivers need on this host, for `doctor`. */
import { movingAddressPrograms } from '../drivers/keepalived/detect.ts';
import type { HostProgram } from '../drivers/kind.ts';
import { hostDriverKinds } from '../drivers/kinds.ts';
import { nfsGroupPrograms } from '../drivers/nfs-groups/detect.ts';
import { pathOf } from '../drivers/programs.ts';
import { hostedRegion } from '../resources/regions/host-configuration.ts';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { hasNfsGroups } from './host-parts.ts';
import type { Settings } from './settings.ts';

interface FoundProgram {
  name: string;
  package: string;
  /** Null: missing. */
  path: string | null;
}

/** Each program once, also if several drivers need it. Those for several hosts only if a region has them. */
export function findPrograms(regions: RegionConfiguration[], settings: Settings): FoundProgram[] {
  const hosted = regions.map(hostedRegion).filter((region) => region !== null);
  const hasStorage = regions.some(({ storage }) => storage);
  const { fileShare, ...others } = hostDriverKinds;
  const programs: HostProgram[] = [
    ...(hosted.some((region) => hasNfsGroups(region, settings)) ? nfsGroupPrograms : fileShare.programs),
    ...Object.values(others).flatMap((kind: { programs: HostProgram[]; storagePrograms?: HostProgram[] }) =>
      hasStorage && kind.storagePrograms ? kind.storagePrograms : kind.programs,
    ),
    ...(hosted.length > 0 ? movingAddressPrograms : []),
  ];
  const unique = new Map(programs.map((each) => [each.name, each]));
  return [...unique.values()].map((each) => ({ name: each.name, package: each.package, path: pathOf(each) }));
}
