/** What a host needs to serve NFS groups, and what the region's worker needs to create their shares. */
import { bindingOf, cephPrograms } from '../ceph/detect.ts';
import { cephPlugin } from '../ganesha/detect.ts';
import type { HostProgram } from '../kind.ts';
import { findProgram, missingOf, packagesOf } from '../programs.ts';

/** Debian's nfs-ganesha-ceph installs nfs-ganesha, too. */
const packageName = 'nfs-ganesha-ceph';

export const nfsGroupPrograms: HostProgram[] = [
  { name: 'ganesha.nfsd', package: packageName },
  { name: 'Ceph plugin of Ganesha', package: packageName, find: cephPlugin },
  { name: 'arping', package: 'iputils-arping' },
  ...cephPrograms,
  bindingOf('cephfs'),
];

/** Returns the path of ganesha.nfsd. @throws Error if a package is missing */
export function requireGanesha(): string {
  const missing = missingOf(nfsGroupPrograms);
  const program = findProgram('ganesha.nfsd');
  if (program && missing.length === 0) return program;
  throw new Error(`file shares need packages: apt-get install ${packagesOf(missing).join(' ')}`);
}
