import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** By way of text, because a buffer of its own would cost three times as much as the hash. */
export function sha256(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'binary'), 'binary');
}

/** A secret of 256 bits, safe in a URL and a shell. */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Compares in a time that does not depend on where the two differ. */
export function equalInConstantTime(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
