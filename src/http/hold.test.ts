/** A server that listens before it is ready keeps its clients waiting, rather than sending them away. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { createApi } from '../main/api.ts';
import { silentLogger } from '../platform/log.ts';

const cloud = useCloudyard({ driver: null });

it('answers what came too early when it is ready, and then at once', async () => {
  const { promise: holdUntil, resolve } = Promise.withResolvers<void>();
  const app = await createApi(cloud.services, { log: silentLogger, holdUntil });
  const ask = async (url: string) =>
    (await app.inject({ url, headers: { authorization: `apikey ${cloud.admin}` } })).statusCode;
  const early = ['/readyz', '/cloud/v1/registries/1/1'].map(ask);
  expect(await Promise.race([...early, sleep(100, 'waits')])).toBe('waits');
  resolve();
  expect(await Promise.all(early)).toEqual([200, 200]);
  expect(await ask('/readyz')).toBe(200);
  await app.close();
});
