/** The stored form of a valid payload: PEM in the order that HAProxy requires, and its public properties. */
import type { KeyObject, X509Certificate } from 'node:crypto';
import { isStorable } from '../../platform/storable-text.ts';
import type { Pair } from './certificates.ts';
import type { RevocationList } from './revocation-lists.ts';
import type { SecretKind } from './schema.ts';

export interface Contents {
  /** How a load balancer can use it; null: not at all. */
  kind: SecretKind | null;
  plaintext: Buffer;
  /** Algorithm of its key. */
  algorithm: string | null;
  bitLength: number | null;
  /** End of validity; null: unlimited. */
  notAfter: Date | null;
  /** Names that the certificate is for. */
  subjectNames: string[];
}

/** Unchanged bytes. `key`: the same bytes as a key, if they are one. */
export function contentsOfBytes(plaintext: Buffer, key?: KeyObject): Contents {
  return { kind: null, plaintext, ...keyProperties(key), notAfter: null, subjectNames: [] };
}

/** The certificate, its issuers, and the private key. */
export function contentsOfPair({ chain, key }: Pair): Contents {
  const [leaf] = chain;
  const pem = [...chain.map(String), key.export({ type: 'pkcs8', format: 'pem' })].join('');
  return {
    kind: 'certificate',
    plaintext: Buffer.from(pem),
    ...keyProperties(key),
    notAfter: leaf!.validToDate,
    subjectNames: namesOf(leaf!),
  };
}

/** Valid as long as one of them is. */
export function contentsOfAuthorities(authorities: X509Certificate[]): Contents {
  const [first] = authorities;
  return {
    kind: 'ca',
    plaintext: Buffer.from(authorities.map(String).join('')),
    ...keyProperties(first!.publicKey),
    notAfter: new Date(Math.max(...dates(authorities.map((authority) => authority.validToDate)))),
    subjectNames: namesOf(first!),
  };
}

/** Valid as long as all of them are. */
export function contentsOfLists(lists: RevocationList[]): Contents {
  const ends = dates(lists.map((list) => list.nextUpdate));
  return {
    kind: 'crl',
    plaintext: Buffer.from(lists.map((list) => list.pem).join('')),
    ...keyProperties(undefined),
    notAfter: ends.length > 0 ? new Date(Math.min(...ends)) : null,
    subjectNames: [],
  };
}

function dates(found: (Date | null)[]): number[] {
  return found.flatMap((date) => (date && !Number.isNaN(date.getTime()) ? [date.getTime()] : []));
}

const bitsOfCurve: Record<string, number> = { prime256v1: 256, secp384r1: 384, secp521r1: 521 };
const bitsOfType: Record<string, number> = { ed25519: 256, ed448: 456 };

function keyProperties(key: KeyObject | undefined): Pick<Contents, 'algorithm' | 'bitLength'> {
  const algorithm = key?.asymmetricKeyType ?? null;
  const { modulusLength, namedCurve = '' } = key?.asymmetricKeyDetails ?? {};
  return { algorithm, bitLength: modulusLength ?? bitsOfCurve[namedCurve] ?? bitsOfType[algorithm ?? ''] ?? null };
}

const maxNames = 100;

/** The DNS names and addresses of the certificate, or its common name if it has none. */
function namesOf(certificate: X509Certificate): string[] {
  const alternative = [...(certificate.subjectAltName ?? '').matchAll(/(?:^|, )(?:DNS|IP Address):([^\s,"]+)/g)];
  const common = /^CN=(.+)$/m.exec(certificate.subject ?? '');
  const names = alternative.length > 0 ? alternative : common ? [common] : [];
  return names
    .map((match) => match[1]!)
    .filter((name) => isStorable(name) && name.length <= 255)
    .slice(0, maxNames);
}
