/**
 * Extracts certificates and private keys from a PKCS#12 bundle (RFC 7292) with an empty password.
 *
 * Node 24 can use such a bundle but cannot return its contents (Node 26 can: `crypto.parsePKCS12` should then replace
 * this file). The MAC of the bundle is not verified: with an empty password it protects nothing, and the key is checked
 * against the certificate anyway. The bundle determines the rounds of key derivation, so they are limited and run off
 * the main thread, in one thread: the few threads of the process also do the work on files for all clients. Clients take turns
 * in that thread, so a client that sends many bundles delays a bundle of another client by one derivation.
 */
import { createDecipheriv, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { limitedByKey } from '../../platform/turns.ts';
import { BerError, child, type Element, integerOf, octetsOf, oidOf, readBer, tags } from './ber.ts';

interface Bundle {
  /** DER, in the order of the bundle. */
  certificates: Buffer[];
  /** DER of PKCS#8. */
  privateKeys: Buffer[];
}

/** A message for the client, without contents of the bundle. */
export class BundleError extends Error {}

const oids = {
  data: '2a864886f70d010701',
  encryptedData: '2a864886f70d010706',
  keyBag: '2a864886f70d010c0a0101',
  shroudedKeyBag: '2a864886f70d010c0a0102',
  certificateBag: '2a864886f70d010c0a0103',
  x509: '2a864886f70d01091601',
  pbes2: '2a864886f70d01050d',
  pbkdf2: '2a864886f70d01050c',
} as const;

const digests: Record<string, string> = {
  '2a864886f70d0207': 'sha1',
  '2a864886f70d0208': 'sha224',
  '2a864886f70d0209': 'sha256',
  '2a864886f70d020a': 'sha384',
  '2a864886f70d020b': 'sha512',
};

const ciphers: Record<string, { name: string; keyBytes: number }> = {
  '608648016503040102': { name: 'aes-128-cbc', keyBytes: 16 },
  '608648016503040116': { name: 'aes-192-cbc', keyBytes: 24 },
  '60864801650304012a': { name: 'aes-256-cbc', keyBytes: 32 },
};

/** Rounds of key derivation for a whole bundle: Firefox writes 600,000 for each of two parts, OpenSSL 2,048. */
const maxRounds = 2_000_000;

const deriveInThread = promisify(pbkdf2);
const inTurn = limitedByKey<number>(1);

/** True if the bytes have the outer structure of a bundle. Its contents are not checked. */
export function isBundle(bytes: Buffer): boolean {
  try {
    return integerOf(child(readBer(bytes), 0, tags.integer)) === 3;
  } catch {
    return false;
  }
}

/** `clientId`: the client that sent it. @throws BundleError */
export async function readBundle(bytes: Buffer, clientId: number): Promise<Bundle> {
  const bundle: Bundle = { certificates: [], privateKeys: [] };
  const rounds = { left: maxRounds, clientId };
  try {
    for (const part of readBer(dataOf(child(readBer(bytes), 1, tags.sequence))).children) {
      for (const bag of readBer(await contentsOf(part, rounds)).children) await readBag(bag, bundle, rounds);
    }
  } catch (error) {
    if (error instanceof BerError) throw new BundleError('is an invalid PKCS#12 bundle');
    throw error;
  }
  return bundle;
}

interface Rounds {
  left: number;
  clientId: number;
}

/** The bytes of a ContentInfo of type data. */
function dataOf(contentInfo: Element): Buffer {
  if (oidOf(child(contentInfo, 0, tags.oid)) !== oids.data) {
    throw new BundleError(
      'is a PKCS#12 bundle that is signed or encrypted with a public key; export it with an empty password instead',
    );
  }
  return octetsOf(onlyChild(child(contentInfo, 1, tags.zero)));
}

/** The bags of one part, which may be encrypted. */
async function contentsOf(part: Element, rounds: Rounds): Promise<Buffer> {
  if (oidOf(child(part, 0, tags.oid)) !== oids.encryptedData) return dataOf(part);
  const encrypted = child(child(child(part, 1, tags.zero), 0, tags.sequence), 1, tags.sequence);
  const bytes = encrypted.children[2];
  if (!bytes) throw new BerError('an encrypted part is empty');
  return decrypt(child(encrypted, 1, tags.sequence), octetsOf(bytes), rounds);
}

async function readBag(bag: Element, bundle: Bundle, rounds: Rounds): Promise<void> {
  const value = onlyChild(child(bag, 1, tags.zero));
  switch (oidOf(child(bag, 0, tags.oid))) {
    case oids.certificateBag:
      if (oidOf(child(value, 0, tags.oid)) !== oids.x509) return;
      bundle.certificates.push(octetsOf(onlyChild(child(value, 1, tags.zero))));
      return;
    case oids.shroudedKeyBag:
      bundle.privateKeys.push(
        await decrypt(child(value, 0, tags.sequence), octetsOf(child(value, 1, tags.octets)), rounds),
      );
      return;
    case oids.keyBag:
      bundle.privateKeys.push(value.whole);
      return;
    default:
      // Revocation lists and other contents are ignored.
      return;
  }
}

/** Decrypts with the empty password and the scheme of the bundle. */
async function decrypt(scheme: Element, data: Buffer, rounds: Rounds): Promise<Buffer> {
  if (oidOf(child(scheme, 0, tags.oid)) !== oids.pbes2) throw unsupported();
  const [derivation, encryption] = child(scheme, 1, tags.sequence).children;
  if (!derivation || !encryption) throw new BerError('a scheme lacks its parts');
  const cipher = ciphers[oidOf(child(encryption, 0, tags.oid))];
  if (!cipher || oidOf(child(derivation, 0, tags.oid)) !== oids.pbkdf2) throw unsupported();
  const key = await keyFrom(child(derivation, 1, tags.sequence), cipher.keyBytes, rounds);
  try {
    const decipher = createDecipheriv(cipher.name, key, child(encryption, 1, tags.octets).content);
    const plain = Buffer.concat([decipher.update(data), decipher.final()]);
    readBer(plain);
    return plain;
  } catch {
    throw new BundleError('is a PKCS#12 bundle with a password; export it with an empty password (-passout pass:)');
  }
}

async function keyFrom(parameters: Element, keyBytes: number, rounds: Rounds): Promise<Buffer> {
  const count = integerOf(child(parameters, 1, tags.integer));
  rounds.left -= count;
  if (count < 1 || rounds.left < 0) {
    throw new BundleError(
      'is a PKCS#12 bundle that takes too many rounds to decrypt; export it with fewer rounds (-iter)',
    );
  }
  // The default is HMAC with SHA-1. An optional key length precedes it; the cipher determines that, too.
  const pseudorandom = parameters.children.slice(2).find((element) => element.tag === tags.sequence);
  const digest = pseudorandom ? digests[oidOf(child(pseudorandom, 0, tags.oid))] : 'sha1';
  if (!digest) throw unsupported();
  const salt = child(parameters, 0, tags.octets).content;
  return inTurn(rounds.clientId, () => deriveInThread('', salt, count, keyBytes, digest));
}

/** OpenSSL 1.1, LibreSSL and old Java write RC2 and triple DES by default. */
function unsupported(): BundleError {
  return new BundleError(
    'is a PKCS#12 bundle with an unsupported encryption (RC2 and triple DES are no longer safe); ' +
      'export it with -keypbe AES-256-CBC -certpbe AES-256-CBC, or send PEM',
  );
}

function onlyChild(parent: Element): Element {
  const [only] = parent.children;
  if (!only) throw new BerError('an element is empty');
  return only;
}
