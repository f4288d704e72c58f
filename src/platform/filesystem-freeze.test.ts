/** Whatever is killed while a filesystem is frozen, its clients go on writing. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { until } from '../../test/until.ts';
import { freeze, thawLeftFrozen } from './filesystem-freeze.ts';

describe.skipIf(!requires('xfsprogs', 'root'))(skipReason('xfsprogs', 'root') ?? 'a frozen filesystem', () => {
  let folder: string;
  let copier: ChildProcess | undefined;
  const mount = () => join(folder, 'mounts/one');
  /** In a process, because a write into a frozen filesystem cannot be interrupted. */
  const write = () => once(spawn('sh', ['-c', 'echo text >"$1/file"', 'sh', mount()], { stdio: 'ignore' }), 'exit');
  const isFrozen = () => readFileSync(join(folder, 'frozen'), 'utf8') !== '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cloudyard-freeze-'));
    mkdirSync(mount(), { recursive: true });
    const image = join(folder, 'image');
    writeFileSync(image, '');
    truncateSync(image, 320 * 1024 * 1024);
    execFileSync('mkfs.xfs', ['-q', image]);
    execFileSync('mount', ['-o', 'loop', image, mount()]);
  });
  afterEach(() => {
    copier?.kill('SIGKILL');
    execFileSync('sh', ['-c', 'fsfreeze --unfreeze "$1" 2>/dev/null; umount "$1"', 'sh', mount()]);
    rmSync(folder, { recursive: true });
  });

  /** A process that copies the filesystem, and the pid of the child that freezes it. */
  async function startCopier(): Promise<number> {
    const module = JSON.stringify(new URL('filesystem-freeze.ts', import.meta.url));
    const script = `import { freeze } from ${module};
      await freeze(${JSON.stringify(folder)}, 'mounts/one');
      console.log('frozen');
      setInterval(() => {}, 1000);`;
    copier = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(copier.stdout!, 'data');
    return Number(readFileSync(`/proc/${copier.pid}/task/${copier.pid}/children`, 'utf8').trim());
  }

  it('is thawed when the copy is done', async () => {
    const thaw = await freeze(folder, 'mounts/one');
    const written = write();
    expect(isFrozen()).toBe(true);
    await thaw();
    await written;
    expect(isFrozen()).toBe(false);
  });

  it('is thawed when the process that copies is killed', async () => {
    await startCopier();
    copier!.kill('SIGKILL');
    await write();
    await until(() => !isFrozen(), 10, 'the end of the child');
  });

  it('is thawed when a service manager ends all processes with SIGTERM', async () => {
    const child = await startCopier();
    process.kill(child, 'SIGTERM');
    copier!.kill('SIGTERM');
    await write();
  });

  it('is thawed by the next start when all processes were killed, and not while another process copies it', async () => {
    const child = await startCopier();
    await thawLeftFrozen(folder);
    expect(isFrozen()).toBe(true);
    process.kill(-child, 'SIGKILL');
    copier!.kill('SIGKILL');
    await once(copier!, 'exit');
    const written = write();
    await thawLeftFrozen(folder);
    await written;
    expect(isFrozen()).toBe(false);
  });

  it('is thawed at the end of the copy when its child was killed', async () => {
    const thaw = await freeze(folder, 'mounts/one');
    const [child] = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder));
    process.kill(Number(child), 'SIGKILL');
    await thaw();
    await write();
    expect(isFrozen()).toBe(false);
  });

  it('that another process has frozen is reported', async () => {
    execFileSync('fsfreeze', ['--freeze', mount()]);
    await expect(freeze(folder, 'mounts/one')).rejects.toThrow(/mounts\/one cannot be frozen: .*busy/);
    await expect(freeze(folder, 'mounts/other')).rejects.toThrow(/mounts\/other cannot be frozen: .*No such file/);
  });
});
