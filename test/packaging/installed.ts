/** Installs the npm package into an empty folder as npm does, without a network. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Packed } from '../../packaging/npm-package.ts';
import { productionPackages } from '../../packaging/production-packages.ts';
import { root } from '../../src/platform/program-files.ts';

/** Node 24 before the machine's own, which may be older. */
export const pinnedPath = `${join(root, 'node_modules', 'node', 'bin')}:${process.env['PATH']}`;

/** An empty folder that every account can enter, because root runs PostgreSQL as another account. */
export function emptyFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cloudyard-package-')));
  chmodSync(folder, 0o755);
  return folder;
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
    // Another filesystem. The first attempt leaves folders behind, into which `cp` would copy.
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', from, to], { stdio: 'pipe' });
  }
}
