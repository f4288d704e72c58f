/** The proxy of docs/guides/production.md denies internal paths, however a request spells them. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from './free-port.ts';
import { requires, skipReason } from './requires.ts';

const guide = readFileSync('docs/guides/production.md', 'utf8');

describe.skipIf(!requires('haproxy'))(skipReason('haproxy') ?? 'HAProxy in front of the servers', () => {
  it('denies internal paths, which servers also recognize in percent-encoding and with a slash at the end', async () => {
    const [port, backend] = [await freePort(), await freePort()];
    const server = createServer((_request, response) => response.end()).listen(backend, '127.0.0.1');
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-proxy-'));
    const file = join(folder, 'haproxy.cfg');
    const text = /```haproxy\n([^]*?)```/
      .exec(guide)![1]!
      .replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
      .replaceAll(/127\.0\.0\.1:808[12]/g, `127.0.0.1:${backend}`);
    writeFileSync(file, text);
    const haproxy = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    onTestFinished(() => {
      haproxy.kill();
      server.close();
      rmSync(folder, { recursive: true });
    });
    const statusOf = (path: string) =>
      new Promise<number | undefined>((resolve) => {
        request({ host: '127.0.0.1', port, path }, (response) => resolve(response.resume().statusCode))
          .on('error', () => resolve(undefined))
          .end();
      });
    await expect.poll(() => statusOf('/cloud/v1/projects')).toBe(200);
    const denied = ['/metrics', '/metrics/', '/%6detrics', '/metrics?a=1', '/healthz/drivers', '/healthz%2Fdrivers'];
    const authorize = ['/cloudyard/v1/authorize', '/cloudyard/v1/%61uthorize/1/1/web'];
    for (const path of [...denied, ...authorize]) expect([path, await statusOf(path)]).toEqual([path, 404]);
    for (const path of ['/healthz', '/readyz', '/console']) expect([path, await statusOf(path)]).toEqual([path, 200]);
  });
});
