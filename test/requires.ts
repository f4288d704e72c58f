/**
 * Tests on real programs of the host. A machine that lacks one skips them and says why; CI has to have them all, so
 * there a skip is a failure. Add a part here, then `describe.skipIf(!requires('part'))`.
 */
import { existsSync } from 'node:fs';

const parts = {
  root: [],
  'nfs-ganesha': ['ganesha.nfsd'],
  'libnfs-utils': ['nfs-ls', 'nfs-cp', 'nfs-cat'],
  xfsprogs: ['mkfs.xfs', 'xfs_growfs'],
  haproxy: ['haproxy'],
  nginx: ['nginx'],
  'docker-registry': ['docker-registry'],
  skopeo: ['skopeo'],
  'qemu-utils': ['qemu-img'],
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
  return folders.some((folder) => folder && existsSync(`${folder}/${program}`));
}
