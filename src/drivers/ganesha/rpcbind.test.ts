import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { liveProcess } from '../../platform/running-processes.ts';
import { silentLogger } from '../../platform/log.ts';
import { requires } from '../../../test/requires.ts';
import { portOfRpcbind, portOfService } from './detect.ts';
import { rpcbindFor } from './rpcbind.ts';

const folders: string[] = [];
let original: ChildProcess | undefined;

afterEach(() => {
  original?.kill('SIGKILL');
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-rpcbind-'));
  folders.push(folder);
  return folder;
}

/** A process with the arguments of the rpcbind of a data directory, which is idle. */
async function startLookalike(folder: string): Promise<ChildProcess> {
  const script = join(folder, 'rpcbind');
  writeFileSync(script, 'process.stdout.write("up"); setInterval(() => {}, 1000);');
  const args = [script, '-f', '-w', '-h', '127.0.0.2'];
  const child = spawn(process.execPath, args, { env: { ...process.env, TMPDIR: folder }, stdio: 'pipe' });
  await once(child.stdout, 'data');
  return child;
}

it('on a copy of a data directory does not stop the rpcbind of the original, which its pid file names', async () => {
  const [ours, copy] = [newFolder(), newFolder()];
  original = await startLookalike(ours);
  writeFileSync(join(copy, 'rpcbind.pid'), `${original.pid}\n`);
  const rpcbind = rpcbindFor('/bin/false', { ganesha: copy, runtime: join(copy, 'runtime') }, silentLogger);
  await rpcbind.ensure();
  await rpcbind.stop();
  expect(liveProcess(original.pid!)).not.toBeNull();
});

it('is not used where libc does not know its port, because NFS-Ganesha then exits', async () => {
  const folder = newFolder();
  const findPort = () => portOfService('cloudyard-absent');
  const rpcbind = rpcbindFor(
    '/bin/true',
    { ganesha: folder, runtime: join(folder, 'runtime') },
    silentLogger,
    findPort,
  );
  expect(findPort()).toBeNull();
  expect(await rpcbind.ensure()).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
});

it.runIf(requires('rpcbind'))('is found by its name', () => {
  expect(portOfRpcbind()).toBe('111/tcp');
});
