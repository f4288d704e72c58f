/** Builds the npm package once, and installs it into an empty folder as npm does, without a network. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { productionPackages } from '../../packaging/production-packages.ts';
import { root } from '../../src/main/root.ts';

/** Node 24 before the machine's own, which may be older. */
export const pinnedPath = `${join(root, 'node_modules', 'node', 'bin')}:${process.env['PATH']}`;

interface Packed {
  /** The tarball. */
  file: string;
  /** Paths in the package, sorted. */
  contents: string[];
}

/** An empty folder that every account can enter, because root runs PostgreSQL as another account. */
export function emptyFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cloudyard-package-')));
  chmodSync(folder, 0o755);
  return folder;
}

export function buildPackage(): void {
  execFileSync('npm', ['run', '-s', 'build'], { cwd: root, stdio: 'pipe', env: npmEnvironment() });
}

export function pack(folder: string): Packed {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const output = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: 'pipe', env: npmEnvironment() });
  const report = JSON.parse(output) as Record<string, PackReport> | PackReport[];
  const [{ filename, files }] = Object.values(report) as [PackReport];
  return { file: join(folder, filename), contents: files.map(({ path }) => path).sort() };
}

interface PackReport {
  filename: string;
  files: { path: string }[];
}

/** The dependencies are hard links to those of the checkout, in the places where npm puts them. */
export function install({ file }: Packed, folder: string): void {
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  for (const { path } of productionPackages(root).filter(({ path: each }) => !each.includes('/node_modules/'))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    link(join(root, path), join(folder, path));
  }
  mkdirSync(join(modules, 'cloudyard'));
  execFileSync('tar', ['-xzf', file, '-C', join(modules, 'cloudyard'), '--strip-components=1', '--no-same-owner']);
  symlinkSync('../cloudyard/bin/cloudyard.mjs', join(modules, '.bin', 'cloudyard'));
}

function link(from: string, to: string): void {
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'pipe' });
  } catch {
    // Another filesystem.
    execFileSync('cp', ['-a', from, to], { stdio: 'pipe' });
  }
}

/** npm runs under the machine's Node, as for a user, and not as a part of `npm test`. */
function npmEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|VITEST|CLOUDYARD_)/.test(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
