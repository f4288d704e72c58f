/**
 * Validates certificates and private keys: whether they parse, belong together and are valid now. All errors are reported
 * with their fields and without any contents. OpenSSL must load every accepted certificate: if a load balancer has one
 * that OpenSSL refuses, it serves none.
 */
import { createPrivateKey, type KeyObject, sign, verify, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import type { FieldError } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import { refusalOfOpenSsl } from '../../platform/tls/certificate.ts';
import { readBer, tags } from './ber.ts';
import type { PemBlock } from './pem.ts';
import { excessOf, hasLargeExponent, largeExponent, signsFast } from './rsa-keys.ts';

const signInThread = promisify(sign);
const verifyInThread = promisify(verify);

/** The readable contents of a field, and its errors. */
export interface Found<T> {
  found: T[];
  errors: FieldError[];
}

/** A certificate and its field, for messages. */
export interface PlacedCertificate {
  certificate: X509Certificate;
  path: string;
  /** Its position in the field, from 1; null if it is the only one. */
  nth: number | null;
}

export interface PlacedKey {
  key: KeyObject;
  path: string;
}

/** A certificate with its key; the chain begins with the certificate itself, and issuers follow what they issued. */
export interface Pair {
  chain: X509Certificate[];
  key: KeyObject;
}

/** Reads DER certificates. `path`: the field of the request, for errors. Yields to the event loop. */
export async function readCertificates(encoded: Buffer[], path: string): Promise<Found<PlacedCertificate>> {
  const found: PlacedCertificate[] = [];
  const errors: FieldError[] = [];
  const pause = createPause();
  for (const [i, bytes] of encoded.entries()) {
    await pause();
    const nth = encoded.length > 1 ? i + 1 : null;
    const prefix = nth ? `certificate ${nth} ` : '';
    const certificate = certificateOf(bytes);
    const excess = certificate && excessOf(certificate.publicKey);
    if (!certificate) errors.push({ path, message: `${prefix}is not an X.509 certificate` });
    else if (excess !== null) errors.push({ path, message: `${prefix}has ${excess}` });
    else found.push({ certificate, path, nth });
  }
  return { found, errors };
}

function certificateOf(bytes: Buffer): X509Certificate | null {
  try {
    const certificate = new X509Certificate(bytes);
    // OpenSSL parses the key only on first access.
    return certificate.publicKey && certificate;
  } catch {
    return null;
  }
}

type KeyEncoding = 'pkcs8' | 'pkcs1' | 'sec1';
const keyEncodings: Record<string, KeyEncoding> = {
  'PRIVATE KEY': 'pkcs8',
  'RSA PRIVATE KEY': 'pkcs1',
  'EC PRIVATE KEY': 'sec1',
};
/** By the tag of their second element, in which the encodings differ. */
const keyEncodingOfTag: Record<number, KeyEncoding> = {
  [tags.sequence]: 'pkcs8',
  [tags.integer]: 'pkcs1',
  [tags.octets]: 'sec1',
};
/** The time of a signature grows with the numbers in a key, and the proxy, which all tenants share, signs once per handshake. */
const maxKeyBytes = 3 * 1024;
/** 4 ms per signature, 2.4 KB encoded; a key of 8192 bits takes 45 ms. */
const maxRsaBits = 4096;
/** The types of keys that TLS supports for certificates. */
const keyTypes = new Set(['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448']);

/** The only private key in the blocks of a field. */
export function readPrivateKey(blocks: PemBlock[], path: string): Found<PlacedKey> {
  const keys = blocks.filter((block) => block.label.endsWith('PRIVATE KEY'));
  const [key] = keys;
  if (!key || keys.length > 1)
    return invalid(path, `contains ${keys.length || 'no'} private keys in PEM; exactly one is required`);
  if (key.encrypted) return invalid(path, 'the private key is encrypted; send it without a passphrase');
  const encoding = keyEncodings[key.label];
  if (!encoding) return invalid(path, `TLS does not support a ${key.label}; send a PRIVATE KEY`);
  return readPrivateKeyBytes(key.bytes, path, encoding);
}

/** Reads a DER private key, by default of any encoding. `path`: the field of the request, for errors. */
export function readPrivateKeyBytes(bytes: Buffer, path: string, type = encodingOf(bytes)): Found<PlacedKey> {
  if (bytes.length > maxKeyBytes) {
    const limits = `the maximum is ${maxKeyBytes} (RSA of ${maxRsaBits} bits has fewer)`;
    return invalid(path, `the private key has ${bytes.length} bytes; ${limits}`);
  }
  try {
    const key = createPrivateKey({ key: bytes, format: 'der', type });
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (bits > maxRsaBits) {
      return invalid(path, `the private key has ${bits} bits; use RSA of at most ${maxRsaBits} bits, or ECDSA`);
    }
    if (hasLargeExponent(key)) return invalid(path, `the private key has ${largeExponent}; use 65537`);
    if (!keyTypes.has(key.asymmetricKeyType!)) {
      return invalid(path, `TLS does not support certificates with a ${key.asymmetricKeyType} key`);
    }
    if (!signsFast(key)) throw new Error('the parameters of the RSA key are inconsistent');
    return { found: [{ key, path }], errors: [] };
  } catch {
    return invalid(path, 'the private key cannot be parsed');
  }
}

/** `openssl pkey -outform DER` writes the older encodings, too. */
function encodingOf(bytes: Buffer): KeyEncoding {
  try {
    return keyEncodingOfTag[readBer(bytes).children[1]?.tag ?? 0] ?? 'pkcs8';
  } catch {
    return 'pkcs8';
  }
}

/** Nothing could be read. `message`: why. */
export function invalid(path: string, message: string): Found<never> {
  return { found: [], errors: [{ path, message }] };
}

/** Limited because each certificate is compared with all others. */
const maxIssuers = 20;

/**
 * Validates a certificate, the others of its chain and its key, as far as they could be read. The result has neither errors
 * nor a pair if a part is missing: the caller has already reported that.
 */
export async function validatePair(
  leaf: PlacedCertificate | undefined,
  others: PlacedCertificate[],
  key: PlacedKey | undefined,
  now: Date,
): Promise<{ pair: Pair | null; errors: FieldError[] }> {
  if (others.length > maxIssuers) {
    const message = `contains ${others.length} certificates besides the certificate of the key; the maximum is ${maxIssuers}`;
    return { pair: null, errors: [{ path: others.at(-1)!.path, message }] };
  }
  const errors = [...(leaf ? [leaf] : []), ...others].flatMap((placed) => errorsOfDates(placed, now));
  if (!leaf) return { pair: null, errors };
  if (key && !(await keyMatches(key.key, leaf.certificate))) {
    errors.push({ path: key.path, message: 'the private key does not match the certificate' });
  }
  const { chain, unrelated } = await chainOf(leaf, others);
  for (const { path, nth } of unrelated) {
    const message = `certificate ${nth ?? 1} issued neither the certificate nor another one of its chain`;
    errors.push({ path, message });
  }
  if (errors.length > 0 || !key) return { pair: null, errors };
  // As HAProxy will load it.
  const refusal = refusalOfOpenSsl(
    chain.map(String).join(''),
    key.key.export({ type: 'pkcs8', format: 'pem' }) as string,
  );
  if (refusal) return { pair: null, errors: [{ path: leaf.path, message: refusal }] };
  return { pair: { chain, key: key.key }, errors };
}

/**
 * Whether the certificate verifies a signature of the key. The comparison of OpenSSL (`checkPrivateKey`) is insufficient:
 * it compares the public halves, and the private half of a key may be a different one.
 */
export async function keyMatches(key: KeyObject, { publicKey }: X509Certificate): Promise<boolean> {
  const { hashAlgorithm = 'sha256' } = key.asymmetricKeyDetails ?? {};
  const digest = key.asymmetricKeyType!.startsWith('ed') ? null : hashAlgorithm;
  const data = Buffer.from('to be signed');
  try {
    return await verifyInThread(digest, data, publicKey, await signInThread(digest, data, key));
  } catch {
    return false;
  }
}

/**
 * The leaf followed by its issuers in order, regardless of their order in the request. `unrelated` certificates issued
 * none of them. Duplicates are ignored.
 */
async function chainOf(leaf: PlacedCertificate, others: PlacedCertificate[]) {
  const pause = createPause();
  const chain = [leaf.certificate];
  const left = new Map(others.map((other) => [other.certificate.fingerprint256, other]));
  left.delete(leaf.certificate.fingerprint256);
  for (let i = 0; i < chain.length; i++) {
    for (const { certificate } of [...left.values()]) {
      await pause();
      if (!hasIssued(certificate, chain[i]!)) continue;
      chain.push(certificate);
      left.delete(certificate.fingerprint256);
    }
  }
  return { chain, unrelated: [...left.values()] };
}

function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  try {
    return issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
  } catch {
    // OpenSSL does not support the key of the issuer, so the signature cannot be verified.
    return false;
  }
}

/** At least one CA certificate must be valid now; bundles often contain expired ones. */
export function validateAuthorities(authorities: PlacedCertificate[], now: Date): FieldError[] {
  const errors = authorities.map((placed) => errorsOfDates(placed, now));
  return errors.some((ofOne) => ofOne.length === 0) ? [] : errors.flat();
}

function errorsOfDates({ certificate, path, nth }: PlacedCertificate, now: Date): FieldError[] {
  const { validFromDate, validToDate } = certificate;
  const which = nth ? `certificate ${nth}` : 'the certificate';
  if (Number.isNaN(validFromDate.getTime()) || Number.isNaN(validToDate.getTime())) {
    return [{ path, message: `${which} has an unreadable validity period` }];
  }
  if (now > validToDate) return [{ path, message: `${which} expired on ${withZone(validToDate)}` }];
  if (now < validFromDate) return [{ path, message: `${which} is not valid before ${withZone(validFromDate)}` }];
  return [];
}
