/**
 * Tests on real programs of the host. A machine that lacks one skips them and says why; CI has to have them all, so
 * there a skip is a failure. Add a part here, then `describe.skipIf(!requires('part'))`.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const parts = {
  root: [],
  'nfs-ganesha': ['ganesha.nfsd'],
  'libnfs-utils': ['nfs-ls', 'nfs-cp', 'nfs-cat'],
  xfsprogs: ['mkfs.xfs', 'xfs_growfs'],
  postgresql: ['initdb', 'postgres'],
  haproxy: ['haproxy'],
  nginx: ['nginx'],
  'iputils-ping': ['ping'],
  openssl: ['openssl'],
  'docker-registry': ['docker-registry'],
  skopeo: ['skopeo'],
  'python3-aiosmtpd': ['aiosmtpd'],
  'qemu-utils': ['qemu-img'],
  iproute2: ['ip'],
  'util-linux': ['unshare'],
  nftables: ['nft'],
} as const satisfies Record<string, string[]>;

export type Part = keyof typeof parts;

/** Why tests that need these parts cannot run here, for their name; null when they can. */
export function skipReason(...needed: Part[]): string | null {
  if (needed.includes('root') && process.getuid?.() !== 0) return 'skipped: this needs root';
  const missing = needed.find((part) => !parts[part].every(isInstalled));
  return missing ? `skipped: ${missing} is not installed` : null;
}

/** True when all are there. Otherwise prints why and returns false; throws where CI is set. */
export function requires(...needed: Part[]): boolean {
  const reason = skipReason(...needed);
  if (!reason) return true;
  if (process.env['CI']) throw new Error(`${reason}, and CI must not skip tests`);
  console.warn(reason);
  return false;
}

function isInstalled(program: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const found = [...folders, postgresPrograms() ?? ''];
  return found.some((folder) => folder && existsSync(`${folder}/${program}`));
}

/** Debian keeps them out of PATH, by version. The oldest that Cloudyard works with: the embedded one is new. */
export function postgresPrograms(): string | null {
  const above = '/usr/lib/postgresql';
  const versions = existsSync(above) ? readdirSync(above).map(Number) : [];
  const [oldest] = versions.filter((version) => version >= 15).sort((a, b) => a - b);
  return oldest === undefined ? null : join(above, String(oldest), 'bin');
}
