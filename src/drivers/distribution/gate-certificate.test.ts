/** TLS of the gate with a real distribution, while certificates are replaced and the gate crashes. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../../../test/until.ts';
import { requires } from '../../../test/requires.ts';
import { silentLogger } from '../../platform/log.ts';
import { followCertificateFiles } from '../../platform/tls/certificate-files.ts';
import type { Certificate, CertificateSource } from '../../platform/tls/certificate.ts';
import { testCertificate, type TestPem } from '../../platform/tls/test-certificates.ts';
import { registryTestHost, testHosting } from './test-host.ts';

vi.setConfig({ testTimeout: 60_000 });

describe.skipIf(!requires('docker-registry', 'openssl'))('the certificate of registries', () => {
  let host: Awaited<ReturnType<typeof registryTestHost>>;
  let driver: ReturnType<typeof host.driver>;
  const [first, second, third] = [testCertificate(), testCertificate(), testCertificate()];
  const fingerprintOf = ({ certificate }: TestPem) => new X509Certificate(certificate).fingerprint256;
  const gatePid = () => Number(readFileSync(join(host.layout.distribution, 'gate.pid'), 'utf8'));

  const write = (pem: Partial<TestPem>) => {
    for (const [name, text] of Object.entries(pem)) {
      writeFileSync(join(host.layout.root, '..', 'new'), text);
      renameSync(join(host.layout.root, '..', 'new'), join(host.layout.root, '..', name));
    }
  };
  const open = () => {
    const [certificate, key] = ['certificate', 'key'].map((name) => join(host.layout.root, '..', name));
    const files = { certificate: certificate!, key: key! };
    const openCertificate = async () => followCertificateFiles({ files, log: silentLogger, pollMs: 20 });
    return host.driver({ openCertificate });
  };
  /** The fingerprint of the certificate of the connection, after a request. */
  const get = (agent: Agent | false = false): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: host.port, path: '/v2/', agent, rejectUnauthorized: false };
      const sent = request(options, (response: IncomingMessage) => {
        const { fingerprint256: fingerprint } = (response.socket as TLSSocket).getPeerCertificate();
        response.resume().once('end', () => resolve(fingerprint));
      });
      sent.once('error', reject).end();
    });
  /** As the duty of the worker does. */
  const configuredTo = (pem: TestPem) =>
    until(
      async () => {
        await driver.configure(testHosting);
        return (await get().catch(() => '')) === fingerprintOf(pem);
      },
      30,
      'the certificate',
    );

  beforeAll(async () => {
    host = await registryTestHost();
    write(first);
    driver = open();
    await driver.start();
    await driver.configure(testHosting);
  }, 60_000);
  afterAll(async () => {
    await driver?.stop();
    await host?.cleanUp();
  });

  it('is replaced without a restart of the gate, which keeps its connections', async () => {
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await get(kept)).toBe(fingerprintOf(first));
    const pid = gatePid();
    write(second);
    await configuredTo(second);
    expect(await get(kept)).toBe(fingerprintOf(first));
    expect(gatePid()).toBe(pid);
    kept.destroy();
    expect(statSync(join(host.layout.distribution, 'tls.pem')).mode & 0o777).toBe(0o600);

    write({ certificate: 'garbage' });
    await until(() => driver.status().detail?.includes('TLS: '), 10, 'the error');
    await driver.configure(testHosting);
    expect(await get()).toBe(fingerprintOf(second));
    write(second);
  });

  it('is the renewed one after a crash of the gate, and after a start that adopts the gate', async () => {
    const pid = gatePid();
    process.kill(pid, 'SIGKILL');
    await until(async () => (await get().catch(() => '')) === fingerprintOf(second), 30, 'the gate');
    const next = gatePid();
    expect(next).not.toBe(pid);
    await driver.release();
    write(third);
    driver = open();
    await driver.start();
    await configuredTo(third);
    expect(gatePid()).toBe(next);
  });

  it('is replaced without another call of the driver: agents of several hosts are configured once', async () => {
    write(second);
    await until(async () => (await get().catch(() => '')) === fingerprintOf(second), 30, 'the certificate');
  });

  it('is awaited: without a first one the gate does not start, and the status says why', async () => {
    await driver.stop();
    let certificate: Certificate | null = null;
    const source: CertificateSource = {
      current: () => certificate,
      problem: () => (certificate ? null : 'no certificate was issued yet'),
      onChange: () => {},
      stop: () => {},
    };
    driver = host.driver({ openCertificate: async () => source });
    await driver.start();
    await driver.configure(testHosting);
    expect(driver.status()).toMatchObject({
      healthy: false,
      detail: expect.stringContaining('TLS: no certificate was'),
    });
    const now = new Date();
    certificate = { ...first, names: [], notBefore: now, expiresAt: now };
    await configuredTo(first);
    expect(driver.status().healthy).toBe(true);
  });

  it('is stored again for a restart of the gate after its folder was removed', async () => {
    const pid = gatePid();
    rmSync(host.layout.distribution, { recursive: true });
    process.kill(pid, 'SIGKILL');
    await until(async () => (await get().catch(() => '')) === fingerprintOf(first), 30, 'the gate');
  });
});
