import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const get = (path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  cloud.app.inject({ method, url: path, headers });

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
    expect(again.headers).toMatchObject({ 'cache-control': 'no-cache', etag: headers.etag, vary: 'accept-encoding' });
    expect((await get(path, { 'if-none-match': headers.etag! })).statusCode).toBe(200);
  });

  it('has the same headers for HEAD, and no body', async () => {
    const accept = { 'accept-encoding': 'gzip' };
    const [full, head] = [await get(path, accept), await get(path, accept, 'HEAD')];
    for (const name of ['content-type', 'content-encoding', 'content-length', 'etag', 'vary', 'cache-control'])
      expect([name, head.headers[name]]).toEqual([name, full.headers[name]]);
    expect(head.rawPayload.length).toBe(0);
  });
});
