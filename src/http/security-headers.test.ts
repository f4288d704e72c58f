import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });

describe('every response', () => {
  it.each([
    ['a list', '/cloud/v1/projects', 200],
    ['a missing path', '/none', 404],
    ['a path that cannot be decoded', '/cloud/v1/%zz', 400],
    ['an unauthenticated request', '/cloud/v1/tasks', 401],
    ['the metrics', '/metrics', 200],
    ['the index', '/', 200],
    ['the API reference', '/docs/', 200],
  ])('forbids guesses of its type, frames and referrers: %s', async (_name, path, status) => {
    const answer = await cloud.get(path, { token: status === 401 ? null : cloud.admin });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
    });
    expect(answer.headers['strict-transport-security']).toBeUndefined();
  });
});
