/** bin/installed.mjs starts the program and forwards signals to it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { root } from '../src/platform/program-files.ts';
import { liveProcess } from '../src/platform/running-processes.ts';

const installed = pathToFileURL(join(root, 'bin', 'installed.mjs')).href;

it.each(['SIGTERM', 'SIGHUP', 'SIGINT'])('%s that arrives while the program starts ends both', async (signal) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-launcher-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const script = join(folder, 'program.mjs');
  writeFileSync(script, 'setTimeout(() => {}, 60_000);\n');
  const program = `
    import childProcess from 'node:child_process';
    import { syncBuiltinESMExports } from 'node:module';
    const { spawn } = childProcess;
    childProcess.spawn = (...args) => {
      const child = spawn(...args);
      console.log(child.pid);
      process.kill(process.pid, '${signal}');
      return child;
    };
    syncBuiltinESMExports();
    const { runNode } = await import('${installed}');
    process.exit(await runNode(${JSON.stringify(script)}, []));`;
  // Without a terminal, on which the program itself gets SIGINT.
  const args = ['--input-type=module', '--eval', program];
  const launcher = spawn(process.execPath, args, { stdio: 'pipe' });
  onTestFinished(() => void launcher.kill('SIGKILL'));
  const ended = once(launcher, 'exit');
  const [pid] = await once(launcher.stdout, 'data');
  onTestFinished(() => {
    if (liveProcess(Number(pid))?.commandLine.includes(script)) process.kill(Number(pid), 'SIGKILL');
  });
  expect(await ended).toEqual([{ SIGTERM: 143, SIGHUP: 129, SIGINT: 130 }[signal], null]);
});
