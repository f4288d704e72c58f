/**
 * The paths of the driver. Distribution owns the folders below `v2`: `repositories` contains links, named by digest, and
 * `blobs` the bytes that they refer to.
 *
 * Invariant: only this module puts a name into a path, and it rejects names that could leave the folder.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  accountFor,
  makeEnterableFolder,
  makePrivateFolder,
  makeReadableFolder,
  makeRuntimeFolder,
  runsAsRoot,
  runtimeFolder,
} from '../confined.ts';
import { DriverError } from '../driver.ts';
import { orNone } from '../../platform/or-none.ts';
import { digestGrammar, repositoryGrammar, tagGrammar } from '../registry.ts';

export type Layout = ReturnType<typeof layoutIn>;

const PREFIX = /^[a-z0-9][-a-z0-9]{0,62}$/;
const REPOSITORY = new RegExp(`^${repositoryGrammar}$`);
const DIGEST = new RegExp(`^${digestGrammar}$`);
const TAG = new RegExp(`^${tagGrammar}$`);

/** `replica`: the name of this host, if the registries are in a directory that its hosts share; null: in the data directory. */
export function layoutOf(dataDir: string, replica: string | null = null): Layout {
  const local = join(resolve(dataDir), 'registries');
  if (replica === null) return layoutIn(local);
  const root = join(local, 'shared');
  return layoutIn(root, { runtime: runtimeFolder(root), local, replica });
}

/** Where the files of one host are, if several share the others. */
interface Places {
  /** Runtime files. */
  runtime: string;
  /** Configuration, logs and PID files. */
  local: string;
  replica: string | null;
}

/**
 * The gate enters the folder before it drops root privileges and then uses `.`: its account cannot reach the folders above
 * by a path. The folder of runtime files is outside.
 */
export function layoutIn(root: string, places: Partial<Places> = {}) {
  const { runtime = runtimeFolder(root), local = root, replica = null } = places;
  const folder = (name: string) => join(root, name);
  const own = (name: string) => join(local, name);
  const v2 = 'storage/docker/registry/v2';
  const blob = (digest: string) => folder(`${v2}/blobs/sha256/${hexOf(digest).slice(0, 2)}/${hexOf(digest)}`);
  const registry = (prefix: string) => folder(`${v2}/repositories/${checked(PREFIX, prefix)}`);
  return {
    root,
    /** The root directory of distribution. */
    storage: folder('storage'),
    repositories: folder(`${v2}/repositories`),
    blobs: folder(`${v2}/blobs/sha256`),
    /** Blobs that were unreferenced at the last scan. */
    trash: folder('trash'),
    quarantine: folder('quarantine'),
    /** Folders that are permanently out of service and being deleted. */
    removed: folder('removed'),
    /** The folder of the `closed` marks. */
    marks: folder('closed'),
    /** Logs and PID files of distribution and of the gate. */
    distribution: own('distribution'),
    /** The configuration and the certificate that distribution reads. */
    configuration: runsAsRoot() ? join(runtime, 'distribution') : own('distribution'),
    /** Temporary files of distribution. */
    temporary: runsAsRoot() ? join(runtime, 'distribution/tmp') : own('distribution/tmp'),
    /** The socket of distribution, which only the gate can reach. */
    socket: runsAsRoot() ? join(runtime, 'distribution/tmp/http.sock') : own('distribution/http.sock'),
    /** Files that the gate writes. */
    gate: folder('gate'),
    /** Bytes of unfinished uploads by registry, as the gate last counted them. */
    uploads: folder(`gate/${replica === null ? 'uploads' : `uploads-${replica}`}.json`),
    /** A file that exists if the registry was removed recently. */
    closed: (prefix: string) => folder(`closed/${checked(PREFIX, prefix)}`),
    registry,
    repository: (prefix: string, name: string) => join(registry(prefix), checked(REPOSITORY, name)),
    blob,
    /** The bytes of a blob. */
    data: (digest: string) => join(blob(digest), 'data'),
    trashed: (digest: string) => folder(`trash/${hexOf(digest)}`),
  };
}

/** The hash of a digest, without `sha256:`. @throws DriverError, permanent, if it is not a SHA-256 digest */
export function hexOf(digest: string): string {
  return checked(DIGEST, digest).slice('sha256:'.length);
}

/** Whether the text is a prefix and a repository in the syntax of distribution. */
export function isName(name: string): boolean {
  return name.length <= 255 && REPOSITORY.test(name) && PREFIX.test(name.split('/', 1)[0]!);
}

/** The tag, which may become part of a path. @throws DriverError, permanent */
export function checkedTag(name: string): string {
  return checked(TAG, name);
}

function checked(pattern: RegExp, text: string): string {
  if (pattern.test(text)) return text;
  throw new DriverError(`invalid registry, repository, tag or digest: ${JSON.stringify(text)}`, {
    customerMessage: 'the name of the registry, repository, tag or digest is invalid',
    retryable: false,
  });
}

/** Creates the folders, and corrects modes and owners of existing ones. */
export async function makeFolders(layout: Layout): Promise<void> {
  const { root, repositories, blobs, trash, quarantine, removed, marks, distribution } = layout;
  const account = accountFor('registry');
  // Images are private to holders of a token, so other users of this host cannot read them. The gate, under this account, enters
  // the root, also while this runs; each folder in it has its own permissions.
  makeEnterableFolder(root, account);
  for (const folder of [repositories, blobs]) await mkdir(folder, { recursive: true });
  for (const folder of [trash, quarantine, removed]) {
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o700);
  }
  await mkdir(distribution, { recursive: true, mode: 0o700 });
  if (account) makeRuntimeFolder(runtimeFolder(root));
  makeReadableFolder(layout.configuration, account);
  makePrivateFolder(layout.temporary, account);
  makeReadableFolder(marks, account);
  makePrivateFolder(layout.gate, account);
}

/** The names in a folder; empty if the folder does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(orNone([]));
}

/** Whether anything was ever pushed to this host. */
export async function hasRegistries(dataDir: string): Promise<boolean> {
  const { repositories } = layoutOf(dataDir);
  return existsSync(repositories) && (await readdir(repositories)).length > 0;
}
