import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Converts via text, because a digest in a new buffer costs three times as much as the hash. */
export function sha256(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'binary'), 'binary');
}

/** A secret of 256 bits, safe in a URL and a shell. */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Compares in a time that does not depend on the position of the first difference. */
export function equalInConstantTime(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
