/** Requests with a method that the path does not have. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const share = '/cloud/v1/file_shares/1/1/0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10';

it.each([
  ['OPTIONS', share, 'DELETE, GET, HEAD, PATCH'],
  ['PUT', share, 'DELETE, GET, HEAD, PATCH'],
  ['PUT', '/cloud/v1/tasks/?limit=1', 'GET, HEAD'],
  ['POST', '/', 'GET, HEAD'],
  // Not that of `/cloud/v1/tasks/{task_id}`.
  ['DELETE', '/cloud/v1/tasks/acknowledge', 'POST'],
  ['GET', '/cloud/v1/tasks/acknowledge', 'POST'],
  ['HEAD', '/cloud/v1/loadbalancers/1/1/check_limits?limit=1', 'POST'],
  ['DELETE', '/cloud/v1/lifecycle_policy/1/1/preview_schedule/', 'POST'],
  ['PATCH', '/cloud/v1/loadbalancers/1/1/status', 'GET, HEAD'],
  ['PATCH', '/cloud/v1/registries/1/1/1/users/batch', 'POST'],
])('%s %s returns 405 with Allow: %s', async (method, path, allowed) => {
  const { status, headers, body } = await cloud.request(method, path);
  expect([status, headers['allow']]).toEqual([405, allowed]);
  if (method !== 'HEAD') expect(body).toMatchObject({ exception_class: 'MethodNotAllowed' });
});

it.each(['/cloud/v1/nothing', '/cloud/v1/file_shares/1/1//', '/cloud/v1/file_shares/1'])(
  'PUT %s returns 404, because no operation has this path',
  async (path) => {
    expect((await cloud.request('PUT', path)).status).toBe(404);
  },
);
