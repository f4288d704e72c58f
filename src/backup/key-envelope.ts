/**
 * Encrypts the key file for a backup: with a passphrase (scrypt and AES-256-GCM), or for an age recipient by the program
 * `age`, so that the server that makes backups cannot read them.
 *
 * With a passphrase: version (1 byte), salt (16), nonce (12), tag (16), data. The id of the backup is authenticated, too.
 */
import { once } from 'node:events';
import { createCipheriv, createDecipheriv, randomBytes, scrypt, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { startChild } from '../platform/child-process.ts';
import { BackupError, type SealedKeys } from './format.ts';

export type KeyProtection = { passphrase: string } | { ageRecipient: string };
export type KeyOpener = { passphrase: string | undefined; ageIdentityFile: string | undefined };

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
/** 128 MiB for each guess. */
const cost: ScryptOptions = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };
const version = 1;
const [saltAt, nonceAt, tagAt, dataAt] = [1, 17, 29, 45];

/**
 * Encrypts the text of a key file. A passphrase takes about half a second and 128 MiB (scrypt, RFC 7914).
 * @throws BackupError if `age` is missing or rejects the recipient
 */
export async function sealKeys(text: Buffer, backupId: string, protection: KeyProtection): Promise<SealedKeys> {
  if ('ageRecipient' in protection) {
    const sealed = await runAge(['--encrypt', '--recipient', protection.ageRecipient], text);
    return { method: 'age', data: sealed.toString('base64') };
  }
  const [salt, nonce] = [randomBytes(16), randomBytes(12)];
  const cipher = createCipheriv('aes-256-gcm', await derive(protection.passphrase, salt, 32, cost), nonce);
  cipher.setAAD(Buffer.from(backupId));
  const data = Buffer.concat([cipher.update(text), cipher.final()]);
  const sealed = Buffer.concat([Buffer.of(version), salt, nonce, cipher.getAuthTag(), data]);
  return { method: 'passphrase', data: sealed.toString('base64') };
}

/** @throws BackupError without the passphrase or identity, or with a wrong one */
export async function openKeys(keys: SealedKeys, backupId: string, opener: KeyOpener): Promise<Buffer> {
  const sealed = Buffer.from(keys.data, 'base64');
  if (keys.method === 'age') {
    if (opener.ageIdentityFile === undefined) {
      throw new BackupError('the keys of the backup are encrypted with age; pass --age-identity FILE');
    }
    return runAge(['--decrypt', '--identity', opener.ageIdentityFile], sealed);
  }
  if (opener.passphrase === undefined) {
    throw new BackupError(
      'the keys of the backup are encrypted with a passphrase; set CLOUDYARD_BACKUP_PASSPHRASE_FILE to a file that has it',
    );
  }
  if (sealed[0] !== version || sealed.length < dataAt)
    throw new BackupError('the keys of the backup have an unknown format');
  const key = await derive(opener.passphrase, sealed.subarray(saltAt, nonceAt), 32, cost);
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(nonceAt, tagAt));
  decipher.setAAD(Buffer.from(backupId));
  decipher.setAuthTag(sealed.subarray(tagAt, dataAt));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(dataAt)), decipher.final()]);
  } catch {
    throw new BackupError('the passphrase does not decrypt the keys of the backup');
  }
}

async function runAge(args: string[], input: Buffer): Promise<Buffer> {
  const child = await startChild('age', args, { stdio: 'pipe' }).catch(({ code }: NodeJS.ErrnoException) => {
    const remedy = code === 'ENOENT' ? '; install it: apt-get install age' : '';
    throw new BackupError(`the program age cannot be run (${code})${remedy}`);
  });
  const [output, errors]: [Buffer[], Buffer[]] = [[], []];
  child.stdout!.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr!.on('data', (chunk: Buffer) => errors.push(chunk));
  // A program that ends early closes its input; its exit code says why.
  child.stdin!.on('error', () => {});
  child.stdin!.end(input);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (code === 0) return Buffer.concat(output);
  if (signal) throw new BackupError(`the program age was ended by ${signal}`);
  const [reason = ''] = Buffer.concat(errors).toString().trim().split('\n');
  throw new BackupError(`age failed: ${reason.replace(/^age: (error: )?/, '')}`);
}
