/** Hostile certificates, keys and revocation lists do not block the event loop. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { writePem } from '../../src/resources/secrets/pem.ts';
import { aCertificate, aKey, aRevocationList, der } from '../../src/resources/secrets/test-certificates.ts';
import { useMeasuredCloud } from './measured-cloud.ts';

const { cloud, send, expectCheap } = useMeasuredCloud();
const maxPayload = 256 * 1024;
const repeated = (text: string) => text.repeat(Math.floor(maxPayload / text.length));
const integer = (bytes: Buffer) => der(0x02, ...(bytes[0]! < 0x80 ? [] : [Buffer.from([0])]), bytes);

/** Random numbers of the size of an RSA key. With missing or wrong primes, OpenSSL signs slowly. */
function rsaKey(modulusBytes: number): string {
  const odd = (length: number) => Buffer.concat([Buffer.from([0x81]), randomBytes(length - 2), Buffer.from([1])]);
  const one = Buffer.from([1]);
  const numbers = [
    Buffer.from([0]),
    odd(modulusBytes),
    Buffer.from([1, 0, 1]),
    odd(modulusBytes),
    one,
    one,
    one,
    one,
    one,
  ];
  return writePem('RSA PRIVATE KEY', der(0x30, ...numbers.map(integer)));
}

/** An ASN.1 element filled with empty elements up to the size limit. */
function elements(inner: Buffer): Buffer {
  const content = Buffer.concat(Array.from({ length: Math.floor((maxPayload - 10) / inner.length) }, () => inner));
  const length = content.length;
  return Buffer.concat([Buffer.from([0x30, 0x83, length >> 16, (length >> 8) & 255, length & 255]), content]);
}

describe('the event loop is not blocked', () => {
  const certificate = aCertificate();
  const another = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

  it.each([
    ['an RSA key of 16384 bits', rsaKey(2048), /^the private key has \d+ bytes/],
    ['an RSA key of 4096 bits without its primes', rsaKey(512), /^the private key cannot be parsed/],
    ['an RSA key of 2048 bits', another.export({ type: 'pkcs1', format: 'pem' }) as string, /does not match/],
  ])('by a secret with %s', async (_what, private_key, message) => {
    const owner = await cloud.newClient('member');
    const payload = { certificate: certificate.pem, certificate_chain: '', private_key };
    const path = `/cloud/v2/secrets/${owner.projectId}/1`;
    const body = JSON.stringify({ name: 'secret', payload });
    const [answer] = await expectCheap(async () => [await send('POST', path, body, owner.token)]);
    expect(JSON.parse(answer!.text).errors).toContainEqual({
      path: 'payload.private_key',
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ['500 certificates', 'public', repeated(certificate.pem)],
    ['1,000 revocation lists', 'certificate', repeated(aRevocationList(aCertificate({ key: aKey('ed25519') })))],
    ['7,000 blocks', 'certificate', repeated('-----BEGIN A-----\n-----END A-----\n')],
    ['130,000 elements', 'opaque', elements(Buffer.from([5, 0]))],
    ['130,000 nested elements', 'opaque', elements(Buffer.from([0x30, 0]))],
    ['60,000 levels', 'opaque', Buffer.concat(Array.from({ length: 60_000 }, () => Buffer.from('3080', 'hex')))],
  ])('by a secret of %s', async (_what, secret_type, bytes) => {
    const owner = await cloud.newClient('member');
    const path = `/cloud/v1/secrets/${owner.projectId}/1`;
    const payload = Buffer.from(bytes).toString('base64');
    const content = { payload_content_encoding: 'base64', payload_content_type: 'application/octet-stream' };
    const body = JSON.stringify({ name: 'secret', secret_type, payload, ...content });
    const [answer] = await expectCheap(async () => [await send('POST', path, body, owner.token)]);
    expect([200, 400]).toContain(answer!.status);
  });
});
