/** Credentials of the form `<id>$<secret>`: tokens and the cookies of sessions. */
import { equalInConstantTime, sha256 } from '../platform/crypto.ts';

/** A text without `$` is a secret with an empty id. */
export function splitSecret(text: string): { keyId: string; secret: string } {
  const at = text.indexOf('$');
  return { keyId: text.slice(0, Math.max(at, 0)), secret: text.slice(at + 1) };
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
      const { keyId, secret } = splitSecret(text);
      const hash = hashes.get(keyId);
      return hash !== undefined && equalInConstantTime(hash, sha256(secret));
    },
  };
}
