/**
 * Validates certificates and private keys: whether they parse, belong together and are valid now. All errors are reported
 * with their fields and without any contents. OpenSSL loads whatever passes: a load balancer with a single certificate
 * that it refuses serves none.
 */
import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { promisify } from 'node:util';
import type { FieldError } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import type { PemBlock } from './pem.ts';
import { isOversized, oversized, signsFast } from './rsa-keys.ts';

const signInThread = promisify(sign);
const verifyInThread = promisify(verify);

/** What was found in a field, as far as it could be read, and what is wrong there. */
export interface Found<T> {
  found: T[];
  faults: FieldError[];
}

/** A certificate and where it came from, for messages. */
export interface PlacedCertificate {
  certificate: X509Certificate;
  path: string;
  /** Its number in the field, from 1; null where it is the only one. */
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

export async function readCertificates(encoded: Buffer[], path: string): Promise<Found<PlacedCertificate>> {
  const found: PlacedCertificate[] = [];
  const faults: FieldError[] = [];
  const pause = createPause();
  for (const [i, bytes] of encoded.entries()) {
    await pause();
    const nth = encoded.length > 1 ? i + 1 : null;
    const which = nth ? `certificate ${nth}` : 'it';
    const certificate = certificateOf(bytes);
    if (!certificate) faults.push({ path, message: `${which} is not an X.509 certificate` });
    else if (isOversized(certificate.publicKey)) faults.push({ path, message: `${which} has ${oversized}` });
    else found.push({ certificate, path, nth });
  }
  return { found, faults };
}

function certificateOf(bytes: Buffer): X509Certificate | null {
  try {
    const certificate = new X509Certificate(bytes);
    // OpenSSL reads the key no sooner than it is asked for.
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
/** A signature takes a time that grows with each number in a key, and the proxy signs once a handshake, for any tenant. */
const maxKeyBytes = 3 * 1024;
/** 4 ms a signature, 2.4 KB encoded; 8192 bits take 45 ms. */
const maxRsaBits = 4096;
/** The kinds of key that TLS takes for a certificate. */
const keyTypes = new Set(['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448']);

/** The one private key among the blocks of a field. */
export function readPrivateKey(blocks: PemBlock[], path: string): Found<PlacedKey> {
  const fault = (message: string) => ({ found: [], faults: [{ path, message }] });
  const keys = blocks.filter((block) => block.label.endsWith('PRIVATE KEY'));
  const [key] = keys;
  if (!key || keys.length > 1) return fault(`has ${keys.length || 'no'} private keys in PEM; it must have one`);
  if (key.encrypted) return fault('the private key is encrypted; send it without a passphrase');
  const encoding = keyEncodings[key.label];
  if (!encoding) return fault(`TLS takes no ${key.label}; send a PRIVATE KEY`);
  return readPrivateKeyBytes(key.bytes, encoding, path);
}

export function readPrivateKeyBytes(bytes: Buffer, type: KeyEncoding, path: string): Found<PlacedKey> {
  if (bytes.length > maxKeyBytes) {
    const message = `the private key has ${bytes.length} bytes; it may have ${maxKeyBytes} (RSA of ${maxRsaBits} bits has fewer)`;
    return { found: [], faults: [{ path, message }] };
  }
  try {
    const key = createPrivateKey({ key: bytes, format: 'der', type });
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (bits > maxRsaBits) {
      const message = `the private key has ${bits} bits; use RSA of at most ${maxRsaBits} bits, or ECDSA`;
      return { found: [], faults: [{ path, message }] };
    }
    if (keyTypes.has(key.asymmetricKeyType!)) {
      if (!signsFast(key)) throw new Error('the numbers of the key do not belong together');
      return { found: [{ key, path }], faults: [] };
    }
    return { found: [], faults: [{ path, message: `TLS takes no ${key.asymmetricKeyType} key for a certificate` }] };
  } catch {
    return { found: [], faults: [{ path, message: 'the private key does not parse' }] };
  }
}

/** Each is compared with each. */
const maxIssuers = 20;

/**
 * Validates a certificate, the others of its chain and its key, as far as they could be read. The result has neither faults
 * nor a pair when a part is missing, which its reader has already reported.
 */
export async function judgePair(
  leaf: PlacedCertificate | undefined,
  others: PlacedCertificate[],
  key: PlacedKey | undefined,
  now: Date,
): Promise<{ pair: Pair | null; faults: FieldError[] }> {
  if (others.length > maxIssuers) {
    const message = `there are ${others.length} certificates beside the first; a chain has at most ${maxIssuers}`;
    return { pair: null, faults: [{ path: others.at(-1)!.path, message }] };
  }
  const faults = [...(leaf ? [leaf] : []), ...others].flatMap((placed) => faultsOfDates(placed, now));
  if (!leaf) return { pair: null, faults };
  if (key && !(await belongs(key.key, leaf.certificate))) {
    faults.push({ path: key.path, message: 'the private key does not belong to the certificate' });
  }
  const { chain, strangers } = await chainOf(leaf, others);
  for (const { path, nth } of strangers) {
    const message = `certificate ${nth ?? 1} issued neither the certificate nor another one of its chain`;
    faults.push({ path, message });
  }
  if (faults.length > 0 || !key) return { pair: null, faults };
  const refusal = refusalOfOpenSsl(chain, key.key);
  if (refusal) return { pair: null, faults: [{ path: leaf.path, message: refusal }] };
  return { pair: { chain, key: key.key }, faults };
}

/**
 * Whether what the key signs is signed for the certificate. That OpenSSL finds the two to match does not say so: it
 * compares the public halves, and a key may have a private half that is not its own.
 */
export async function belongs(key: KeyObject, { publicKey }: X509Certificate): Promise<boolean> {
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
 * The leaf, what issued it, what issued that, and so on, whatever order they were given in. Strangers are those that
 * issued none of them. A certificate that is there twice counts once.
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
  return { chain, strangers: [...left.values()] };
}

function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  try {
    return issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
  } catch {
    // A key that OpenSSL cannot verify with has signed nothing.
    return false;
  }
}

/** CA certificates: it suffices that one is good now, since bundles carry expired ones along. */
export function judgeAuthorities(authorities: PlacedCertificate[], now: Date): FieldError[] {
  const faults = authorities.map((placed) => faultsOfDates(placed, now));
  return faults.some((ofOne) => ofOne.length === 0) ? [] : faults.flat();
}

function faultsOfDates({ certificate, path, nth }: PlacedCertificate, now: Date): FieldError[] {
  const { validFromDate, validToDate } = certificate;
  const which = nth ? `certificate ${nth}` : 'the certificate';
  if (Number.isNaN(validFromDate.getTime()) || Number.isNaN(validToDate.getTime())) {
    return [{ path, message: `${which} has no readable dates` }];
  }
  if (now > validToDate) return [{ path, message: `${which} expired on ${withZone(validToDate)}` }];
  if (now < validFromDate) return [{ path, message: `${which} is not valid before ${withZone(validFromDate)}` }];
  return [];
}

/** What OpenSSL says when it is to serve them, as HAProxy will ask it to: to keys that are too short, say. */
function refusalOfOpenSsl(chain: X509Certificate[], key: KeyObject): string | null {
  const cert = chain.map((certificate) => certificate.toString()).join('');
  try {
    createSecureContext({ cert, key: key.export({ type: 'pkcs8', format: 'pem' }), ca: [] });
    return null;
  } catch (error) {
    return `OpenSSL does not serve it: ${(error as { reason?: string }).reason ?? 'it does not load'}`;
  }
}
