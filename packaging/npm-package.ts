/** The npm package: its build, and its tarball with the same bytes for the same files. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../src/platform/program-files.ts';

export interface Packed {
  /** The tarball. */
  file: string;
  /** Paths in the package, sorted. */
  contents: string[];
}

export function buildPackage(): void {
  execFileSync('npm', ['run', '-s', 'build'], { cwd: root, stdio: 'pipe', env: npmEnvironment() });
}

/** Packs the files of a finished build. */
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

/** npm runs under the machine's Node, as for a user, and not as a part of the script that called this one. */
function npmEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|VITEST|CLOUDYARD_)/.test(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
