import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { parseCertificate } from '../platform/tls/certificate.ts';
import { testCertificate } from '../platform/tls/test-certificates.ts';
import { requires } from '../../test/requires.ts';
import { limitedServer } from './connection-limits.ts';
import { createDrain } from './drain.ts';
import { startHttpsRedirect } from './https-redirect.ts';

describe.skipIf(!requires('openssl'))('a server of HTTPS', () => {
  it('ends unfinished handshakes and idle connections when it drains', async () => {
    const certificate = parseCertificate(testCertificate());
    const source = { current: () => certificate, problem: () => null, onChange: () => {}, stop: () => {} };
    const limits = { headersSeconds: 3600, requestSeconds: 3600 };
    const server = limitedServer({ log: silentLogger, certificate: source, limits })(() => {}, {}) as Server;
    const { drain } = createDrain(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const silent = connect(port, '127.0.0.1').on('error', () => {});
    await once(server, 'connection');
    const idle = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {});
    await once(server, 'secureConnection');
    const closed = once(server, 'close');
    await drain();
    await closed;
    for (const socket of [silent, idle]) socket.destroy();
  });
});

describe('the redirect to HTTPS', () => {
  const open = (publicUrl?: string) =>
    startHttpsRedirect({
      ...{ host: '127.0.0.1', port: 0, publicUrl, httpsPort: 8443, log: silentLogger },
      findChallenge: async (token) => (token === 'known' ? 'known.thumbprint' : null),
    });

  it('goes to the public URL, or to the host of the request, and never to another host', async () => {
    const locationOf = async (port: number, path: string, host?: string): Promise<string> => {
      const socket = connect(port, '127.0.0.1');
      socket.end(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      let text = '';
      for await (const part of socket) text += String(part);
      return /^location: (.*)\r$/im.exec(text)?.[1] ?? text.split('\r\n', 1)[0]!;
    };
    const own = await open('https://cloud.example.org');
    expect(await locationOf(own.port, '/a?b=c', 'other.example')).toBe('https://cloud.example.org/a?b=c');
    const any = await open();
    expect(await locationOf(any.port, '/a', 'cloud.example.org:80')).toBe('https://cloud.example.org:8443/a');
    expect(await locationOf(any.port, '/a', '[::1]')).toBe('https://[::1]:8443/a');
    expect(await locationOf(any.port, 'http://evil.example/', 'cloud.example.org')).toBe(
      'https://cloud.example.org:8443/',
    );
    for (const host of ['a@evil.example', 'a/b', 'a:b', '']) {
      expect(await locationOf(any.port, '/a', host)).toBe('HTTP/1.1 400 Bad Request');
    }
    await Promise.all([own.stop(), any.stop()]);
  });

  it('answers challenges', async () => {
    const { port, stop } = await open();
    const path = `http://127.0.0.1:${port}/.well-known/acme-challenge`;
    expect(await (await fetch(`${path}/known`)).text()).toBe('known.thumbprint');
    expect((await fetch(`${path}/unknown`, { redirect: 'manual' })).status).toBe(308);
    await stop();
  });
});
