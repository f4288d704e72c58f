import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { get as httpGet } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { createApi } from '../main/api.ts';
import { silentLogger } from '../platform/log.ts';
import type { App } from './app.ts';

const cloud = useCloudyard({ driver: null });
const folder = join(mkdtempSync(join(tmpdir(), 'cloudyard-console-')), 'dist');
const secret = join(folder, '..', 'secret.txt');
const script = `console.log('${'x'.repeat(100_000)}');`;
let app: App;
let base: string;

/** Writes a build with this start page. */
function build(startPage: string): void {
  const made = `${folder}.new`;
  mkdirSync(join(made, 'assets'), { recursive: true });
  writeFileSync(join(made, 'index.html'), startPage);
  writeFileSync(join(made, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  writeFileSync(join(made, 'notes.unknown'), 'not served');
  writeFileSync(join(made, 'assets', 'main-abc123.js'), script);
  writeFileSync(join(made, 'assets', 'main-abc123.js.br'), brotliCompressSync(script));
  writeFileSync(join(made, 'assets', 'main-abc123.js.gz'), gzipSync(script));
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
}

const get = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  app.inject({ method, url, headers });

/** The status and body of a path that is sent as it is, over a connection. */
function getRaw(path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    httpGet(`${base}/`, { path }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode!, body }));
    }).once('error', reject);
  });
}

beforeAll(async () => {
  app = await createApi(cloud.services, { log: silentLogger, consoleFolder: folder });
  base = await app.listen({ host: '127.0.0.1', port: 0 });
  expect((app.server.address() as AddressInfo).port).toBeGreaterThan(0);
  writeFileSync(secret, 'a file beside the build');
});
afterAll(async () => {
  await app.close();
  rmSync(join(folder, '..'), { recursive: true });
});

describe('without a build', () => {
  it.each(['/console', '/console/', '/console/file-shares', '/console/assets/main-abc123.js'])(
    '%s returns 503 and says how to build the console',
    async (url) => {
      const answer = await get(url);
      expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5']);
      expect(answer.body).toContain('npm run console:build');
      expect(answer.body).not.toMatch(/<script|style="|src=/);
    },
  );

  it('serves a build that appears, and then one that replaces it', async () => {
    build('<p>first</p>');
    const body = async () => (await get('/console')).body;
    await expect.poll(body, { interval: 50 }).toBe('<p>first</p>');
    build('<p>second</p>');
    // The index may still describe the first build, whose file had another size.
    const { headers, rawPayload } = await get('/console');
    expect(rawPayload.length).toBe(Number(headers['content-length']));
    await expect.poll(body, { interval: 50 }).toBe('<p>second</p>');
  });
});

describe('the start page', () => {
  it.each([
    '/console',
    '/console/',
    '/console/1/1/file-shares',
    '/console/file-shares/?name=a.b',
    '/console/%F0%9F%8C%8D',
    '/console/p/1/r/1/pull-secrets/registry.example.com',
  ])('is served at %s, which the console shows', async (url) => {
    const { statusCode, body, headers } = await get(url);
    expect([statusCode, body, headers['content-type']]).toEqual([200, '<p>second</p>', 'text/html; charset=utf-8']);
    expect(headers['cache-control']).toBe('no-cache');
  });

  it('allows scripts and styles of this server only, and no frame', async () => {
    const { headers } = await get('/console');
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
        "object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  it('is linked from the index of the server, only if it is served', async () => {
    expect((await get('/')).json().links.console).toBe('/console');
    expect((await get('/', { accept: 'text/html' })).body).toContain('<a href="/console">Console</a>');
    expect((await cloud.get('/', { token: null })).body.links.console).toBeUndefined();
    expect((await cloud.get('/console', { token: null })).status).toBe(404);
  });
});

describe('a file', () => {
  const path = '/console/assets/main-abc123.js';

  it('is sent whole, with its type, and kept by browsers forever if its name contains a hash', async () => {
    const { body, headers } = await get(path);
    expect(body).toBe(script);
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'content-length': String(script.length),
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    });
    const icon = await get('/console/favicon.svg');
    expect([icon.headers['content-type'], icon.headers['cache-control']]).toEqual([
      'image/svg+xml; charset=utf-8',
      'no-cache',
    ]);
  });

  it.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['BR', 'br'],
    ['identity', undefined],
    ['brotli, x-gzip', undefined],
    ['', undefined],
  ])('for a client that accepts %j has the encoding %s', async (accepted, expected) => {
    const { headers, rawPayload } = await get(path, { 'accept-encoding': accepted });
    expect(headers['content-encoding']).toBe(expected);
    expect(rawPayload.length).toBe(Number(headers['content-length']));
    if (expected === 'gzip') expect(gunzipSync(rawPayload).toString()).toBe(script);
    const uncompressed = await get('/console/favicon.svg', { 'accept-encoding': accepted });
    expect(uncompressed.headers['content-encoding']).toBeUndefined();
  });

  it('is not sent again to a client that has it', async () => {
    for (const encoding of ['br', 'identity']) {
      const { headers } = await get(path, { 'accept-encoding': encoding });
      const tag = String(headers.etag);
      for (const known of [tag, `"x", ${tag}`, `W/${tag}`, '*']) {
        const again = await get(path, { 'accept-encoding': encoding, 'if-none-match': known });
        expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', tag]);
      }
      expect((await get(path, { 'accept-encoding': encoding, 'if-none-match': '"x"' })).statusCode).toBe(200);
    }
    const [br, plain] = [await get(path, { 'accept-encoding': 'br' }), await get(path)];
    expect(br.headers.etag).not.toBe(plain.headers.etag);
  });

  it('has the same headers for HEAD, and no body', async () => {
    const { headers } = await get(path);
    const head = await get(path, {}, 'HEAD');
    expect([head.statusCode, head.body]).toEqual([200, '']);
    for (const name of ['content-length', 'content-type', 'etag', 'cache-control', 'content-security-policy']) {
      expect([name, head.headers[name]]).toEqual([name, headers[name]]);
    }
  });

  it.each([
    '/console/assets/main.js',
    '/console/notes.unknown',
    '/console/assets/main-abc123.js.br',
    '/console/a.b/c.js',
  ])('that the console does not have returns 404: %s', async (url) => {
    const answer = await get(url);
    expect([answer.statusCode, answer.json().exception_class]).toEqual([404, 'NotFound']);
  });

  it('is never one outside of the build', async () => {
    const climbs = ['..', '%2e%2e', '..%2f', '..%5c', '.%2e', '%252e%252e', '..;', '....//'];
    const paths = climbs.flatMap((up) => [
      `/console/${up}/secret.txt`,
      `/console/assets/${up}/${up}/secret.txt`,
      `/console/${`${up}/`.repeat(12)}etc/passwd`,
    ]);
    paths.push('/console//etc/passwd', `/console/${encodeURIComponent(secret)}`, '/console/%00/../secret.txt');
    paths.push('/console/secret.txt%00.js', '/console/file:%2f%2f%2fetc%2fpasswd', '/console\\..\\secret.txt');
    for (const path of paths) {
      const { status, body } = await getRaw(path);
      expect([path, body.includes('a file beside') || body.includes('root:')]).toEqual([path, false]);
      expect([200, 400, 404]).toContain(status);
      if (status === 200) expect([path, body]).toEqual([path, '<p>second</p>']);
    }
  });

  it('is not changed by any method', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      expect((await app.inject({ method, url: path })).statusCode).toBe(404);
    }
  });
});
