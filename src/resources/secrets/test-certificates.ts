/**
 * Certificates, keys and revocation lists for tests, with given dates, issuers and keys. Writes just enough DER
 * for OpenSSL to read them. And the request that stores a text as a secret.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { writePem } from './pem.ts';

interface Authority {
  pem: string;
  name: string;
  key: KeyObject;
}

interface TestCertificate extends Authority {
  keyPem: string;
}

interface CertificateOptions {
  name?: string;
  dnsNames?: string[];
  /** Absent: the certificate is self-signed. */
  issuer?: Authority;
  notBefore?: Date;
  notAfter?: Date;
  /** Default: a new EC key, P-256. */
  key?: KeyObject;
}

const day = 86_400_000;
const fromNow = (days: number) => new Date(Date.now() + days * day);

export function aKey(type: 'ec' | 'rsa' | 'ed25519' = 'ec', modulusLength = 2048): KeyObject {
  if (type === 'rsa') return generateKeyPairSync('rsa', { modulusLength }).privateKey;
  if (type === 'ed25519') return generateKeyPairSync('ed25519').privateKey;
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** An RSA key of 2,048 bits whose public exponent has this number of bits. */
export function aKeyWithExponent(bits: number): KeyObject {
  const jwk = aKey('rsa').export({ format: 'jwk' });
  const numberOf = (text = '') => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`);
  const textOf = (number: bigint) => {
    const hex = number.toString(16);
    return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url');
  };
  const [p, q] = [numberOf(jwk.p), numberOf(jwk.q)];
  const order = (p - 1n) * (q - 1n);
  let e = 2n ** BigInt(bits - 1) + 1n;
  let d = inverseOf(e, order);
  for (; d === null; d = inverseOf(e, order)) e += 2n;
  const numbers = { e: textOf(e), d: textOf(d), dp: textOf(d % (p - 1n)), dq: textOf(d % (q - 1n)) };
  return createPrivateKey({ key: { ...jwk, ...numbers }, format: 'jwk' });
}

/** Null: the number has no inverse. */
function inverseOf(number: bigint, modulus: bigint): bigint | null {
  let [a, b, x, y] = [number, modulus, 1n, 0n];
  while (b !== 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return a === 1n ? (x + modulus) % modulus : null;
}

export function keyPemOf(key: KeyObject, type: 'pkcs8' | 'sec1' | 'pkcs1' = 'pkcs8'): string {
  return key.export({ type: type as 'pkcs8', format: 'pem' }) as string;
}

export function aCertificate(options: CertificateOptions = {}): TestCertificate {
  const { name = 'test.example', key = aKey(), notBefore = fromNow(-1), notAfter = fromNow(30) } = options;
  const issuer = options.issuer ?? { name, key };
  const algorithm = algorithmOf(issuer.key);
  const toBeSigned = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(positive(randomBytes(8))),
    algorithm,
    nameOf(issuer.name),
    sequence(timeOf(notBefore), timeOf(notAfter)),
    nameOf(name),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
    ...(options.dnsNames ? [der(0xa3, sequence(alternativeNames(options.dnsNames)))] : []),
  );
  return { name, key, keyPem: keyPemOf(key), pem: writePem('CERTIFICATE', signed(toBeSigned, algorithm, issuer.key)) };
}

export function aRevocationList(issuer: Authority, nextUpdate: Date | null = fromNow(30)): string {
  const algorithm = algorithmOf(issuer.key);
  const toBeSigned = sequence(
    integer(Buffer.from([1])),
    algorithm,
    nameOf(issuer.name),
    timeOf(fromNow(-60)),
    ...(nextUpdate ? [timeOf(nextUpdate)] : []),
    sequence(sequence(integer(Buffer.from([7])), timeOf(fromNow(-90)))),
  );
  return writePem('X509 CRL', signed(toBeSigned, algorithm, issuer.key));
}

export function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content)]), content]);
}

function lengthOf({ length }: Buffer): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts);
const integer = (bytes: Buffer) => der(0x02, bytes);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const bits = (bytes: Buffer) => der(0x03, Buffer.from([0]), bytes);
const positive = (bytes: Buffer) => Buffer.concat([Buffer.from([1]), bytes]);

function algorithmOf(key: KeyObject): Buffer {
  if (key.asymmetricKeyType === 'ed25519') return sequence(oid('2b6570'));
  if (key.asymmetricKeyType === 'rsa') return sequence(oid('2a864886f70d01010b'), der(0x05));
  return sequence(oid('2a8648ce3d040302'));
}

function signed(toBeSigned: Buffer, algorithm: Buffer, key: KeyObject): Buffer {
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  return sequence(toBeSigned, algorithm, bits(sign(digest, toBeSigned, key)));
}

function nameOf(common: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(common)))));
}

function timeOf(date: Date): Buffer {
  const digits = date.toISOString().replace(/\D/g, '').slice(0, 14);
  return der(0x18, Buffer.from(`${digits}Z`));
}

function alternativeNames(names: string[]): Buffer {
  const each = names.map((name) => der(0x82, Buffer.from(name)));
  return sequence(oid('551d11'), der(0x04, sequence(...each)));
}

export const secretV1 = (secret_type: string, text: string, changes: object = {}) => ({
  name: 'a secret',
  secret_type,
  payload: Buffer.from(text).toString('base64'),
  payload_content_encoding: 'base64',
  payload_content_type: 'text/plain',
  ...changes,
});
