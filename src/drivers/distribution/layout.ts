/**
 * Where everything of the driver lies. The folders below `v2` are distribution's own: links in `repositories`, named by
 * digest, and the bytes that they stand for in `blobs`. The only place that puts a name into a path, and so the place
 * that refuses one that could climb out.
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

export interface Layout {
  root: string;
  /** What distribution calls its root directory. */
  storage: string;
  repositories: string;
  blobs: string;
  /** Blobs that nothing referred to when they were last looked at. */
  trash: string;
  quarantine: string;
  /** What was taken out of service for good, on its way to nothing. */
  removed: string;
  /** Where `closed` is. */
  marks: string;
  /** Logs and pids of distribution and of the gate. */
  distribution: string;
  /** What distribution reads: configuration and certificate. */
  configuration: string;
  /** Its temporary files. */
  temporary: string;
  /** Where distribution listens, for the gate alone. */
  socket: string;
  /** What the gate writes. */
  gate: string;
  /** Bytes of unfinished uploads by registry, as the gate last counted them. */
  uploads: string;
  registry(prefix: string): string;
  repository(prefix: string, name: string): string;
  blob(digest: string): string;
  /** A file that is there when the registry was removed lately. */
  closed(prefix: string): string;
  trashed(digest: string): string;
}

const PREFIX = /^[a-z0-9][-a-z0-9]{0,62}$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const TAG = /^\w[\w.-]{0,127}$/;

export function layoutOf(dataDir: string): Layout {
  return layoutIn(join(resolve(dataDir), 'registries'));
}

/**
 * The gate enters the folder before it gives up root and then works with `.`: its account cannot reach the folders above
 * by a path. `runtime` is for what lies outside.
 */
export function layoutIn(root: string, runtime = runtimeFolder(root)): Layout {
  const folder = (name: string) => join(root, name);
  const v2 = 'storage/docker/registry/v2';
  const registry = (prefix: string) => folder(`${v2}/repositories/${checked(PREFIX, prefix)}`);
  return {
    root,
    storage: folder('storage'),
    repositories: folder(`${v2}/repositories`),
    blobs: folder(`${v2}/blobs/sha256`),
    trash: folder('trash'),
    quarantine: folder('quarantine'),
    removed: folder('removed'),
    marks: folder('closed'),
    distribution: folder('distribution'),
    configuration: runsAsRoot() ? join(runtime, 'distribution') : folder('distribution'),
    temporary: runsAsRoot() ? join(runtime, 'distribution/tmp') : folder('distribution/tmp'),
    socket: runsAsRoot() ? join(runtime, 'distribution/tmp/http.sock') : folder('distribution/http.sock'),
    gate: folder('gate'),
    uploads: folder('gate/uploads.json'),
    closed: (prefix) => folder(`closed/${checked(PREFIX, prefix)}`),
    registry,
    repository: (prefix, name) => join(registry(prefix), checked(REPOSITORY, name)),
    blob: (digest) => folder(`${v2}/blobs/sha256/${hexOf(digest).slice(0, 2)}/${hexOf(digest)}`),
    trashed: (digest) => folder(`trash/${hexOf(digest)}`),
  };
}

export function hexOf(digest: string): string {
  return checked(DIGEST, digest).slice('sha256:'.length);
}

export function isDigest(text: unknown): text is string {
  return typeof text === 'string' && DIGEST.test(text);
}

/** A prefix and a repository, as distribution takes them. */
export function isName(name: string): boolean {
  return name.length <= 255 && REPOSITORY.test(name) && PREFIX.test(name.split('/', 1)[0]!);
}

export function checkedTag(name: string): string {
  return checked(TAG, name);
}

function checked(pattern: RegExp, text: string): string {
  if (pattern.test(text)) return text;
  throw new DriverError(`not a name in a registry: ${JSON.stringify(text)}`, {
    customerMessage: 'The registry refused this.',
    retryable: false,
  });
}

export async function makeFolders(layout: Layout): Promise<void> {
  const { root, repositories, blobs, trash, quarantine, removed, marks, distribution } = layout;
  await mkdir(root, { recursive: true });
  // Images are for who has a token, not for other users of this host.
  await chmod(root, 0o700);
  for (const folder of [repositories, blobs]) await mkdir(folder, { recursive: true });
  for (const folder of [trash, quarantine, removed, marks]) {
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o700);
  }
  await mkdir(distribution, { recursive: true, mode: 0o700 });
  const account = accountFor('registry');
  if (account) makeRuntimeFolder(runtimeFolder(root));
  makeReadableFolder(layout.configuration, account);
  makePrivateFolder(layout.temporary, account);
  makeReadableFolder(marks, account);
  makePrivateFolder(layout.gate, account);
  // The gate, under this account, enters it; the folders in it are closed each by itself.
  makeEnterableFolder(root, account);
}

/** The names in a folder; none when there is no such folder. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

/** Whether anything was ever pushed to this host. */
export async function hasRegistries(dataDir: string): Promise<boolean> {
  const { repositories } = layoutOf(dataDir);
  return existsSync(repositories) && (await readdir(repositories)).length > 0;
}
