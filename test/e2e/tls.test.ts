/** HTTPS on the port of the API, by two processes, with a certificate that is replaced while they serve. */
import { renameSync, writeFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../free-port.ts';
import { testCertificate, type TestPem } from '../../src/platform/tls/test-certificates.ts';
import { openAcmeServer } from '../acme-server.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires } from '../requires.ts';

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  body: any;
  /** Of the certificate of the connection. */
  fingerprint: string;
}

describe.skipIf(!requires('lego', 'pebble', 'openssl', 'docker-registry'))('registries', () => {
  it('serve the certificate from ACME that the API server requested, if its domains have their host', async () => {
    const [redirectPort, registryPort] = [await freePort(), await freePort()];
    const authority = await openAcmeServer({ httpPort: redirectPort, validSeconds: 3600 });
    await authority.start();
    const yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_REGISTRY_DRIVER: 'distribution',
      CLOUDYARD_REGISTRY_HOST: 'registry.example.com',
      CLOUDYARD_REGISTRY_PORT: String(registryPort),
      CLOUDYARD_HTTP_REDIRECT_PORT: String(redirectPort),
      CLOUDYARD_ACME_DOMAINS: 'cloud.example.com,registry.example.com',
      CLOUDYARD_ACME_EMAIL: 'operator@example.com',
      CLOUDYARD_ACME_SERVER: authority.url,
      CLOUDYARD_ACME_CA_FILE: authority.caFile,
    });
    onTestFinished(async () => {
      await yard.cleanUp();
      await authority.cleanUp();
    });
    await yard.start(['start']);
    const servername = 'registry.example.com';
    const certificateAt = (port: number) =>
      new Promise<PeerCertificate | null>((resolve) => {
        const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate());
          socket.destroy();
        });
        socket.once('error', () => resolve(null));
      });
    await until(async () => (await certificateAt(registryPort)) !== null, 60, 'the certificate of registries');
    const [ofApi, ofRegistries] = [await certificateAt(yard.port), await certificateAt(registryPort)];
    expect(ofRegistries!.subjectaltname).toContain('DNS:registry.example.com');
    expect(ofRegistries!.fingerprint256).toBe(ofApi!.fingerprint256);
  }, 120_000);
});

describe.skipIf(!requires('openssl'))('HTTPS', () => {
  let yard: Yard;
  let server: Running;
  let redirectPort: number;
  const [first, second] = [testCertificate(), testCertificate()];

  const write = (pem: Partial<TestPem>) => {
    for (const [name, text] of Object.entries(pem)) {
      const file = join(yard.folder, name);
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
  };

  beforeAll(async () => {
    redirectPort = await freePort();
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_PROCESSES: '2',
      CLOUDYARD_HTTP_REDIRECT_PORT: String(redirectPort),
      CLOUDYARD_HSTS_SECONDS: '3600',
    });
    Object.assign(yard.env, {
      CLOUDYARD_TLS_CERTIFICATE: join(yard.folder, 'certificate'),
      CLOUDYARD_TLS_KEY: join(yard.folder, 'key'),
    });
    write(first);
    server = await yard.start(['start']);
  });
  afterAll(() => yard?.cleanUp());

  /** `agent` false: a new connection. */
  const send = (agent: Agent | false, method: string, path: string, body?: object): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = httpsRequest(`https://localhost:${yard.port}${path}`, {
        method,
        ...{ agent, ca: [first.certificate, second.certificate], family: 4 },
        headers: { authorization: `apikey ${bootstrapToken}`, ...(body && { 'content-type': 'application/json' }) },
      });
      sent.once('error', reject).once('response', (response) => {
        let text = '';
        const { fingerprint256: fingerprint } = (response.socket as TLSSocket).getPeerCertificate();
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('end', () =>
          resolve({
            ...{ status: response.statusCode!, headers: response.headers, fingerprint },
            body: text === '' ? null : JSON.parse(text),
          }),
        );
      });
      sent.end(body && JSON.stringify(body));
    });
  const get = (path: string, agent: Agent | false = false) => send(agent, 'GET', path);

  it('serves the API with headers and cookies that require HTTPS, and redirects HTTP', async () => {
    expect(server.stdout()).toContain(`https://127.0.0.1:${yard.port}`);
    const projects = await get('/cloud/v1/projects');
    expect(projects.status).toBe(200);
    expect(projects.headers['strict-transport-security']).toBe('max-age=3600');
    const session = await send(false, 'POST', '/cloudyard/v1/session', { token: bootstrapToken });
    expect(session.headers['set-cookie']).toEqual([expect.stringContaining('; Secure')]);
    expect((await get('/healthz')).body).toMatchObject({ tls: { healthy: true, detail: 'localhost, 127.0.0.1' } });

    const plain = await fetch(`http://127.0.0.1:${redirectPort}/docs?a=b`, { redirect: 'manual' });
    expect(plain.status).toBe(308);
    expect(plain.headers.get('location')).toBe(`https://127.0.0.1:${yard.port}/docs?a=b`);
    const other = await fetch(`http://127.0.0.1:${redirectPort}/.well-known/acme-challenge/x`, { redirect: 'manual' });
    expect(other.status).toBe(308);
    await expect(fetch(`http://127.0.0.1:${yard.port}/healthz`)).rejects.toThrow();
  });

  it('uses a new certificate without ending a connection, and keeps it when the files become unusable', async () => {
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const before = await get('/healthz', kept);
    let isOver = false;
    const statuses: number[] = [];
    const load = async () => {
      while (!isOver) {
        statuses.push((await get('/healthz', kept)).status, (await get('/healthz')).status);
        await sleep(10);
      }
    };
    const loading = Promise.allSettled([load()]);
    try {
      write(second);
      // Enough for both processes, also if one of them takes most connections.
      const answers = () => Promise.all(Array.from({ length: 32 }, () => get('/healthz')));
      const isReplaced = async () => (await answers()).every(({ fingerprint }) => fingerprint !== before.fingerprint);
      await until(isReplaced, 20, 'the new certificate');
      expect((await get('/healthz', kept)).fingerprint).toBe(before.fingerprint);

      write({ certificate: 'garbage' });
      const isReported = async () => (await answers()).every(({ body }) => body.tls.healthy === false);
      await until(isReported, 20, 'the error in both processes');
      expect((await get('/healthz')).body.tls.detail).toContain('is not a PEM certificate');
      expect(await isReplaced()).toBe(true);
    } finally {
      isOver = true;
    }
    expect(await loading).toEqual([expect.objectContaining({ status: 'fulfilled' })]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(server.log()).toContainEqual(
      expect.objectContaining({ msg: 'the new TLS certificate cannot be used; the previous one stays in use' }),
    );
    kept.destroy();
  });

  it('answers a request that waits when the server stops', async () => {
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await get('/healthz', kept)).status).toBe(200);
    const requests = Array.from({ length: 8 }, () => get('/cloud/v1/projects', kept));
    const settled = Promise.allSettled(requests);
    await requests[0];
    expect((await server.stop()).code).toBe(0);
    // Requests that the server had not read find its port closed.
    for (const { reason } of (await settled).filter((each) => each.status === 'rejected')) {
      expect(reason).toMatchObject({ code: 'ECONNREFUSED' });
    }
    kept.destroy();
  });
});
