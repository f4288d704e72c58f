/**
 * The root directory that NFS-Ganesha runs in. Over NFSv3 it passes names with slashes to the kernel (measured with 4.3;
 * version 6 has the same code), and over both versions it opens any file of a filesystem that it sees by a file handle
 * that a client makes up. So nothing is in this root that such a name or handle could harm.
 *
 * Invariants:
 * - No filesystem of the host is in it. Programs and libraries are read-only overlays, everything else is on a ramfs;
 *   neither opens files by handle. The filesystems of the shares are the only ones that do.
 * - Each share has a mount of its own under a name that nobody can guess, and the folder above cannot be listed: neither
 *   `/exports/<name>` nor `../<name>` leads to another share.
 * - What Ganesha writes (its pid and recovery files) is under such a name too; all else but /tmp is read-only.
 *
 * The root exists in a mount namespace of Ganesha's own, which keeps no other mount of the host: one that stayed would
 * hold its device. Mounts of shares reach it by propagation from `runtime/exports`, so shares come and go without
 * touching Ganesha.
 *
 * Failure modes: a kernel without overlayfs or mount namespaces keeps Ganesha from starting; its log says so.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.ts';
import type { Command } from '../confined.ts';
import { writeDurably } from '../durable-files.ts';
import type { Layout } from './layout.ts';
import { mounts } from './mounts.ts';

/** Paths as Ganesha sees them. */
export interface Seen {
  configuration: string;
  state: string;
  share(id: string): string;
}

export interface Jail {
  seen: Seen;
  /** Makes the folders that outlive Ganesha. Call before anything else. */
  prepare(): Promise<void>;
  /** Empties the one folder in which clients could leave something, so that Ganesha finds room there. */
  tidy(): Promise<void>;
  /** Shows the mounted filesystem of a share to Ganesha. */
  show(id: string): Promise<void>;
  /** The share must not be exported any more. */
  hide(id: string): Promise<void>;
  /** The same command inside the root. The process keeps its pid. */
  enter(command: Command): Command;
  /** Once Ganesha is gone. */
  close(): Promise<void>;
}

const RUNTIME_DEVICE = 'cloudyard-ganesha';
/** Ganesha creates a file to test locks, and removes it. Clients can create files there over NFSv3, so it is small. */
const TMP_OPTIONS = 'size=64k,nr_inodes=64,mode=1777,nosuid,nodev,noexec';

/**
 * $1 the folder to build in, $2 the runtime folder, $3 the name of the state folder; then the command. /etc/mtab tells
 * Ganesha which filesystems there are.
 */
const BUILD = `set -e
root=$1 runtime=$2 state=$3
shift 3
mount -t ramfs -o mode=0755,nosuid,nodev cloudyard-root "$root"
cd "$root"
mkdir empty host proc etc tmp configuration exports "$state"
for folder in bin sbin lib lib32 lib64 libx32 usr; do
  if [ -L "/$folder" ]; then cp -P "/$folder" "$folder"
  elif [ -d "/$folder" ]; then
    mkdir "$folder"
    mount -t overlay -o "ro,nosuid,nodev,lowerdir=/$folder:$root/empty" overlay "$folder"
  fi
done
for file in ld.so.cache passwd group nsswitch.conf hosts host.conf services protocols rpc netconfig localtime; do
  if [ -e "/etc/$file" ]; then cat "/etc/$file" > "etc/$file"; fi
done
: > etc/mtab
mount --bind "/proc/$$/mounts" etc/mtab
mount --bind "$runtime/configuration" configuration
mount -o remount,bind,ro,nosuid,nodev,noexec configuration
mount --bind "$runtime/state" "$state"
mount --bind "$runtime/tmp" tmp
mount --rbind "$runtime/exports" exports
mount --make-rslave exports
mount -o remount,bind,ro,nosuid,nodev,noexec exports
mount --bind /proc proc
pivot_root . host
cd /
umount -l /host
rmdir host
mount -o remount,ro,nosuid,nodev /
umount -l /proc
exec "$@"`;

export function createJail(layout: Layout): Jail {
  const [keyFile, tmp] = [join(layout.root, 'names.key'), join(layout.runtime, 'tmp')];
  let key: string | undefined;
  const nameOf = (what: string) => {
    key ??= readFileSync(keyFile, 'utf8');
    return createHmac('sha256', key).update(what).digest('hex').slice(0, 32);
  };
  const stateName = () => `state-${nameOf('state')}`;
  const shown = (id: string) => join(layout.runtime, 'exports', nameOf(id));
  return {
    seen: {
      configuration: '/configuration',
      get state() {
        return `/${stateName()}`;
      },
      share: (id) => `/exports/${nameOf(id)}`,
    },
    async prepare() {
      await mkdir(layout.jail, { recursive: true });
      await mkdir(layout.runtime, { recursive: true });
      try {
        nameOf('state');
      } catch {
        await writeDurably(keyFile, randomBytes(32).toString('hex'));
      }
      if ((await mounts()).get(layout.runtime) !== RUNTIME_DEVICE) {
        await run('mount', ['-t', 'ramfs', '-o', 'mode=0700,nosuid,nodev,noexec', RUNTIME_DEVICE, layout.runtime]);
        await run('mount', ['--make-shared', layout.runtime]);
      }
      for (const folder of ['configuration', 'state/recovery', 'exports', 'tmp']) {
        await mkdir(join(layout.runtime, folder), { recursive: true, mode: 0o700 });
      }
      if (!(await mounts()).has(tmp)) await run('mount', ['-t', 'tmpfs', '-o', TMP_OPTIONS, RUNTIME_DEVICE, tmp]);
    },
    async tidy() {
      for (const name of await readdir(tmp)) await rm(join(tmp, name), { recursive: true, force: true });
    },
    async show(id) {
      const [path, found] = [shown(id), await mounts()];
      if (found.get(path) === found.get(layout.mount(id))) return;
      // A mount of something else: the image was removed and created again while the old one was busy.
      if (found.has(path)) await run('umount', ['-l', path]);
      await mkdir(path, { recursive: true, mode: 0o700 });
      await run('mount', ['--bind', layout.mount(id), path]);
    },
    async hide(id) {
      const path = shown(id);
      if ((await mounts()).has(path)) await run('umount', ['-l', path]);
      await rmdir(path).catch(() => undefined);
    },
    enter: ({ file, args }) => ({
      file: 'unshare',
      args: [
        ...['--mount', '--propagation', 'slave', '/bin/sh', '-c', BUILD, 'ganesha'],
        ...[layout.jail, layout.runtime, stateName(), file, ...args],
      ],
    }),
    async close() {
      if ((await mounts()).get(layout.runtime) === RUNTIME_DEVICE) await run('umount', ['-l', layout.runtime]);
    },
  };
}
