/**
 * Limits of RSA keys by their cost. The server of a certificate signs with its key once per connection,
 * so a slow key slows everything that the process serves.
 */
import type { KeyObject } from 'node:crypto';
import { child, octetsOf, readBer, tags } from './ber.ts';

/** For keys of certificates, which only verify. Private keys have a lower limit (certificates.ts). */
const maxModulusBits = 8192;
/**
 * As OpenSSL allows for keys of more than 3,072 bits. For shorter ones it allows any exponent: with one of 3,072 bits a verification takes
 * a hundred times as long, and OpenSSL verifies each signature that it makes: then signatures take six times as long.
 */
const maxExponentBits = 64;
export const largeExponent = `a public exponent of more than ${maxExponentBits} bits`;

/** False for keys of other algorithms. */
export function hasLargeExponent({ asymmetricKeyDetails }: KeyObject): boolean {
  return (asymmetricKeyDetails?.publicExponent ?? 0n) >= 2n ** BigInt(maxExponentBits);
}

/** Why the key of a certificate is too expensive, or null. */
export function excessOf(key: KeyObject): string | null {
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) > maxModulusBits) {
    return `an RSA key of more than ${maxModulusBits} bits`;
  }
  return hasLargeExponent(key) ? `an RSA key with ${largeExponent}` : null;
}

/** RFC 8017, A.1.2. */
const fields = ['version', 'n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'inverse'] as const;

/**
 * Whether a private key has the numbers that make signing fast (its primes and the values derived from them). If they are
 * missing or wrong, OpenSSL signs slowly: 0.7 s with 8192 bits. Keys of other types have no such numbers.
 */
export function signsFast(key: KeyObject): boolean {
  if (!key.asymmetricKeyType!.startsWith('rsa')) return true;
  const pkcs8 = readBer(key.export({ type: 'pkcs8', format: 'der' }));
  const { children } = readBer(octetsOf(child(pkcs8, 2, tags.octets)));
  if (children.length !== fields.length) return false;
  const numbers = children.map(({ content }) => BigInt(`0x${content.toString('hex')}`));
  const { version, n, d, p, q, dp, dq, inverse } = Object.fromEntries(
    fields.map((field, i) => [field, numbers[i]!]),
  ) as Record<(typeof fields)[number], bigint>;
  if (version !== 0n || p <= 1n || q <= 1n || d >= n || p * q !== n) return false;
  return dp === d % (p - 1n) && dq === d % (q - 1n) && (inverse * q) % p === 1n;
}
