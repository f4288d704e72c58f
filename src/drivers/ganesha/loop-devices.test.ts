import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { silentLogger } from '../../platform/log.ts';
import { findProgram } from '../programs.ts';
import { backingFile, loopDevices, loopNumber } from './loop-devices.ts';

const losetup = findProgram('losetup');

describe.skipIf(!requires('root'))(skipReason('root') ?? 'a loop device that the kernel frees at the same time', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'cloudyard-loop-'));
    // Frees the device before the command can.
    writeFileSync(join(folder, 'losetup'), `#!/bin/sh\n${losetup} "$@" && exec ${losetup} "$@"\n`, { mode: 0o755 });
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it.each(['release', 'close'] as const)('does not make %s fail', async (call) => {
    const image = join(folder, 'image');
    writeFileSync(image, '');
    truncateSync(image, 1024 ** 2);
    const devices = loopDevices(folder, silentLogger);
    const device = loopNumber(await devices.bind('share', image))!;
    expect(await backingFile(device)).toBe(image);
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
    await devices[call]('share', image);
    expect(await backingFile(device)).toBe(null);
  });
});

it.skipIf(!requires('root', 'xfsprogs'))(
  'a stop waits for a device that a process keeps mounted as it ends',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-loop-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [image, mount] = [join(folder, 'image'), join(folder, 'mount')];
    writeFileSync(image, '');
    truncateSync(image, 300 * 1024 ** 2);
    execFileSync('mkfs.xfs', ['-q', image]);
    const devices = loopDevices(folder, silentLogger);
    const name = await devices.bind('share', image);
    mkdirSync(mount);
    execFileSync('mount', [name, mount]);
    // It has a copy of all mounts.
    const other = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', 'echo ready; sleep 1']);
    await once(other.stdout, 'data');
    execFileSync('umount', [mount]);
    await devices.close();
    expect(await backingFile(loopNumber(name)!)).toBe(null);
  },
);
