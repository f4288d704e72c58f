/**
 * Encryption at rest: AES-256-GCM with keys that the database never sees.
 *
 * Invariant: what was encrypted for one context (a row's kind and id) decrypts for no other, so a ciphertext that is
 * copied to another row is refused like one that was changed. A ciphertext names its key, so an old key goes on
 * decrypting after a new one took its place at the top of the file.
 *
 * Ciphertext: version (1 byte), length of the key's id (1), key id, nonce (12), tag (16), data.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

export interface EncryptionKey {
  /** 1 to 32 of letters, digits, `.`, `_`, `-`. */
  id: string;
  /** 256 bits. */
  key: Buffer;
}

export interface Keyring {
  /** `context` says what the plaintext belongs to, such as `secret:<id>`; decrypting takes the same one. */
  encrypt(plaintext: Uint8Array, context: string): Buffer;
  /** @throws EncryptionError when the key is not there, or the ciphertext was changed or is of another context */
  decrypt(ciphertext: Uint8Array, context: string): Buffer;
  /** False when another key than the first one encrypted it: encrypt it anew, and the old key can go. */
  isCurrent(ciphertext: Uint8Array): boolean;
}

/** A fault that the operator mends: a lost or broken key file, a database that was tampered with. */
export class EncryptionError extends Error {}

const version = 1;
const algorithm = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** A keyring in memory; the first key is the current one. */
export function createKeyring(keys: EncryptionKey[]): Keyring {
  return keyringOf('the keyring', {
    forDecrypting: () => keys,
    forEncrypting: () => keys,
  });
}

/**
 * The keyring of a key file: one `id base64key` a line, the first line is the current key. The file is made when the
 * first plaintext is encrypted, and read anew when it changed, so a key that an operator adds counts at once. A process
 * that only decrypts never makes one: a host that lacks the shared file says so instead of inventing a key.
 */
export function openKeyFile(file: string): Keyring {
  let known: { stamp: string; keys: EncryptionKey[] } | undefined;
  const read = (): EncryptionKey[] | undefined => {
    const stamp = stampOf(file);
    if (stamp === undefined) return undefined;
    if (known?.stamp !== stamp) known = { stamp, keys: parseKeyFile(file, readKeyFile(file)) };
    return known.keys;
  };
  return keyringOf(file, {
    forDecrypting() {
      const keys = read();
      if (keys) return keys;
      throw new EncryptionError(
        `there is no key file ${file}; put the one there with which the secrets of this database were encrypted`,
      );
    },
    forEncrypting() {
      const keys = read();
      if (keys) return keys;
      makeKeyFile(file);
      return read()!;
    },
  });
}

/** Rows with a ciphertext, read page by page in the order of their ids. */
export interface Ciphertexts {
  after(id: string | null): Promise<{ id: string; ciphertext: Buffer }[]>;
  replace(id: string, old: Buffer, ciphertext: Buffer): Promise<void>;
}

/**
 * Encrypts with the current key what an older one encrypted, so that the older one can go. Returns how many these were.
 * May run at any time and in many processes. @throws EncryptionError for the first that does not decrypt, once all others
 * are done
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

/**
 * Puts a new key at the end of the key file, where it decrypts and does not encrypt yet: time to copy the file to other
 * hosts. Makes the file where there is none. Returns the key's id.
 */
export function addKey(file: string): string {
  if (stampOf(file) === undefined) makeKeyFile(file);
  const line = newKeyLine();
  const text = readKeyFile(file);
  parseKeyFile(file, text);
  replaceKeyFile(file, `${text.replace(/\n?$/, '\n')}${line}`);
  return line.split(' ', 1)[0]!;
}

/** Moves a key's line to the top, from where it encrypts. @throws EncryptionError when there is no such key */
export function useKey(file: string, id: string): void {
  const lines = readKeyFile(file).split('\n');
  parseKeyFile(file, lines.join('\n'));
  const at = lines.findIndex((line) => line.trim().split(/\s/)[0] === id);
  if (at < 0) throw new EncryptionError(`there is no key ${id} in ${file}`);
  const [line] = lines.splice(at, 1);
  replaceKeyFile(file, [line, ...lines].join('\n'));
}

/** The keys of the file, the current one first. */
export function keyIds(file: string): string[] {
  return parseKeyFile(file, readKeyFile(file)).map(({ id }) => id);
}

