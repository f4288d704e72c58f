import { expect, it } from 'vitest';
import { hostError } from './command.ts';
import { withShortages } from './shortages.ts';

it('shows a shortage of the host in the status, until an operation succeeds', async () => {
  const failures = [
    hostError('mkfs.xfs: No space left on device', null),
    hostError('device busy', Object.assign(new Error('busy'), { code: 'EBUSY' })),
    hostError('open', Object.assign(new Error('open'), { code: 'EMFILE' })),
  ];
  const driver = withShortages({
    status: () => ({ driver: 'test', real: true, healthy: true, detail: 'serves' }),
    async apply() {
      const failure = failures.shift();
      if (failure) throw failure;
      return 'observed';
    },
  });
  const full = { healthy: false, detail: 'serves; mkfs.xfs: No space left on device' };
  await expect(driver.apply()).rejects.toMatchObject({ shortage: true, retryable: true });
  expect(driver.status()).toMatchObject(full);
  await expect(driver.apply()).rejects.toMatchObject({ shortage: false, retryable: true });
  expect(driver.status()).toMatchObject(full);
  await expect(driver.apply()).rejects.toMatchObject({ shortage: true });
  expect(driver.status().detail).toBe('serves; open');
  expect(await driver.apply()).toBe('observed');
  expect(driver.status()).toMatchObject({ healthy: true, detail: 'serves' });
});

it('shows that the storage of the host is read-only, as the driver or a program reports it', () => {
  const message = 'the storage of the host is read-only; the operator must make it writable';
  const error = Object.assign(new Error('open'), { code: 'EROFS' });
  for (const failure of [hostError('cannot write', error), hostError('mkdir: Read-only file system', null)]) {
    expect(failure).toMatchObject({ shortage: true, retryable: true, customerMessage: message });
  }
});

it('shows a shortage that a snapshot met', async () => {
  const driver = withShortages({
    status: () => ({ driver: 'test', real: true, healthy: true, detail: 'serves' }),
    snapshots: {
      async apply() {
        throw hostError('cp: No space left on device', null);
      },
    },
  });
  await expect(driver.snapshots.apply()).rejects.toMatchObject({ shortage: true });
  expect(driver.status()).toMatchObject({ healthy: false, detail: 'serves; cp: No space left on device' });
});
