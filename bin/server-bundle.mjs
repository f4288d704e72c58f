/**
 * The bundle that runs in place of the sources of a checkout: it is ready in two thirds of the time and takes 17 MB less
 * (docs/decisions/0053-bundle.md). The first command after a change of the sources makes it, in a second.
 *
 * Invariant: a bundle is that of the sources as they are now. Its folder is named after their names, times and sizes.
 *
 * Failure modes: a checkout whose bundle cannot be made (no bundler, node_modules of another user or checkout, a fault in a source) has none.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { modified } from './directory-lock.mjs';
import { modulesAreShared, ownsModules, root, runNode } from './installed.mjs';

const bundles = join(root, 'node_modules', '.cache', 'server-bundle');
const bundler = join(root, 'bin', 'bundle.mjs');
/** Servers that started before a change import parts of their own bundle later. */
const KEPT = 5;

/** The program, and where Node keeps its compiled code; null: there is no bundle. */
export async function serverBundle() {
  const folder = join(bundles, fingerprint());
  const found = { script: join(folder, 'main', 'cloudyard.js'), cache: join(folder, 'compiled') };
  if (existsSync(found.script)) return found;
  if (modulesAreShared() || !ownsModules() || !existsSync(join(root, 'node_modules', 'rolldown'))) return null;
  mkdirSync(bundles, { recursive: true });
  const code = await runNode(bundler, [folder, 'main/cloudyard.ts']);
  removeOldest();
  return code === 0 ? found : null;
}

function fingerprint() {
  const hash = createHash('sha256');
  const inputs = [join(root, 'package-lock.json'), bundler, ...filesIn(join(root, 'src'))];
  for (const path of inputs) {
    const { mtimeMs, size } = statSync(path);
    hash.update(`${relative(root, path)} ${mtimeMs} ${size}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return /\.(ts|json)$/.test(path) && !path.endsWith('.test.ts') ? [path] : [];
  });
}

function removeOldest() {
  const folders = readdirSync(bundles).map((name) => join(bundles, name));
  const byAge = folders.sort((a, b) => (modified(b) ?? 0) - (modified(a) ?? 0));
  for (const folder of byAge.slice(KEPT)) rmSync(folder, { recursive: true, force: true });
}
