/**
 * The bundle that runs in place of the sources of a checkout: it is ready in three quarters of the time and takes 17 MB less
 * (docs/decisions/0053-bundle.md). The first command after a change of the sources makes it, in a second.
 *
 * Invariant: a bundle is that of the sources as they are now. Its folder is named after their names, times and sizes.
 *
 * Failure modes: if the bundle cannot be made (no bundler, a checkout that is read-only or of another user, an error in a source, a full
 * disk), `serverBundle` returns null, and the sources run. A signal that ends the bundler ends this process.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { join, relative } from 'node:path';
import { modified } from './directory-lock.mjs';
import { isOwn, root, runNode } from './installed.mjs';

/** Not in node_modules, which an upgrade replaces while servers run. */
const bundles = join(root, '.server-bundle');
const bundler = join(root, 'bin', 'bundle.mjs');
/** Besides those that run: processes of another container are not in /proc. */
const KEPT = 5;
/** Ctrl-C and the end of a terminal or service. A bundler that the kernel kills for memory has another code. */
const interruptions = [system.signals.SIGINT, system.signals.SIGTERM, system.signals.SIGHUP].map(
  (signal) => 128 + signal,
);

/** The program, and where Node keeps its compiled code; null: the bundle cannot be made, and the sources run. */
export async function serverBundle() {
  const folder = join(bundles, fingerprint());
  const found = { script: join(folder, 'main', 'cloudyard.js'), cache: join(folder, 'compiled') };
  if (existsSync(found.script)) return found;
  if (!isOwn(root) || !existsSync(join(root, 'node_modules', 'rolldown')) || !canWrite()) return null;
  const code = await runNode(bundler, [folder, 'main/cloudyard.ts']);
  if (interruptions.includes(code)) process.exit(code);
  if (code !== 0) console.error('cloudyard: the bundle could not be made; the sources run');
  removeOldest();
  return code === 0 ? found : null;
}

function canWrite() {
  try {
    mkdirSync(bundles, { recursive: true });
    accessSync(bundles, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function fingerprint() {
  const hash = createHash('sha256');
  const inputs = [join(root, 'package-lock.json'), bundler, ...filesIn(join(root, 'src'))];
  for (const path of inputs) {
    // A source may be removed meanwhile.
    const { mtimeMs, size } = statSync(path, { throwIfNoEntry: false }) ?? {};
    hash.update(`${relative(root, path)} ${mtimeMs} ${size}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    // Names with a dot at the start are of editors.
    return /^[^.].*\.(ts|json)$/.test(entry.name) && !path.endsWith('.test.ts') ? [path] : [];
  });
}

/** Servers that started before a change import parts of their own bundle later, and start processes of it. */
function removeOldest() {
  const running = commandLines();
  const age = (name) => modified(join(bundles, name)) ?? 0;
  const names = readdirSync(bundles).sort((a, b) => age(b) - age(a));
  for (const name of names.slice(KEPT)) {
    if (running.some((line) => line.includes(name))) continue;
    try {
      rmSync(join(bundles, name), { recursive: true, force: true });
    } catch {
      // Another process removes it, or writes to it. The next bundle tries again.
    }
  }
}

/** Those of all processes of this machine. */
function commandLines() {
  const processes = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return processes.map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      // It has ended.
      return '';
    }
  });
}