interface KeySource {
  forDecrypting(): EncryptionKey[];
  forEncrypting(): EncryptionKey[];
}

function keyringOf(name: string, source: KeySource): Keyring {
  return {
    encrypt(plaintext, context) {
      const [current] = source.forEncrypting();
      if (!current) throw new EncryptionError(`${name} has no key to encrypt with`);
      const head = headOf(current.id);
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, current.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.concat([head, Buffer.from(context)]));
      const data = Buffer.concat([cipher.update(plaintext), cipher.final()]);
      return Buffer.concat([head, nonce, cipher.getAuthTag(), data]);
    },

    decrypt(ciphertext, context) {
      const { keyId, head, nonce, tag, data } = partsOf(ciphertext, context);
      const key = source.forDecrypting().find((candidate) => candidate.id === keyId);
      if (!key) {
        throw new EncryptionError(
          `${context} was encrypted with the key ${keyId}, which is not in ${name}; put its line back, below the first`,
        );
      }
      const decipher = createDecipheriv(algorithm, key.key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(Buffer.concat([head, Buffer.from(context)]));
      decipher.setAuthTag(tag);
      try {
        return Buffer.concat([decipher.update(data), decipher.final()]);
      } catch {
        throw new EncryptionError(
          `${context} does not decrypt with the key ${keyId} of ${name}: its ciphertext was changed or belongs to ` +
            'something else, or another key has this id',
        );
      }
    },

    isCurrent(ciphertext) {
      return partsOf(ciphertext, 'a ciphertext').keyId === source.forDecrypting()[0]?.id;
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
    throw new EncryptionError(`${context} is no ciphertext of this version of Cloudyard`);
  }
  return {
    head: ciphertext.subarray(0, nonceAt),
    keyId: ciphertext.toString('latin1', 2, nonceAt),
    nonce: ciphertext.subarray(nonceAt, tagAt),
    tag: ciphertext.subarray(tagAt, dataAt),
    data: ciphertext.subarray(dataAt),
  };
}

/** Undefined when there is no such file. */
function stampOf(file: string): string | undefined {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat && [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ');
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new EncryptionError(`the key file ${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, {
      cause,
    });
  }
}

/** Empty lines and lines that begin with `#` are passed over. Messages name lines and never show one. */
function parseKeyFile(file: string, text: string): EncryptionKey[] {
  const keys: EncryptionKey[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, id, base64 = ''] = /^\s*([\w.-]{1,32})\s+([A-Za-z0-9+/]+=*)\s*$/.exec(line) ?? [];
    const key = Buffer.from(base64, 'base64');
    if (id === undefined || key.length !== keyBytes) {
      throw new EncryptionError(`${file}:${i + 1} is not an id, a space, and ${keyBytes} bytes in base64`);
    }
    if (keys.some((other) => other.id === id))
      throw new EncryptionError(`${file}:${i + 1}: the id ${id} is there twice`);
    keys.push({ id, key });
  }
  return keys;
}

/** Makes the file whole or not at all; of two processes at once one wins, and both use its key. */
function makeKeyFile(file: string): void {
  const random = randomBytes(4).toString('hex');
  const unnamed = `${file}.${process.pid}.${random}`;
  const line = newKeyLine();
  try {
    syncedWrite(unnamed, line);
    try {
      linkSync(unnamed, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(unnamed);
    }
    syncDirectory(dirname(file));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new EncryptionError(`the key file ${file} cannot be made (${code})`, { cause });
  }
}

function newKeyLine(): string {
  return `key-${randomBytes(4).toString('hex')} ${randomBytes(keyBytes).toString('base64')}\n`;
}

/** Whole or not at all; whoever owned the file owns it still. */
function replaceKeyFile(file: string, text: string): void {
  const unnamed = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    const path = realpathSync(file);
    const { uid, gid, mode } = statSync(path);
    syncedWrite(unnamed, text);
    chmodSync(unnamed, mode & 0o777);
    if (process.getuid?.() === 0) chownSync(unnamed, uid, gid);
    renameSync(unnamed, path);
    syncDirectory(dirname(path));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new EncryptionError(`the key file ${file} cannot be written (${code})`, { cause });
  }
}

function syncedWrite(file: string, text: string): void {
  const handle = openSync(file, 'wx', 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** What is encrypted next must not outlive its key. */
function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
