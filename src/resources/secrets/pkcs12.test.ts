/** PKCS#12 bundles, generated with openssl as customers do. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyMatches } from './certificates.ts';
import { readPayload, readTlsPayload } from './payload.ts';
import { readBundle } from './pkcs12.ts';
import type { SecretType } from './schema.ts';
import { aCertificate } from './test-certificates.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
if (!hasOpenssl) {
  const reason = 'skipped: openssl is not installed';
  if (process.env['CI']) throw new Error(`${reason}, and CI must not skip tests`);
  console.warn(reason);
}

const now = new Date();
const root = aCertificate({ name: 'root' });
const middle = aCertificate({ name: 'middle', issuer: root });
const leaf = aCertificate({ name: 'leaf', issuer: middle });
const pem = { certificate: leaf.pem, certificate_chain: middle.pem + root.pem, private_key: leaf.keyPem };
const stored = (await readTlsPayload(pem, now)).contents!.plaintext.toString();

describe.skipIf(!hasOpenssl)('a PKCS#12 bundle', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'cloudyard-bundle-'));
    writeFileSync(join(directory, 'all.pem'), Object.values(pem).join(''));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const bundle = (...options: string[]): Buffer => {
    const all = ['pkcs12', '-export', '-in', 'all.pem', '-passout', 'pass:', ...options];
    return execFileSync('openssl', all, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  };
  const read = (bytes: Buffer, type: SecretType = 'certificate') =>
    readPayload(type, bytes.toString('base64'), { now, clientId: 1 });

  it.each([
    ['as OpenSSL 3 writes it', []],
    ['with other ciphers and digests', ['-keypbe', 'AES-128-CBC', '-certpbe', 'AES-192-CBC', '-macalg', 'sha512']],
    ['without any encryption and MAC', ['-keypbe', 'NONE', '-certpbe', 'NONE', '-nomac']],
    ['with names in it', ['-name', 'a name', '-CSP', 'a provider']],
    ['with many rounds', ['-iter', '100000']],
  ])('is accepted %s', async (_case, options) => {
    for (const type of ['certificate', 'opaque'] as const) {
      const { contents, errors } = await read(bundle(...options), type);
      expect(errors).toEqual([]);
      expect(contents!.plaintext.toString()).toBe(stored);
    }
  });

  it('with many rounds delays no other work in threads, however many are read together', async () => {
    const slow = bundle('-keypbe', 'NONE', '-iter', '200000');
    const ended: string[] = [];
    const work = Array.from({ length: 8 }, () => readBundle(slow, 1).then(() => ended.push('bundle')));
    await Promise.all([...work, stat(directory).then(() => ended.push('file'))]);
    expect(ended[0]).toBe('file');
  });

  it('of one client waits for at most one derivation of another one, however many that sends', async () => {
    const slow = bundle('-keypbe', 'NONE', '-iter', '100000');
    const ended: number[] = [];
    const send = (clientId: number) => readBundle(slow, clientId).then(() => ended.push(clientId));
    await Promise.all([...Array.from({ length: 8 }, () => send(1)), send(2)]);
    expect(ended.slice(0, 2)).toContain(2);
  });

  it('without a key is stored as CA certificates', async () => {
    const { contents } = await read(bundle('-nokeys'));
    expect(contents).toMatchObject({ kind: 'ca' });
    expect(contents!.plaintext.toString()).toBe(leaf.pem + middle.pem + root.pem);
  });

  it.each([
    [
      'has a password',
      ['-passout', 'pass:x'],
      /^is a PKCS#12 bundle with a password; export it with an empty password/,
    ],
    ['has an old cipher', ['-descert'], /RC2 and triple DES are no longer safe\); export it with -keypbe AES-256-CBC/],
    [
      'takes too many rounds',
      ['-keypbe', 'NONE', '-iter', '2100000', '-nomaciter'],
      /takes too many rounds to decrypt; export it with fewer/,
    ],
    ['has no certificate', ['-nocerts'], /^contains no certificate/],
  ])('that %s is refused with a remedy', async (_case, options, message) => {
    const bytes = bundle(...options);
    expect((await read(bytes)).errors).toEqual([{ path: 'payload', message: expect.stringMatching(message) }]);
    // An opaque secret that cannot be read as a certificate is stored unchanged.
    expect((await read(bytes, 'opaque')).contents).toMatchObject({ kind: null, plaintext: bytes });
  });

  it('that is damaged is either refused or read correctly', async () => {
    const bundles = [bundle(), bundle('-keypbe', 'NONE', '-certpbe', 'NONE', '-nomac')];
    const damage = fc.oneof(
      fc.record({ at: fc.nat(), byte: fc.nat(255) }).map(({ at, byte }) => (bytes: Buffer) => {
        bytes[at % bytes.length] = byte;
        return bytes;
      }),
      fc.nat().map((at) => (bytes: Buffer) => bytes.subarray(0, at % bytes.length)),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...bundles), damage, async (bytes, damaged) => {
        const { contents, errors } = await read(damaged(Buffer.from(bytes)));
        expect(contents === null).toBe(errors.length > 0);
        if (contents?.kind !== 'certificate') return;
        // An accepted pair equals the original one; issuers may be lost with their bags.
        const text = contents.plaintext.toString();
        expect(text.startsWith(leaf.pem)).toBe(true);
        expect(await keyMatches(createPrivateKey(text), new X509Certificate(leaf.pem))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
