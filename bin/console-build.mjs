#!/usr/bin/env node
/**
 * Builds the console if its build is missing or older than its sources: `console-build.mjs [--force] [FOLDER]`. Prints one line
 * if it built. Servers in a checkout run it after their start, and `npm run console:build` runs it with `--force`.
 *
 * Invariant: `dist` is always a complete build. The new one is made beside it and then renamed, one build at a time.
 *
 * Failure modes: exit code 1 and the reason on standard error; `dist` is unchanged. Without sources (a package that contains the
 * build) and without the right to write, an existing build is kept.
 */
import { accessSync, constants, existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { main, root } from './installed.mjs';
import { modified, withLock } from './directory-lock.mjs';

const args = process.argv.slice(2);
const force = args.includes('--force');
const folder = resolve(args.find((arg) => !arg.startsWith('--')) ?? join(root, 'console'));
const dist = join(folder, 'dist');
const startPage = join(dist, 'index.html');
/** Relative to the folder, as Vite expects it. */
const [made, replaced, lock] = ['.dist-new', '.dist-old', '.building'];
const notSources = new Set(['dist', 'node_modules', made, replaced, lock]);

await main(async () => {
  if (!isDue()) return;
  actAsOwner();
  if (!isWritable()) {
    if (existsSync(startPage) && !force) return;
    throw new Error(`${folder} is not writable; run npm run console:build as its owner`);
  }
  await withLock(
    join(folder, lock),
    () => {},
    async () => {
      // Another process may have built it while this one waited.
      if (isDue()) await build();
    },
  );
});

function isDue() {
  if (force) return true;
  if (!existsSync(join(folder, 'index.html'))) return false;
  const built = modified(startPage);
  return built === null || newestSource() > built;
}

/** The modification time of the newest file that the build reads. */
function newestSource() {
  const outside = ['openapi.json', 'package-lock.json'].map((name) => modified(join(folder, '..', name)) ?? 0);
  const inside = readdirSync(folder).filter((name) => !notSources.has(name));
  return Math.max(...outside, ...inside.map((name) => newestIn(join(folder, name))));
}

function newestIn(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) return stats?.mtimeMs ?? 0;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => newestIn(join(path, name))));
}

async function build() {
  const started = new Date();
  // The server that started this build has precedence.
  if (getPriority() < 10) setPriority(10);
  const { build: viteBuild } = await import('vite');
  const outDir = made;
  await viteBuild({ root: folder, configLoader: 'native', logLevel: 'error', build: { outDir, emptyOutDir: true } });
  const index = join(folder, made, 'index.html');
  // A source that changes during the build is newer than the build.
  utimesSync(index, started, started);
  rmSync(join(folder, replaced), { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, join(folder, replaced));
  renameSync(join(folder, made), dist);
  rmSync(join(folder, replaced), { recursive: true, force: true });
  console.log(`built the console in ${((Date.now() - started.getTime()) / 1000).toFixed(1)} s`);
}

/** Files of root would make the owner's next build fail. */
function actAsOwner() {
  const { uid, gid } = statSync(folder);
  if (process.getuid?.() !== 0 || uid === 0) return;
  process.setgroups([]);
  process.setgid(gid);
  process.setuid(uid);
}

function isWritable() {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
