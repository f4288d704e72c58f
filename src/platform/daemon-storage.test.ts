/** A daemon while the storage of its files fails. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Around, withLayer } from '../../test/storage-layer.ts';
import { superviseDaemon } from './daemon.ts';
import { silentLogger } from './log.ts';
import { liveProcess } from './running-processes.ts';

const disk = vi.hoisted(() => ({ isFull: false }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const statfsSync = (path: string) => (disk.isFull ? { bavail: 0 } : fs.statfsSync(path));
  return (await import('../../test/storage-layer.ts')).layered({ ...fs, statfsSync });
});

it('is stopped although its pid file cannot be removed, and started again later', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'daemon-storage-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const options = {
    ...{ name: 'program', command: { file: 'sleep', args: ['600'] }, pidFile: join(dir, 'program.pid') },
    ...{ logFile: join(dir, 'program.log'), stopSignal: 'SIGTERM' as const, startTimeout: 20, log: silentLogger },
    matches: (commandLine: string) => commandLine === 'sleep 600',
    probe: async () => {},
  };
  const daemon = await superviseDaemon(options);
  const pid = daemon.pid()!;
  const readOnly: Around = ({ name }, perform) => {
    if (name === 'rmSync') throw Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' });
    return perform();
  };
  await withLayer(readOnly, () => daemon.stop());
  expect(liveProcess(pid)).toBeNull();
  expect(existsSync(options.pidFile)).toBe(true);
  const next = await superviseDaemon(options);
  expect(next.pid()).not.toBe(pid);
  await next.stop();
});

it('names the full disk if a program exits and could write nothing to its log', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'daemon-storage-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const logFile = join(dir, 'program.log');
  const options = {
    ...{ name: 'program', command: { file: 'false', args: [] }, pidFile: join(dir, 'program.pid'), logFile },
    ...{ stopSignal: 'SIGTERM' as const, startTimeout: 20, log: silentLogger },
    matches: () => false,
    probe: () => Promise.reject(new Error('absent')),
  };
  const nothing = `program exited (code 1); it wrote nothing to its log ${logFile}`;
  await expect(superviseDaemon(options)).rejects.toThrow(new Error(nothing));
  disk.isFull = true;
  onTestFinished(() => void (disk.isFull = false));
  await expect(superviseDaemon(options)).rejects.toThrow(new Error(`${nothing}, whose disk is full`));
});
