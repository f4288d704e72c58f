/** Builds the console once for all browser tests, if it is not up to date: Cloudyard serves console/dist. */
import { execFileSync, type ExecFileSyncOptions } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../../src/platform/program-files.ts';

export default function buildConsole(): void {
  // Vitest sets NODE_ENV, with which React would be its development build.
  const env = { ...process.env, NODE_ENV: 'production' };
  const options: ExecFileSyncOptions = { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] };
  execFileSync(process.execPath, [join(root, 'bin', 'console-build.mjs')], options);
}
