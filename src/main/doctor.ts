/** Says what this host has of the real parts, what is missing, and the line that installs it. */
import { findDistribution } from '../drivers/distribution/detect.ts';
import { egressGap } from '../drivers/egress-filter.ts';
import { findGanesha, thisHost, withoutFolders } from '../drivers/ganesha/detect.ts';
import { findHaproxy, thisHost as hostOfLoadBalancers } from '../drivers/haproxy/detect.ts';
import { driverTable } from './start-table.ts';

interface PartOfHost {
  what: string;
  /** Where it is; null: missing. */
  found: string | null;
  package: string;
}

/** The programs that drivers run, with the Debian packages that bring them. */
function parts(): PartOfHost[] {
  const host = thisHost();
  const program = (name: string, from: string): PartOfHost => ({
    what: name,
    found: host.program(name),
    package: from,
  });
  return [
    program('ganesha.nfsd', 'nfs-ganesha'),
    { what: 'VFS plugin of Ganesha', found: host.vfsPlugin, package: 'nfs-ganesha-vfs' },
    program('mkfs.xfs', 'xfsprogs'),
    program('xfs_growfs', 'xfsprogs'),
    program('mount', 'mount'),
    program('losetup', 'mount'),
    program('rpcbind', 'rpcbind'),
    program('haproxy', 'haproxy'),
    program('nginx', 'nginx-light'),
    { what: 'stream module of nginx', found: hostOfLoadBalancers().streamModule, package: 'libnginx-mod-stream' },
    program('ping', 'iputils-ping'),
    program('docker-registry', 'docker-registry'),
    program('setpriv', 'util-linux'),
    program('nft', 'nftables'),
  ];
}

export async function doctor(): Promise<void> {
  const ganesha = withoutFolders(findGanesha());
  const haproxy = findHaproxy();
  const distribution = findDistribution();
  const gap = await egressGap();
  const all = parts();
  const missing = [...new Set(all.filter((part) => !part.found).map((part) => part.package))];
  const lines = [
    'Programs that make resources real:',
    ...all.map((part) => `  ${part.what.padEnd(22)} ${part.found ?? `missing (package ${part.package})`}`),
    '',
    missing.length > 0 ? `To install what is missing: apt-get install ${missing.join(' ')}` : 'Nothing is missing.',
    '',
    `Time zones of schedules: IANA ${process.versions.tz}, as Node ${process.version} brings them`,
    '',
    `Drivers on this host, as ${process.getuid?.() === 0 ? 'root' : 'this user'}:`,
    ...driverTable({
      'file shares': {
        driver: ganesha.programs ? 'ganesha' : 'simulated',
        real: ganesha.programs !== null,
        healthy: true,
        detail: ganesha.detail,
        remedy: ganesha.remedy,
      },
      'load balancers': {
        driver: haproxy.haproxy ? 'haproxy' : 'simulated',
        real: haproxy.haproxy !== null,
        healthy: true,
        detail: gap ? `${haproxy.detail}; ${gap.detail}` : haproxy.detail,
        remedy: haproxy.remedy ?? gap?.remedy,
      },
      volumes: {
        driver: 'disk',
        real: true,
        healthy: true,
        detail: 'raw images in the data directory; snapshots are reflinks where its filesystem has them',
      },
      registries: {
        driver: distribution.distribution ? 'distribution' : 'simulated',
        real: distribution.distribution !== null,
        healthy: true,
        detail: distribution.detail,
        remedy: distribution.remedy,
      },
    }),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
