/**
 * The key file: one `id base64key` a line. The first line is the current key, which encrypts; all keys decrypt.
 *
 * Invariant: the file is replaced or created atomically, and is durable before anything is encrypted with a key of it.
 */
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { EncryptionError, type EncryptionKey, type Keyring, keyringOf } from './encryption.ts';
import { shellWord } from './shell-word.ts';

const keyBytes = 32;

/** The key file is missing, damaged, or cannot be read or written. Nothing is encrypted or decrypted meanwhile. */
export class KeyFileError extends EncryptionError {}

/**
 * The keyring of a key file. The file is created when the first plaintext is encrypted, and read again when it changed, so a
 * new key takes effect at once. A process that has read it or missed it for a decryption never creates it: a host that lacks the
 * shared file reports an error instead of creating another key.
 */
export function openKeyFile(file: string): Keyring {
  let known: { stamp: string; keys: EncryptionKey[]; isSynced?: boolean } | undefined;
  let isNeeded = false;
  const missing = () =>
    new KeyFileError(
      `key file ${file} not found; restore it from another host or a backup (docs/guides/encryption-keys.md)`,
    );
  const read = (): EncryptionKey[] | undefined => {
    const stamp = stampOf(file);
    if (stamp === undefined && isNeeded) throw missing();
    if (stamp === undefined) return undefined;
    isNeeded = true;
    if (known?.stamp !== stamp) known = { stamp, keys: parseKeyFile(file, readKeyFile(file)) };
    return known.keys;
  };
  return keyringOf(file, {
    forDecrypting() {
      isNeeded = true;
      return read()!;
    },
    forEncrypting() {
      if (!read()) createKeyFile(file);
      const keys = read()!;
      // A process may have failed, or have been killed, after it had written the file and before it had synced the folder.
      if (!known!.isSynced) syncKeyFile(file);
      known!.isSynced = true;
      return keys;
    },
    check() {
      const keys = read();
      if (!keys) requireWritable(dirname(file));
      if (keys?.length === 0) throw new KeyFileError(`${file} has no key to encrypt with`);
    },
  });
}

/**
 * Adds a new key at the end of the key file, where it decrypts but does not encrypt, so that the file can be copied to other
 * hosts first. Creates the file if it does not exist. Returns the id of the key.
 */
export function addKey(file: string): string {
  if (stampOf(file) === undefined) createKeyFile(file);
  const line = newKeyLine();
  const text = readKeyFile(file);
  parseKeyFile(file, text);
  replaceKeyFile(file, `${text.replace(/\n?$/, '\n')}${line}`);
  return line.split(' ', 1)[0]!;
}

/** Makes a key the current key, by moving its line to the top. @throws EncryptionError for an unknown key */
export function useKey(file: string, id: string): void {
  const lines = readKeyFile(file).split('\n');
  parseKeyFile(file, lines.join('\n'));
  const at = lines.findIndex((line) => line.trim().split(/\s/)[0] === id);
  if (at < 0) throw new EncryptionError(`key ${id} not found in ${file}`);
  const [line] = lines.splice(at, 1);
  replaceKeyFile(file, [line, ...lines].join('\n'));
}

/** The ids of the keys in the file, the current key first. */
export function keyIds(file: string): string[] {
  return parseKeyFile(file, readKeyFile(file)).map(({ id }) => id);
}

/** Undefined when the file does not exist. */
function stampOf(file: string): string | undefined {
  let isLink: boolean;
  try {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
    if (stat) return [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ');
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found) return undefined;
    isLink = found.isSymbolicLink();
  } catch (cause) {
    throw unreadable(file, cause, '');
  }
  // Another process created the file after `statSync`.
  if (!isLink) return stampOf(file);
  // A file that is created through the link would be another key file if the target is on a disk that is not mounted.
  throw new KeyFileError(`the key file ${file} is a link to a file that does not exist`);
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw unreadable(file, cause, `; as root, run: chown ${process.getuid?.()} ${shellWord(file)}`);
  }
}

function unreadable(file: string, cause: unknown, fix: string): KeyFileError {
  const { code } = cause as NodeJS.ErrnoException;
  return new KeyFileError(`the key file ${file} cannot be read (${code})${code === 'EACCES' ? fix : ''}`, { cause });
}

function requireWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new KeyFileError(
      `the key file cannot be created in ${folder} (${code}); create it as root (docs/guides/encryption-keys.md)`,
      { cause },
    );
  }
}

/** Ignores empty lines and lines that begin with `#`. Messages name a line by its number and never show it. */
function parseKeyFile(file: string, text: string): EncryptionKey[] {
  const keys: EncryptionKey[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    const [, id, base64 = ''] = /^\s*([\w.-]{1,32})\s+([A-Za-z0-9+/]+=*)\s*$/.exec(line) ?? [];
    const key = Buffer.from(base64, 'base64');
    if (id === undefined || key.length !== keyBytes) {
      throw new KeyFileError(`${file}:${i + 1} must be an id, a space, and ${keyBytes} bytes in base64`);
    }
    if (keys.some((other) => other.id === id)) throw new KeyFileError(`${file}:${i + 1}: the id ${id} is listed twice`);
    keys.push({ id, key });
  }
  return keys;
}

/** Creates the file atomically; of two concurrent processes one succeeds, and both use its key. */
function createKeyFile(file: string): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const line = newKeyLine();
  try {
    sync(temporary, 'wx', (handle) => writeFileSync(handle, line));
    try {
      linkSync(temporary, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(temporary);
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new KeyFileError(`the key file ${file} cannot be created (${code})`, { cause });
  }
}

/** A folder that this process may not open, or cannot write, was written and synced by another one. */
const notWritable = new Set<string | undefined>(['EACCES', 'EPERM', 'EROFS', 'EINVAL']);

function syncKeyFile(file: string): void {
  try {
    sync(dirname(realpathSync(file)), 'r');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (notWritable.has(code)) return;
    throw new KeyFileError(`the folder of the key file ${file} cannot be synced (${code})`, { cause });
  }
}

function newKeyLine(): string {
  return `key-${randomBytes(4).toString('hex')} ${randomBytes(keyBytes).toString('base64')}\n`;
}

/** Replaces the file atomically; its owner and mode stay. A link to it stays, too. */
function replaceKeyFile(file: string, text: string): void {
  try {
    const path = realpathSync(file);
    const { uid, gid, mode } = statSync(path);
    // Beside the file, because a rename does not leave a filesystem.
    const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
    try {
      sync(temporary, 'wx', (handle) => writeFileSync(handle, text));
      chmodSync(temporary, mode & 0o777);
      if (process.getuid?.() === 0) chownSync(temporary, uid, gid);
      renameSync(temporary, path);
    } finally {
      rmSync(temporary, { force: true });
    }
    sync(dirname(path), 'r');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const fix = code === 'EACCES' ? '; run the command as root' : '';
    throw new KeyFileError(`the key file ${file} cannot be written (${code})${fix}`, { cause });
  }
}

/** Opens a new file, or a folder, and makes what `write` does durable. */
function sync(path: string, flags: 'wx' | 'r', write: (handle: number) => void = () => {}): void {
  const handle = openSync(path, flags, 0o600);
  try {
    write(handle);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
