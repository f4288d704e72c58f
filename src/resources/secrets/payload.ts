/** Converts a payload from a request to its stored form: one PEM text, or uninterpreted bytes. */
import { isUtf8 } from 'node:buffer';
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { FieldError } from '../../errors/catalogue.ts';
import {
  type Found,
  invalid,
  type PlacedCertificate,
  type PlacedKey,
  readCertificates,
  readPrivateKey,
  readPrivateKeyBytes,
  validateAuthorities,
  validatePair,
} from './certificates.ts';
import { type Contents, contentsOfAuthorities, contentsOfBytes, contentsOfLists, contentsOfPair } from './contents.ts';
import { fromBase64, isPem, type PemBlock, PemError, readPem } from './pem.ts';
import { BundleError, isBundle, readBundle } from './pkcs12.ts';
import { readRevocationLists } from './revocation-lists.ts';
import { type CreateSecret, maxPayloadBytes, type SecretType } from './schema.ts';

/** The contents; null when there are errors. */
export interface Reading {
  contents: Contents | null;
  errors: FieldError[];
}

/** The payload of v2: a certificate, its chain and its key. */
export async function readTlsPayload(payload: CreateSecret['payload'], now: Date): Promise<Reading> {
  const bytes = Object.values(payload).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes > maxPayloadBytes) return refused(tooLarge(bytes));
  const own = await certificatesIn(payload.certificate, 'payload.certificate');
  const hasChain = payload.certificate_chain.trim() !== '';
  const chain = hasChain
    ? await certificatesIn(payload.certificate_chain, 'payload.certificate_chain')
    : { found: [], errors: [] };
  const key = privateKeyIn(payload.private_key, 'payload.private_key');
  const { leaf, others } = separateLeaf(own.found, key.found[0]);
  const { pair, errors } = await validatePair(leaf, [...others, ...chain.found], key.found[0], now);
  return reading(pair && contentsOfPair(pair), [...own.errors, ...chain.errors, ...key.errors, ...errors]);
}

const field = 'payload';
const noCertificate = 'contains no certificate in PEM (-----BEGIN CERTIFICATE-----)';

interface ReadingContext {
  now: Date;
  /** The client that sent the payload. */
  clientId: number;
}

/** The payload of v1: one field, so every error has its path. */
export async function readPayload(type: SecretType, base64: string, context: ReadingContext): Promise<Reading> {
  const bytes = fromBase64(base64);
  if (!bytes) return refused('is not base64');
  if (bytes.length === 0) return refused('is empty');
  if (bytes.length > maxPayloadBytes) return refused(tooLarge(bytes.length));
  switch (type) {
    case 'certificate':
      return readCertificate(bytes, context);
    case 'public': {
      const key = publicKeyOf(bytes);
      if (key) return reading(contentsOfBytes(bytes, key));
      const read = await readCertificate(bytes, context);
      const isPublic = !read.contents || read.contents.kind === 'ca';
      return isPublic ? read : refused('is neither a public key nor CA certificates');
    }
    case 'private':
      return readPrivate(bytes);
    case 'passphrase':
      return isUtf8(bytes) ? reading(contentsOfBytes(bytes)) : refused('is not text in UTF-8');
    case 'symmetric':
      return reading(contentsOfBytes(bytes));
    case 'opaque': {
      // The client declares no format. A valid certificate can be used as one; any other bytes are stored unchanged.
      const { contents } = await readCertificate(bytes, context);
      return reading(contents ?? contentsOfBytes(bytes));
    }
  }
}

/** A bundle; PEM of a certificate with its key, of CA certificates, or of revocation lists; a certificate in DER. */
async function readCertificate(bytes: Buffer, context: ReadingContext): Promise<Reading> {
  const { now } = context;
  if (isPem(bytes.toString('latin1'))) return readPemCertificate(bytes.toString('latin1'), now);
  if (isBundle(bytes)) return readBundleCertificate(bytes, context);
  const { found } = await readCertificates([bytes], field);
  if (found.length === 0) return refused('is neither PEM, nor a PKCS#12 bundle, nor an X.509 certificate');
  return readingOfAuthorities(found, [], now);
}

async function readPemCertificate(text: string, now: Date): Promise<Reading> {
  const { found: blocks, errors } = blocksIn(text, field);
  if (errors.length > 0) return reading(null, errors);
  if (blocks.some(isRevocationList)) {
    if (!blocks.every(isRevocationList))
      return refused('contains revocation lists and other blocks; store them as separate secrets');
    const lists = await readRevocationLists(blocks, field, now);
    return reading(contentsOfLists(lists.found), lists.errors);
  }
  const certificates = await certificatesAmong(blocks, field);
  if (blocks.every(isCertificate)) return readingOfAuthorities(certificates.found, certificates.errors, now);
  const key = privateKeyAmong(blocks, field, ['CERTIFICATE']);
  return readingOfPair(certificates, key, now);
}

