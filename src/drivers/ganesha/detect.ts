/**
 * Detects what this host can do for file shares, before anything is started. `findGanesha` is a pure function of `HostFacts`.
 *
 * It checks capabilities instead of the uid, because root in a container may lack some. Measured with Ganesha 4.3: without
 * CAP_DAC_READ_SEARCH the VFS plugin starts and exports, but every client gets NFS4ERR_PERM (open_by_handle_at), also in a
 * user namespace (`unshare -Ur`); Debian's other plugins need a cluster or keep files in memory. So without it shares cannot
 * be served at all, while without CAP_SYS_ADMIN only their size is not enforced.
 */
import { existsSync, readdirSync } from 'node:fs';
import { runChildSync } from '../../platform/child-process.ts';
import { readOrEmpty } from '../../platform/read-or-empty.ts';
import { findProgram } from '../programs.ts';

export interface HostFacts {
  /** The path of a program, or null. */
  program(name: string): string | null;
  vfsPlugin: string | null;
  /** Effective capabilities, as in /proc/self/status. */
  capabilities: bigint;
  loopDevices: boolean;
}

export interface GaneshaPrograms {
  ganesha: string;
  rpcbind: string | null;
}

export interface GaneshaFinding {
  /** Null: this host can only simulate file shares. */
  programs: GaneshaPrograms | null;
  /**
   * Whether each share is its own filesystem. Otherwise its `size` is not enforced, and a client of any share can open every
   * file of the filesystem of the data directory with a forged file handle.
   */
  sizeEnforced: boolean;
  detail: string;
  remedy?: string;
}

const INSTALL_GANESHA = 'apt-get install nfs-ganesha nfs-ganesha-vfs xfsprogs rpcbind && npm start';

const CAPABILITY = { CHOWN: 0n, DAC_OVERRIDE: 1n, DAC_READ_SEARCH: 2n, SETGID: 6n, SETUID: 7n, SYS_ADMIN: 21n };
const TO_SERVE: (keyof typeof CAPABILITY)[] = ['CHOWN', 'DAC_OVERRIDE', 'DAC_READ_SEARCH', 'SETGID', 'SETUID'];
const asFolders = 'shares are plain folders (no size limit, and every client can open all files of this host)';
const IMAGE_PROGRAMS = ['mkfs.xfs', 'xfs_growfs', 'mount', 'umount', 'losetup'];

/** `programs` of the result is null if shares cannot be served at all; `remedy` is a command. */
export function findGanesha(host: HostFacts = thisHost()): GaneshaFinding {
  const ganesha = host.program('ganesha.nfsd');
  if (!ganesha) return absent('NFS-Ganesha is not installed', INSTALL_GANESHA);
  if (!host.vfsPlugin) {
    return absent("NFS-Ganesha's VFS plugin is not installed", 'apt-get install nfs-ganesha-vfs && npm start');
  }
  const lacking = TO_SERVE.filter((name) => !has(host, name));
  if (lacking.length > 0) {
    return absent(`NFS-Ganesha cannot serve files without CAP_${lacking.join(', CAP_')}`, 'sudo npm start');
  }
  const programs = { ganesha, rpcbind: host.program('rpcbind') };

  const missing = IMAGE_PROGRAMS.filter((name) => !host.program(name));
  if (missing.length > 0) {
    const detail = `${asFolders}, because ${missing.join(', ')} is not installed`;
    return { programs, sizeEnforced: false, detail, remedy: 'apt-get install xfsprogs mount && npm start' };
  }
  if (!has(host, 'SYS_ADMIN') || !host.loopDevices) {
    const detail = `${asFolders}, because this process cannot mount loop devices (a container needs --privileged)`;
    return { programs, sizeEnforced: false, detail, remedy: 'sudo modprobe loop && sudo npm start' };
  }
  return { programs, sizeEnforced: true, detail: 'NFS shares served by NFS-Ganesha, each an XFS image of its size' };
}

/** For `auto`, which never uses plain folders: only an operator can choose them. */
export function withoutFolders(finding: GaneshaFinding): GaneshaFinding {
  if (finding.sizeEnforced || !finding.programs) return finding;
  const detail = `not served, unless CLOUDYARD_FILE_SHARE_DRIVER=ganesha accepts it: ${finding.detail}`;
  return absent(detail, finding.remedy ?? INSTALL_GANESHA);
}

function absent(detail: string, remedy: string): GaneshaFinding {
  return { programs: null, sizeEnforced: false, detail, remedy };
}

function has(host: HostFacts, name: keyof typeof CAPABILITY): boolean {
  return ((host.capabilities >> CAPABILITY[name]) & 1n) === 1n;
}

function thisHost(): HostFacts {
  return {
    program: findProgram,
    vfsPlugin: vfsPlugin(),
    capabilities: effectiveCapabilities(),
    loopDevices: existsSync('/dev/loop-control'),
  };
}

/** The path of Ganesha's VFS plugin, or null. */
export const vfsPlugin = () => findPlugin('libfsalvfs.so');

/** The path of Ganesha's CephFS plugin, or null. */
export const cephPlugin = () => findPlugin('libfsalceph.so');

/**
 * The port of a service as libc finds it; null: it does not, because /etc/services is missing (Debian package netbase, which minimal
 * installations and containers lack). Then Ganesha cannot register NFSv3 with rpcbind, and exits.
 */
export function portOfService(name: string): string | null {
  try {
    return runChildSync('getent', ['services', name]).split(/\s+/)[1] ?? null;
  } catch (error) {
    // Without getent it may be known.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'unknown' : null;
  }
}

/** The service of rpcbind. */
export const portOfRpcbind = () => portOfService('sunrpc');

function findPlugin(name: string): string | null {
  return (
    pluginFolders()
      .map((folder) => `${folder}/${name}`)
      .find(existsSync) ?? null
  );
}

function pluginFolders(): string[] {
  const multiarch = existsSync('/usr/lib') ? readdirSync('/usr/lib').map((name) => `/usr/lib/${name}/ganesha`) : [];
  return ['/usr/lib/ganesha', '/usr/lib64/ganesha', ...multiarch];
}

function effectiveCapabilities(): bigint {
  const hex = /^CapEff:\s*([0-9a-f]+)$/m.exec(readOrEmpty('/proc/self/status'))?.[1];
  return hex ? BigInt(`0x${hex}`) : 0n;
}
