/** The real drivers of a region by where its data is: the data directory of the worker's host, or a Ceph cluster. */
import { createCephBridge } from './ceph/bridge.ts';
import { cephPrograms } from './ceph/detect.ts';
import { createCephMount } from './ceph/mount.ts';
import { createCephVolumeDriver } from './ceph/volume-driver.ts';
import { createDiskDriver } from './disk/driver.ts';
import { findDistribution, type DistributionFinding } from './distribution/detect.ts';
import type { SharedRegistries } from './distribution/driver.ts';
import type { Detection, DriverContext, RegionStorage } from './kind.ts';
import { findProgram, missingOf, packagesOf } from './programs.ts';
import type { VolumeDriver } from './volume.ts';

export interface VolumeSettings {
  driver: 'auto' | 'disk' | 'simulated' | 'ceph';
  /** Null: the data directory. */
  storage: RegionStorage | null;
}

/** Runs no program: it only checks which files exist. */
export const detectVolumes = ({ storage }: VolumeSettings): Detection<VolumeDriver> =>
  storage ? detectCephVolumes(storage) : detectDisk();

const detectDisk = (): Detection<VolumeDriver> => ({
  driver: 'disk',
  detail: 'raw images in the data directory; snapshots are reflinks where its filesystem supports them',
  create: ({ dataDir }) => createDiskDriver({ dataDir }),
});

function detectCephVolumes({ conf, user, pool }: RegionStorage): Detection<VolumeDriver> {
  const missing = packagesOf(missingOf(cephPrograms));
  if (missing.length > 0) {
    const detail = `the storage of the region is Ceph, and ${missing.join(' and ')} is not installed`;
    return { driver: 'ceph', detail, remedy: `sudo apt-get install ${missing.join(' ')}`, create: null };
  }
  return {
    driver: 'ceph',
    detail: `images in the Ceph pool ${pool}, as client.${user} of ${conf}`,
    create: ({ log, diskReserve }) =>
      createCephVolumeDriver({ bridge: createCephBridge({ conf, user, log }), pool, diskReserve, log }),
  };
}

/** As `findDistribution`, for a region whose images are in a CephFS. */
export function findSharedDistribution(): DistributionFinding {
  if (findProgram('ceph-fuse')) return findDistribution();
  return {
    distribution: null,
    detail: 'the storage of the region is Ceph, and ceph-fuse is not installed',
    remedy: 'sudo apt-get install ceph-fuse',
  };
}

/** One directory for the registries of the region. */
export function sharedRegistries(
  { conf, user, filesystem }: RegionStorage,
  { hostName, log }: Pick<DriverContext, 'hostName' | 'log'>,
): SharedRegistries {
  return {
    replica: hostName,
    mount: (places) => createCephMount({ conf, user, filesystem, subvolume: 'registries', log, ...places }),
  };
}
