/**
 * The files of the built console: an index in memory, and the contents on disk.
 *
 * Invariant: only files of the index are opened, so no path of a request reaches the file system.
 *
 * Failure modes: without a build the index is null. A new build replaces the folder; the index follows within a second.
 */
import { hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import type { Encoding, Variants } from './content-negotiation.ts';

export interface ConsoleFile extends Variants<string> {
  type: string;
  /** Whether the name contains a hash of the contents. */
  isImmutable: boolean;
  /** Absolute paths, by encoding. */
  variants: Variants<string>['variants'] & { identity: string };
}

/** By path relative to the folder, with `/`. */
type ConsoleIndex = Map<string, ConsoleFile>;

export const startPage = 'index.html';

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.woff2': 'font/woff2',
};

const encodings: Record<string, Encoding> = { '.br': 'br', '.gz': 'gzip' };

/** Vite writes the files whose names contain a hash here. */
const hashedFolder = 'assets/';

const checkMs = 1000;

/** Returns a function that resolves with the current index; null without a build. */
export function createConsoleIndex(folder: string): () => Promise<ConsoleIndex | null> {
  let index: Promise<ConsoleIndex | null> = Promise.resolve(null);
  let version: string | null = null;
  let checkedAt = -Infinity;

  const check = async () => {
    const current = await versionOf(folder);
    if (current === version) return;
    version = current;
    index = current === null ? Promise.resolve(null) : readIndex(folder);
    // The build replaced the folder meanwhile: the next check reads it again.
    index = index.catch(() => (version = null));
  };

  return async () => {
    const now = performance.now();
    if (now - checkedAt >= checkMs) {
      checkedAt = now;
      await check();
    }
    return index;
  };
}

/** Changes with every build; null without one. */
async function versionOf(folder: string): Promise<string | null> {
  const start = await stat(join(folder, startPage), { bigint: true }).catch(() => null);
  return start && `${start.ino} ${start.mtimeNs}`;
}

async function readIndex(folder: string): Promise<ConsoleIndex> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const known = new Set(files);
  const originals = files.filter((file) => types[extname(file)] !== undefined);
  const described = originals.map(async (file): Promise<[string, ConsoleFile]> => {
    const path = relative(folder, file).split(sep).join('/');
    return [path, await describe(path, file, known)];
  });
  return new Map(await Promise.all(described));
}

async function describe(path: string, file: string, known: Set<string>): Promise<ConsoleFile> {
  const contents = await readFile(file);
  const variants: ConsoleFile['variants'] = { identity: file };
  for (const [extension, encoding] of Object.entries(encodings)) {
    const compressed = file + extension;
    if (known.has(compressed)) variants[encoding] = compressed;
  }
  return {
    type: types[extname(file)]!,
    tag: hash('sha256', contents, 'base64url').slice(0, 22),
    isImmutable: path.startsWith(hashedFolder),
    variants,
  };
}
