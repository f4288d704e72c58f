/** A server that listens before it is ready delays early requests instead of rejecting them. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { apiSettings, closeApi, createApi } from '../main/api.ts';
import { readSettings } from '../main/settings.ts';
import { silentLogger } from '../platform/log.ts';
import { checkoutPlaces } from '../platform/program-files.ts';

const cloud = useCloudyard({ driver: null });
const settings = readSettings({}, checkoutPlaces(process.cwd()), false);
const options = { ...apiSettings(settings, true), log: silentLogger };

it('holds early requests until the server is ready', async () => {
  const app = await createApi(cloud.services, options);
  const statusOf = async (url: string) =>
    (await app.inject({ url, headers: { authorization: `apikey ${cloud.admin}` } })).statusCode;
  let answered = 0;
  const early = ['/readyz', '/cloud/v1/registries/1/1'].map((url) => statusOf(url).finally(() => (answered += 1)));
  // Later requests to another server with the same database are answered meanwhile.
  for (let i = 0; i < 5; i++) expect((await cloud.get('/cloud/v1/registries/1/1')).status).toBe(200);
  expect(answered).toBe(0);
  app.admitRequests();
  expect(await Promise.all(early)).toEqual([200, 200]);
  expect(await statusOf('/readyz')).toBe(200);
  await app.close();
});

it('responds to early requests with 503 when the server stops before it is ready', async () => {
  const app = await createApi(cloud.services, options);
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const early = fetch(`${url}/readyz`);
  await new Promise((arrived) => app.server.once('request', arrived));
  await closeApi(app, cloud.services);
  const response = await early;
  expect({
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: await response.json(),
  }).toMatchObject({
    status: 503,
    retryAfter: '1',
    body: { exception_class: 'Unavailable', message: 'the server could not start; try again in a few seconds' },
  });
});
