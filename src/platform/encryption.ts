/**
 * Encryption at rest: AES-256-GCM with keys that are never in the database.
 *
 * Invariant: a ciphertext decrypts only in its own context (the kind and id of a row), so a ciphertext that was copied to
 * another row is refused like one that was modified. A ciphertext names its key, so an old key still decrypts after a new
 * key replaced it at the top of the file.
 *
 * Ciphertext: version (1 byte), length of the key's id (1), key id, nonce (12), tag (16), data.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

export interface EncryptionKey {
  /** 1 to 32 of letters, digits, `.`, `_`, `-`. */
  id: string;
  /** 256 bits. */
  key: Buffer;
}

export type Keyring = ReturnType<typeof keyringOf>;

/** An error that the operator has to fix: a lost or broken key file, a modified database. */
export class EncryptionError extends Error {}

const version = 1;
const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** A keyring in memory; the first key is the current key. */
export function createKeyring(keys: EncryptionKey[]): Keyring {
  return keyringOf('the keyring', {
    forDecrypting: () => keys,
    forEncrypting: () => keys,
    check: () => undefined,
  });
}

/** Rows with a ciphertext, in pages in the order of their ids. */
export interface Ciphertexts {
  after(id: string | null): Promise<{ id: string; ciphertext: Buffer }[]>;
  replace(id: string, old: Buffer, ciphertext: Buffer): Promise<void>;
}

/**
 * Encrypts with the current key the rows that an older key encrypted, so that the older key can be removed. Returns their
 * number. May run at any time and in many processes. @throws EncryptionError for the first row that does not decrypt, after
 * all others are done
 */
export async function reencryptAll(
  keyring: Keyring,
  contextOf: (id: string) => string,
  rows: Ciphertexts,
): Promise<number> {
  let count = 0;
  let failure: unknown;
  for (let page = await rows.after(null); page.length > 0; page = await rows.after(page.at(-1)!.id)) {
    for (const { id, ciphertext } of page) {
      try {
        if (keyring.isCurrent(ciphertext)) continue;
        const context = contextOf(id);
        await rows.replace(id, ciphertext, keyring.encrypt(keyring.decrypt(ciphertext, context), context));
        count++;
      } catch (error) {
        if (!(error instanceof EncryptionError)) throw error;
        failure ??= error;
      }
    }
  }
  if (failure) throw failure;
  return count;
}

/** Where a keyring gets its keys; the first one is the current key. */
interface KeySource {
  forDecrypting(): EncryptionKey[];
  forEncrypting(): EncryptionKey[];
  /** @throws EncryptionError */
  check(): void;
}

/** `name`: of the source, for messages. */
export function keyringOf(name: string, source: KeySource) {
  return {
    /** `context` identifies the owner of the plaintext, such as `secret:<id>`; `decrypt` needs the same context. */
    encrypt(plaintext: Uint8Array, context: string): Buffer {
      const [current] = source.forEncrypting();
      if (!current) throw new EncryptionError(`${name} has no key to encrypt with`);
      const head = headOf(current.id);
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, current.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.concat([head, Buffer.from(context)]));
      const data = Buffer.concat([cipher.update(plaintext), cipher.final()]);
      return Buffer.concat([head, nonce, cipher.getAuthTag(), data]);
    },

    /** @throws EncryptionError when the key is missing, or the ciphertext was modified or has another context */
    decrypt(ciphertext: Uint8Array, context: string): Buffer {
      const { keyId, head, nonce, tag, data } = partsOf(ciphertext, context);
      const key = source.forDecrypting().find((candidate) => candidate.id === keyId);
      if (!key) {
        throw new EncryptionError(
          `${context} was encrypted with key ${keyId}, which is not in ${name}; restore its line below the first line`,
        );
      }
      const decipher = createDecipheriv(algorithm, key.key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(Buffer.concat([head, Buffer.from(context)]));
      decipher.setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(data), decipher.final()]);
      } catch {
        throw new EncryptionError(
          `${context} does not decrypt with key ${keyId} of ${name}: the ciphertext was modified or belongs to another ` +
            'row, or a different key has this id',
        );
      }
    },

    /** False when an older key encrypted it: re-encrypt it, then the old key can be removed. */
    isCurrent(ciphertext: Uint8Array): boolean {
      return partsOf(ciphertext, 'a ciphertext').keyId === source.forDecrypting()[0]?.id;
    },

    /** Why this process cannot use the keys, with the command that fixes it; or null. */
    findProblem(): string | null {
      try {
        source.check();
        return null;
      } catch (error) {
        if (error instanceof EncryptionError) return error.message;
        throw error;
      }
    },
  };
}

function headOf(keyId: string): Buffer {
  return Buffer.concat([Buffer.from([version, keyId.length]), Buffer.from(keyId, 'latin1')]);
}

function partsOf(bytes: Uint8Array, context: string) {
  const ciphertext = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const nonceAt = 2 + (ciphertext[1] ?? 0);
  const tagAt = nonceAt + nonceBytes;
  const dataAt = tagAt + tagBytes;
  if (ciphertext[0] !== version || ciphertext.length < dataAt) {
    throw new EncryptionError(`${context} is not a ciphertext of this version of Cloudyard`);
  }
  return {
    head: ciphertext.subarray(0, nonceAt),
    keyId: ciphertext.toString('latin1', 2, nonceAt),
    nonce: ciphertext.subarray(nonceAt, tagAt),
    tag: ciphertext.subarray(tagAt, dataAt),
    data: ciphertext.subarray(dataAt),
  };
}
