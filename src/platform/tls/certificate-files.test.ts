import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../log.ts';
import { requires } from '../../../test/requires.ts';
import { followCertificateFiles, followOnceUsable, readCertificateFiles } from './certificate-files.ts';
import { type Certificate, statusOf } from './certificate.ts';
import { testCertificate, type TestPem } from './test-certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-certificate-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

const files = { certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };

function write(pem: Partial<TestPem>): void {
  for (const [name, text] of Object.entries(pem)) {
    writeFileSync(join(folder, 'new.pem'), text);
    renameSync(join(folder, 'new.pem'), files[name as keyof TestPem]);
  }
}

describe.skipIf(!requires('openssl'))('the files of a certificate', () => {
  const [first, second] = [testCertificate(), testCertificate()];

  it('are refused with the file and the reason', () => {
    write(first);
    expect(readCertificateFiles(files)).toMatchObject({ names: ['localhost', '127.0.0.1'] });
    write({ key: second.key });
    expect(() => readCertificateFiles(files)).toThrow(
      `${files.certificate}, ${files.key}: the key does not belong to the certificate`,
    );
    write({ certificate: 'garbage' });
    expect(() => readCertificateFiles(files)).toThrow('the certificate is not a PEM certificate');
    write({ certificate: first.certificate, key: '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n' });
    expect(() => readCertificateFiles(files)).toThrow('the key is not an unencrypted PEM private key');
    const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    write({ certificate: first.certificate + damaged, key: first.key });
    expect(() => readCertificateFiles(files)).toThrow(`${files.key}: OpenSSL refuses it: wrong tag`);
    const absent = { ...files, key: join(folder, 'absent.pem') };
    expect(() => readCertificateFiles(absent)).toThrow(`${absent.key} cannot be read (ENOENT)`);
  });

  it('replace the certificate when they change, and never with one that cannot be used', async () => {
    write(first);
    const used: Certificate[] = [];
    const source = followCertificateFiles({ files, log: silentLogger, pollMs: 10 });
    source.onChange((certificate) => used.push(certificate));
    const now = new Date();
    expect(statusOf(source, now)).toMatchObject({ healthy: true, detail: 'localhost, 127.0.0.1' });

    const expired = testCertificate({ endsAt: new Date(now.getTime() - 60_000) });
    for (const [pem, problem] of [
      [{ certificate: 'garbage' }, 'is not a PEM certificate'],
      [{ certificate: second.certificate }, 'does not belong to the certificate'],
      [expired, 'the certificate expired at'],
    ] as const) {
      write(pem);
      await vi.waitUntil(() => source.problem()?.includes(problem), { timeout: 30_000, interval: 5 });
      expect(source.current()).toMatchObject(first);
      expect(statusOf(source, now).healthy).toBe(false);
    }
    // A loop of links, as while a tool replaces the file.
    rmSync(files.certificate);
    symlinkSync(files.certificate, files.certificate);
    await vi.waitUntil(() => source.problem()?.includes('cannot be read (ELOOP)'), { timeout: 30_000, interval: 5 });
    expect(used).toEqual([]);

    write(second);
    await vi.waitUntil(() => source.problem() === null, { timeout: 30_000, interval: 5 });
    expect(source.current()).toMatchObject(second);
    expect(used).toMatchObject([second]);
    expect(statusOf(source, new Date(now.getTime() + 40 * 86_400_000))).toMatchObject({
      healthy: false,
      detail: expect.stringContaining('the certificate expired at'),
    });
    source.stop();
  });

  it('are waited for at a start, because a tool may be replacing them', async () => {
    const log = { ...silentLogger, error: vi.fn<typeof silentLogger.error>() };
    write({ certificate: first.certificate, key: second.key });
    const opening = followOnceUsable({ files, log, pollMs: 10 });
    await vi.waitUntil(() => log.error.mock.calls.length > 0, { timeout: 5000, interval: 5 });
    write(first);
    const source = await opening;
    expect(source.current()).toMatchObject(first);
    // Once, not with each attempt.
    expect(log.error).toHaveBeenCalledTimes(1);
    source.stop();

    write({ key: second.key });
    const start = performance.now();
    const unusable = followOnceUsable({ files, log, pollMs: 10, waitMs: 200 });
    await expect(unusable).rejects.toThrow('the key does not belong to the certificate');
    expect(performance.now() - start).toBeGreaterThan(190);
  });

  it('are used at a start although the certificate has expired', () => {
    write(testCertificate({ endsAt: new Date(Date.now() - 60_000) }));
    const source = followCertificateFiles({ files, log: silentLogger });
    expect(statusOf(source, new Date())).toMatchObject({ healthy: false });
    source.stop();
  });
});
