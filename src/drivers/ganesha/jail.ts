/**
 * Builds the root directory that NFS-Ganesha runs in. Over NFSv3 Ganesha passes names with slashes to the kernel (measured
 * with 4.3; version 6 has the same code), and over NFSv3 and NFSv4 it opens any file of a visible filesystem by a forged file
 * handle. So the root contains nothing that such a name or handle could harm.
 *
 * Invariants:
 * - The root contains no filesystem of the host. Programs and libraries are read-only overlays, and everything else is on a
 *   ramfs; neither supports file handles. Only the filesystems of the shares do.
 * - Each share is mounted under a name that cannot be guessed, in a folder that cannot be listed, so neither
 *   `/exports/<name>` nor `../<name>` reaches another share.
 * - The files that Ganesha writes (pid and recovery files) are under such a name, too. Everything else except /tmp is
 *   read-only.
 *
 * The root is in a separate mount namespace, which contains no other mount of the host: such a mount would keep its device
 * busy. Mounts of shares propagate into it from `runtime/exports`, so shares can be added and removed while Ganesha runs.
 *
 * Failure modes: without overlayfs or mount namespaces in the kernel, Ganesha does not start; its log says why.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.ts';
import type { Command } from '../confined.ts';
import { sizeOf, writeDurably } from '../durable-files.ts';
import { emptyFolder } from '../../platform/empty-folder.ts';
import type { Layout } from './layout.ts';
import { mounts } from './mounts.ts';

const RUNTIME_DEVICE = 'cloudyard-ganesha';
/** Ganesha creates a file to test locks. Clients can create files there over NFSv3, so it is small. */
const TMP_OPTIONS = 'size=64k,nr_inodes=64,mode=1777,nosuid,nodev,noexec';

/**
 * Arguments: the folder to build in, the runtime folder, the name of the state folder, the command. Ganesha reads the list of
 * filesystems from /etc/mtab.
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

/** Changes nothing before `prepare`. */
export function createJail(layout: Layout) {
  const [keyFile, tmp] = [join(layout.root, 'names.key'), join(layout.runtime, 'tmp')];
  let key: string | undefined;
  const nameOf = (what: string) => {
    key ??= readFileSync(keyFile, 'utf8');
    return createHmac('sha256', key).update(what).digest('hex').slice(0, 32);
  };
  const stateName = () => `state-${nameOf('state')}`;
  const mountPoint = (id: string) => join(layout.runtime, 'exports', nameOf(id));
  return {
    /** Paths as Ganesha sees them. */
    seen: {
      configuration: '/configuration',
      get state() {
        return `/${stateName()}`;
      },
      share: (id: string) => `/exports/${nameOf(id)}`,
    },
    /** Creates the folders that outlive Ganesha. Call it first. */
    async prepare(): Promise<void> {
      await mkdir(layout.jail, { recursive: true });
      await mkdir(layout.runtime, { recursive: true });
      // Never replaced: with other names, a Ganesha that runs would lose its shares.
      if ((await sizeOf(keyFile)) === null) await writeDurably(keyFile, randomBytes(32).toString('hex'));
      if ((await mounts()).get(layout.runtime) !== RUNTIME_DEVICE) {
        await run('mount', ['-t', 'ramfs', '-o', 'mode=0700,nosuid,nodev,noexec', RUNTIME_DEVICE, layout.runtime]);
        await run('mount', ['--make-shared', layout.runtime]);
      }
      for (const folder of ['configuration', 'state/recovery', 'exports', 'tmp']) {
        await mkdir(join(layout.runtime, folder), { recursive: true, mode: 0o700 });
      }
      if (!(await mounts()).has(tmp)) await run('mount', ['-t', 'tmpfs', '-o', TMP_OPTIONS, RUNTIME_DEVICE, tmp]);
    },
    /** Empties /tmp, the only folder in which clients can create files, so that Ganesha has space there. */
    emptyTmp: () => emptyFolder(tmp),
    /** Makes the mounted filesystem of a share visible to Ganesha. */
    async mount(id: string): Promise<void> {
      const [path, found] = [mountPoint(id), await mounts()];
      if (found.get(path) === found.get(layout.mount(id))) return;
      // Another mount: the image was removed and created again while the old one was busy.
      if (found.has(path)) await run('umount', ['-l', path]);
      await mkdir(path, { recursive: true, mode: 0o700 });
      await run('mount', ['--bind', layout.mount(id), path]);
    },
    /** The share must not be exported any more. */
    async unmount(id: string): Promise<void> {
      const path = mountPoint(id);
      if ((await mounts()).has(path)) await run('umount', ['-l', path]);
      await rmdir(path).catch(() => undefined);
    },
    /** Returns the command that runs this one inside the root, with the same pid. */
    enter: ({ file, args }: Command): Command => ({
      file: 'unshare',
      args: [
        ...['--mount', '--propagation', 'slave', '/bin/sh', '-c', BUILD, 'ganesha'],
        ...[layout.jail, layout.runtime, stateName(), file, ...args],
      ],
    }),
    /** Call it after Ganesha has ended. */
    async close(): Promise<void> {
      if ((await mounts()).get(layout.runtime) === RUNTIME_DEVICE) await run('umount', ['-l', layout.runtime]);
    },
  };
}

export type Jail = ReturnType<typeof createJail>;