async function readBundleCertificate(bytes: Buffer, { now, clientId }: ReadingContext): Promise<Reading> {
  try {
    const bundle = await readBundle(bytes, clientId);
    const certificates = await readCertificates(bundle.certificates, field);
    const [key, ...more] = bundle.privateKeys;
    if (!key) return readingOfAuthorities(certificates.found, certificates.errors, now);
    if (more.length > 0) return refused(`contains ${more.length + 1} private keys; exactly one is required`);
    return await readingOfPair(certificates, readPrivateKeyBytes(key, field, 'pkcs8'), now);
  } catch (error) {
    if (error instanceof BundleError) return refused(error.message);
    throw error;
  }
}

/** The certificate that matches the key, at any position, or else the first one; and the others. */
function separateLeaf(found: PlacedCertificate[], key: PlacedKey | undefined) {
  const own = key && found.find(({ certificate }) => certificate.checkPrivateKey(key.key));
  const leaf = own ?? found[0];
  return { leaf, others: found.filter((placed) => placed !== leaf) };
}

async function readingOfPair(
  certificates: Found<PlacedCertificate>,
  key: Found<PlacedKey>,
  now: Date,
): Promise<Reading> {
  const [placedKey] = key.found;
  const { leaf, others } = separateLeaf(certificates.found, placedKey);
  const { pair, errors } = await validatePair(leaf, others, placedKey, now);
  const missing =
    certificates.found.length + certificates.errors.length === 0 ? invalid(field, noCertificate).errors : [];
  return reading(pair && contentsOfPair(pair), [...missing, ...certificates.errors, ...key.errors, ...errors]);
}

function readingOfAuthorities(found: PlacedCertificate[], errors: FieldError[], now: Date): Reading {
  if (found.length + errors.length === 0) return refused(noCertificate);
  const all = [...errors, ...validateAuthorities(found, now)];
  if (all.length > 0) return reading(null, all);
  return reading(contentsOfAuthorities(found.map(({ certificate }) => certificate)));
}

function readPrivate(bytes: Buffer): Reading {
  const text = bytes.toString('latin1');
  const { found, errors } = isPem(text) ? privateKeyIn(text, field) : readPrivateKeyBytes(bytes, field);
  return reading(found[0] ? contentsOfBytes(bytes, found[0].key) : null, errors);
}

/** PEM, or DER in SPKI form. A certificate contains a public key, too, but has a kind of its own. */
function publicKeyOf(bytes: Buffer): KeyObject | null {
  try {
    if (!isPem(bytes.toString('latin1'))) return createPublicKey({ key: bytes, format: 'der', type: 'spki' });
    const [block, ...more] = readPem(bytes.toString('latin1'));
    if (!block?.label.endsWith('PUBLIC KEY') || more.length > 0) return null;
    return createPublicKey({ key: block.bytes, format: 'der', type: block.label === 'PUBLIC KEY' ? 'spki' : 'pkcs1' });
  } catch {
    return null;
  }
}

const isCertificate = (block: PemBlock) => block.label === 'CERTIFICATE';
const isRevocationList = (block: PemBlock) => block.label === 'X509 CRL';

async function certificatesIn(text: string, path: string): Promise<Found<PlacedCertificate>> {
  const { found: blocks, errors } = blocksIn(text, path);
  if (errors.length > 0) return { found: [], errors };
  const other = blocks.find((block) => !isCertificate(block));
  if (other) return invalid(path, `contains a ${other.label}; only certificates are allowed`);
  if (blocks.length === 0) return invalid(path, noCertificate);
  return certificatesAmong(blocks, path);
}

function certificatesAmong(blocks: PemBlock[], path: string): Promise<Found<PlacedCertificate>> {
  const encoded = blocks.filter(isCertificate).map((block) => block.bytes);
  return readCertificates(encoded, path);
}

function privateKeyIn(text: string, path: string): Found<PlacedKey> {
  const { found: blocks, errors } = blocksIn(text, path);
  return errors.length > 0 ? { found: [], errors } : privateKeyAmong(blocks, path, []);
}

/** The only private key of a field, which may also contain blocks with the `other` labels. */
function privateKeyAmong(blocks: PemBlock[], path: string, other: string[]): Found<PlacedKey> {
  // OpenSSL writes the curve before a key of its old form.
  const known = ['EC PARAMETERS', ...other];
  const unexpected = blocks.find(({ label }) => !label.endsWith('PRIVATE KEY') && !known.includes(label));
  if (unexpected) return invalid(path, `contains an unexpected ${unexpected.label}`);
  return readPrivateKey(blocks, path);
}

function blocksIn(text: string, path: string): Found<PemBlock> {
  try {
    return { found: readPem(text), errors: [] };
  } catch (error) {
    if (!(error instanceof PemError)) throw error;
    return invalid(path, `is invalid PEM: ${error.message}`);
  }
}

function tooLarge(bytes: number): string {
  return `has ${bytes} bytes; the maximum is ${maxPayloadBytes}`;
}

function reading(contents: Contents | null, errors: FieldError[] = []): Reading {
  return { contents: errors.length > 0 ? null : contents, errors };
}

function refused(message: string): Reading {
  return reading(null, invalid(field, message).errors);
}
