/** Fails fast tests that start a program. Importing test/requires.ts moves a test to another group (test-files.ts). */
import child, { ChildProcess } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

function refuse(): never {
  throw new Error('a fast test must not start a program; import test/requires.ts to move it to another group');
}

Object.assign(ChildProcess.prototype, { spawn: refuse });
Object.assign(child, { spawnSync: refuse, execFileSync: refuse, execSync: refuse });
syncBuiltinESMExports();
