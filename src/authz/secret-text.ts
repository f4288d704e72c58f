/** Credentials of the form `<id>$<secret>`: tokens and the cookies of sessions. */
import { randomBytes } from 'node:crypto';
import { equalInConstantTime, randomSecret, sha256 } from '../platform/crypto.ts';

interface Credential {
  keyId: string;
  secretHash: Buffer;
}

export function newCredential(): Credential & { text: string } {
  const keyId = randomBytes(6).toString('hex');
  const secret = randomSecret();
  return { keyId, secretHash: sha256(secret), text: `${keyId}$${secret}` };
}

/** A text without `$` is a secret with an empty id. */
export function readCredential(text: string): Credential {
  const at = text.indexOf('$');
  return { keyId: text.slice(0, Math.max(at, 0)), secretHash: sha256(text.slice(at + 1)) };
}

/** An entry takes about 200 bytes. */
const maxEntries = 100_000;

/** Hashes of the secrets that were valid at their last use, by key id. */
export function createRecognized() {
  const hashes = new Map<string, Buffer>();
  return {
    add(keyId: string, hash: Buffer): void {
      if (hashes.size < maxEntries) hashes.set(keyId, hash);
    },
    delete(keyId: string): void {
      hashes.delete(keyId);
    },
    /** Whether the credential was valid at its last use. Needs no query; it may have been revoked since. */
    has(text: string): boolean {
      const { keyId, secretHash } = readCredential(text);
      const hash = hashes.get(keyId);
      return hash !== undefined && equalInConstantTime(hash, secretHash);
    },
  };
}
