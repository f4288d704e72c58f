import { expect, it } from 'vitest';
import { createTestHost } from '../../test/drivers.ts';
import { create, soon, startCloudyard, stateOf, taskOf } from '../../test/worker.ts';
import { DriverError } from '../errors/driver-error.ts';

it('a task that waits for a port names it at once, and is retried often until the port is free', async (t) => {
  const host = createTestHost();
  const { apply } = host;
  let isFree = false;
  host.apply = async (...given) => {
    if (isFree) return apply(...given);
    throw new DriverError('EADDRINUSE', {
      ...{ customerMessage: 'another program uses port 2049', retryable: true, maxRetrySeconds: 0.01 },
    });
  };
  const { cloud } = await startCloudyard(t, { host });
  const answer = await create(cloud);
  const data = async () => (await taskOf(cloud, answer)).data;
  await expect.poll(data, soon).toMatchObject({ last_error: 'another program uses port 2049' });
  // With backoff, the sixth attempt would be the last, four minutes later.
  await expect.poll(async () => (await data())?.attempt, soon).toBeGreaterThan(7);
  expect((await taskOf(cloud, answer)).state).toBe('RUNNING');
  isFree = true;
  await expect.poll(stateOf(cloud, answer), soon).toBe('FINISHED');
});
