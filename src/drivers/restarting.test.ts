import { expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { DriverError } from './driver.ts';
import { restartingDriver } from './restarting.ts';
import { createSimulatedVolumeDriver } from './simulated/volume.ts';
import { volume } from './test-desired.ts';
import type { VolumeDriver } from './volume.ts';

const signal = new AbortController().signal;
const desired = volume();

function hostThatFails(times: number) {
  const ended: string[] = [];
  const create = (): VolumeDriver => ({
    ...createSimulatedVolumeDriver({}),
    stop: async () => void ended.push('stop'),
    release: async () => void ended.push('release'),
  });
  const driver = restartingDriver<VolumeDriver>({
    ...{ title: 'volumes', name: 'disk', error: new Error('no space left on device'), failed: create() },
    ...{ create, idle: createSimulatedVolumeDriver({}), firstDelayMs: 1, log: silentLogger },
    async start(one) {
      times -= 1;
      if (times > 0) throw new Error('still no space');
      return one;
    },
  });
  const started = async () => {
    await expect.poll(() => driver.status()).toMatchObject({ healthy: true });
  };
  return { driver, started, ended };
}

it('fails operations as retryable, and says why in its status, until it has started', async () => {
  const { driver, started } = hostThatFails(3);
  const early = driver.apply;
  expect(driver.status()).toMatchObject({ driver: 'disk', real: true, healthy: false });
  expect(driver.status().detail).toContain('no space left on device');
  for (const failing of [driver.apply(desired, signal), driver.list(), driver.snapshots.list()]) {
    const error = await failing.then(String, (reason: unknown) => reason);
    expect(error).toBeInstanceOf(DriverError);
    expect(error).toMatchObject({ retryable: true, shortage: true });
  }
  await started();
  expect(await early(desired, signal)).toMatchObject({ copying: false, sizeGib: 1 });
  expect(await driver.snapshots.list()).toEqual([]);
});

it('names the reason at the end of the log of a program that does not start', () => {
  const driver = restartingDriver<VolumeDriver>({
    ...{
      title: 'volumes',
      name: 'disk',
      error: new Error('its log ends:\nstarting\nno memory\nexiting\n'),
      failed: null,
    },
    ...{ create: () => createSimulatedVolumeDriver({}), start: async (one) => one, log: silentLogger },
    idle: createSimulatedVolumeDriver({}),
  });
  onTestFinished(() => driver.stop());
  expect(driver.status().detail).toBe('does not start, retrying: its log ends: no memory | exiting');
});

it('has the remedy of its last failure in its status', async () => {
  const remedies = ['stop the other program', undefined];
  const driver = restartingDriver<VolumeDriver>({
    ...{ title: 'volumes', name: 'disk', error: new Error('a port is in use'), failed: null, remedy: remedies[0] },
    ...{ create: () => createSimulatedVolumeDriver({}), idle: createSimulatedVolumeDriver({}) },
    ...{ firstDelayMs: 20, log: silentLogger, findRemedy: async () => remedies[1] },
    start: () => Promise.reject(new Error('no memory')),
  });
  onTestFinished(() => driver.stop());
  expect(driver.status()).toMatchObject({ healthy: false, remedy: 'stop the other program' });
  await expect.poll(() => driver.status().detail).toContain('no memory');
  expect(driver.status()).not.toHaveProperty('remedy');
});

it('releases what a failed start adopted, and stops it only if it is stopped itself', async () => {
  const { driver, started, ended } = hostThatFails(3);
  await started();
  expect(ended).toEqual(['release', 'release']);
  const broken = hostThatFails(Number.POSITIVE_INFINITY);
  await broken.driver.release!();
  expect(new Set(broken.ended)).toEqual(new Set(['release']));
  const stopped = hostThatFails(Number.POSITIVE_INFINITY);
  await stopped.driver.stop();
  expect(stopped.ended.at(-1)).toBe('stop');
  await driver.stop();
});

it('is started again every few seconds while another program has its port, which operations name', async () => {
  const error = new DriverError('port 2049 is in use', {
    ...{ customerMessage: 'another program uses port 2049', retryable: true, maxRetrySeconds: 0.001 },
  });
  let starts = 0;
  const driver = restartingDriver<VolumeDriver>({
    ...{ title: 'volumes', name: 'disk', error, failed: null, create: () => createSimulatedVolumeDriver({}) },
    // Without the limit the second start would be an hour later.
    ...{ idle: createSimulatedVolumeDriver({}), firstDelayMs: 3_600_000, log: silentLogger },
    async start(one) {
      starts += 1;
      if (starts < 3) throw error;
      return one;
    },
  });
  await expect(driver.apply(desired, signal)).rejects.toMatchObject({
    ...{ retryable: true, maxRetrySeconds: 20 },
    customerMessage: expect.stringContaining('another program uses port 2049'),
  });
  await expect.poll(() => driver.status()).toMatchObject({ healthy: true });
  await driver.stop();
});
