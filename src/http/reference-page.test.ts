import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const get = (path: string, headers: Record<string, string> = {}) =>
  cloud.app.inject({ method: 'GET', url: path, headers });

describe.each(['/docs/', '/docs/js/scalar.js', '/openapi.json'])('%s', (path) => {
  it('is compressed for browsers that accept it', async () => {
    const [plain, compressed] = [await get(path), await get(path, { 'accept-encoding': 'br, gzip' })];
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(compressed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
    expect(gunzipSync(compressed.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(compressed.headers['content-type']).toBe(plain.headers['content-type']);
  });

  it('is not sent again to a browser that has it', async () => {
    const { headers } = await get(path, { 'accept-encoding': 'gzip' });
    const again = await get(path, { 'accept-encoding': 'gzip', 'if-none-match': headers.etag! });
    expect([again.statusCode, again.rawPayload.length]).toEqual([304, 0]);
    expect((await get(path, { 'if-none-match': headers.etag! })).statusCode).toBe(200);
  });
});
