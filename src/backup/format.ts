/**
 * The format of backups. A store is a directory:
 *
 *   cloudyard-backups.json     identifies the directory and the version of its format
 *   <id>.json                  the manifest of one backup
 *   blocks/<ab>/<sha256>.zst   at most 4 MiB of a table or a file, compressed; the name is the SHA-256 of the plain bytes
 *
 * Backups share equal blocks, so a further backup stores only what changed. A backup as a stream is the same as a tar archive.
 *
 * Invariant: the manifest is written last and has a checksum, and it names each block by its hash. So a backup is either
 * complete or absent, and every changed bit is detected.
 */
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';

/** A backup that cannot be written or read. */
export class BackupError extends Error {}

export const formatVersion = 1;
export const storeFile = 'cloudyard-backups.json';
export const maxBlockBytes = 4 * 1024 * 1024;

export interface TableCopy {
  schema: string;
  name: string;
  columns: string[];
  rows: number;
  /** The blocks of its rows in the text format of COPY. */
  blocks: string[];
}

export interface SequenceCopy {
  schema: string;
  name: string;
  last: string;
  isCalled: boolean;
}

export interface FileCopy {
  /** Relative to the data directory. */
  path: string;
  /** Present: `path` and `link` have a character for each byte, because one of them is not UTF-8. */
  encoding?: 'latin1';
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtimeMs: number;
  /** Absent: a directory. A target: a symbolic link. */
  link?: string;
  /** Null: a block of zeros, which is a hole after the restore. */
  blocks?: (string | null)[];
}

export interface ConfigurationCopy {
  name: string;
  text: string;
}

/** The key file, encrypted with a passphrase or for an age recipient. */
export interface SealedKeys {
  method: 'passphrase' | 'age';
  /** Base64. */
  data: string;
}

export interface SchemaVersion {
  /** Name of the newest migration, such as `0008_requested_runs`. */
  migration: string;
  /** Its time in the journal of migrations, which orders them. */
  when: number;
}

export interface Manifest {
  format: typeof formatVersion;
  id: string;
  createdAt: string;
  /** Of Cloudyard. */
  version: string;
  schema: SchemaVersion;
  /** Why it was made. */
  reason: 'command' | 'schedule' | 'migration';
  tables: TableCopy[];
  sequences: SequenceCopy[];
  configuration: ConfigurationCopy[];
  /** Null: the keys are not in the backup. */
  keys: SealedKeys | null;
  /** Null: without the data of tenants. */
  files: FileCopy[] | null;
}

/** Of all tables. */
export const rowCount = ({ tables }: Manifest): number => tables.reduce((sum, { rows }) => sum + rows, 0);

/** SHA-256 in hexadecimal. */
export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The path of a block in a store, relative to it. */
export const blockPath = (hash: string): string => `blocks/${hash.slice(0, 2)}/${hash}.zst`;

export const isBackupId = (text: string): boolean => /^\d{8}T\d{6}\.\d{3}Z$/.test(text);
/** The instant in UTC without separators, such as `20260102T030405.678Z`, so that ids sort by time. */
export const backupIdOf = (instant: Date): string => instant.toISOString().replace(/[-:]/g, '');

/** `name`: of the file, for the message. @throws BackupError if another version wrote it */
export function requireFormat(format: unknown, name: string): void {
  if (format === formatVersion) return;
  throw new BackupError(`${name} has format ${String(format)}, but this version reads format ${formatVersion} only`);
}

/** All blocks that the backup refers to, some of them several times. */
export function* blocksOf({ tables, files }: Manifest): Generator<string> {
  for (const { blocks } of tables) yield* blocks;
  for (const { blocks = [] } of files ?? []) for (const hash of blocks) if (hash !== null) yield hash;
}

/** The path and target of a link, which have a character for each byte, as they are stored. */
export function namesOf(path: string, link?: string): Pick<FileCopy, 'path' | 'link' | 'encoding'> {
  const [pathBytes, linkBytes] = [path, link ?? ''].map((text) => Buffer.from(text, 'latin1')) as [Buffer, Buffer];
  if (!isUtf8(pathBytes) || !isUtf8(linkBytes)) {
    return { path, encoding: 'latin1', ...(link === undefined ? {} : { link }) };
  }
  return { path: pathBytes.toString(), ...(link === undefined ? {} : { link: linkBytes.toString() }) };
}

/** The path of a stored file with a character for each byte. */
export const pathBytesOf = ({ path, encoding }: FileCopy): string =>
  Buffer.from(path, encoding ?? 'utf8').toString('latin1');
