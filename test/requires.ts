/**
 * Requirements of tests on real programs. If a program is missing, its tests are skipped with a message. CI must have all
 * of them, so a skip fails there. Add a part here, then use `describe.skipIf(!requires('part'))`.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const parts = {
  root: [],
  'nfs-ganesha': ['ganesha.nfsd'],
  rpcbind: ['rpcbind', 'rpcinfo'],
  'libnfs-utils': ['nfs-ls', 'nfs-cp', 'nfs-cat'],
  xfsprogs: ['mkfs.xfs', 'xfs_growfs'],
  e2fsprogs: ['mkfs.ext4', 'debugfs'],
  postgresql: ['initdb', 'postgres'],
  haproxy: ['haproxy'],
  patroni: ['patroni'],
  etcd: ['etcd'],
  nginx: ['nginx'],
  'iputils-ping': ['ping'],
  openssl: ['openssl'],
  age: ['age', 'age-keygen'],
  lego: ['lego'],
  prometheus: ['promtool'],
  // Not a package of Debian: go install github.com/letsencrypt/pebble/v2/cmd/{pebble,pebble-challtestsrv}@v2.8.0
  pebble: ['pebble', 'pebble-challtestsrv'],
  'docker-registry': ['docker-registry'],
  skopeo: ['skopeo'],
  'python3-aiosmtpd': ['aiosmtpd'],
  'qemu-utils': ['qemu-img'],
  'chromium-headless-shell': ['chromium-headless-shell'],
  iproute2: ['ip', 'ss'],
  keepalived: ['keepalived'],
  'util-linux': ['unshare'],
  nftables: ['nft'],
  curl: ['curl'],
  jq: ['jq'],
  mmdebstrap: ['mmdebstrap'],
  lintian: ['lintian'],
  systemd: ['systemd-analyze', 'systemd-notify'],
  binutils: ['strip'],
  groff: ['groff'],
  podman: ['podman'],
  ceph: ['ceph-mon', 'ceph-mgr', 'ceph-osd', 'ceph-authtool', 'setpriv'],
  'ceph-mds': ['ceph-mds'],
  'nfs-ganesha-ceph': ['../lib/x86_64-linux-gnu/ganesha/libfsalceph.so'],
  'iputils-arping': ['arping'],
  'ceph-fuse': ['ceph-fuse'],
} as const satisfies Record<string, string[]>;

type Part = keyof typeof parts;

/** The reason to skip tests that need these parts, for their name; null if they can run. */
export function skipReason(...needed: Part[]): string | null {
  if (needed.includes('root') && process.getuid?.() !== 0) return 'skipped: this needs root';
  const missing = needed.find((part) => !parts[part].every(isInstalled));
  return missing ? `skipped: ${missing} is not installed` : null;
}

/** Whether all parts are available. If not, prints the reason, or throws in CI. */
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

/** Debian installs them by version outside PATH. Returns the oldest supported version, because the embedded one is new. */
export function postgresPrograms(): string | null {
  const above = '/usr/lib/postgresql';
  const versions = existsSync(above) ? readdirSync(above).map(Number) : [];
  const [oldest] = versions.filter((version) => version >= 15).sort((a, b) => a - b);
  return oldest === undefined ? null : join(above, String(oldest), 'bin');
}
