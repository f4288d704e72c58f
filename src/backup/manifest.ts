/**
 * The text of a manifest: one line of JSON for each table and each file. Registries have millions of files, and scheduled
 * backups are made by processes that serve requests, so a manifest is written and read in time slices.
 *
 *   {"checksum":"…","manifest":{…,"tables":[
 *   {…},
 *   {…}
 *   ],"files":[
 *   {…}
 *   ]}}
 */
import { createHash } from 'node:crypto';
import { createPause } from '../platform/event-loop.ts';
import { BackupError, type FileCopy, type Manifest, requireFormat, type TableCopy } from './format.ts';

const headPattern = /^\{"checksum":"([0-9a-f]{64})","manifest":$/;
const headOf = (checksum: string) => `{"checksum":"${checksum}","manifest":`;
const headBytes = headOf('0'.repeat(64)).length;
const end = '}\n';
/** The bytes that are converted or hashed at once. */
const chunkBytes = 256 * 1024;

/** Returns the text in chunks. */
export async function formatManifest({ tables, files, ...head }: Manifest): Promise<Buffer[]> {
  const pause = createPause();
  const hash = createHash('sha256');
  const chunks: Buffer[] = [];
  let text = `${JSON.stringify(head).slice(0, -1)},"tables":[`;
  const flush = () => {
    const chunk = Buffer.from(text);
    hash.update(chunk);
    chunks.push(chunk);
    text = '';
  };
  const addAll = async (entries: (TableCopy | FileCopy)[]) => {
    for (const [i, entry] of entries.entries()) {
      text += `${i === 0 ? '' : ','}\n${JSON.stringify(entry)}`;
      if (text.length < chunkBytes) continue;
      flush();
      await pause();
    }
    text += '\n]';
  };
  await addAll(tables);
  text += ',"files":';
  if (files) {
    text += '[';
    await addAll(files);
  } else {
    text += 'null';
  }
  text += '}';
  flush();
  return [Buffer.from(headOf(hash.digest('hex'))), ...chunks, Buffer.from(end)];
}

/** @throws BackupError for a manifest that was cut short or changed, or of another version of the format */
export async function parseManifest(bytes: Buffer, name: string): Promise<Manifest> {
  const checksum = headPattern.exec(bytes.toString('latin1', 0, headBytes))?.[1];
  const body = bytes.subarray(headBytes, -end.length);
  const isComplete = bytes.toString('latin1', Math.max(0, bytes.length - end.length)) === end;
  if (checksum === undefined || !isComplete || (await hashInSlices(body)) !== checksum) {
    throw new BackupError(`the manifest ${name} is damaged or was cut short; use another backup`);
  }
  const { rest, entries } = await readLines(body);
  const manifest = JSON.parse(rest) as Manifest;
  requireFormat(manifest.format, name);
  manifest.tables = entries['tables'] as TableCopy[];
  if (manifest.files) manifest.files = entries['files'] as FileCopy[];
  return manifest;
}

async function hashInSlices(bytes: Buffer): Promise<string> {
  const pause = createPause();
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    hash.update(bytes.subarray(at, at + chunkBytes));
    await pause();
  }
  return hash.digest('hex');
}

/** Parses the lines of tables and files. `rest`: the manifest without them. */
async function readLines(body: Buffer): Promise<{ rest: string; entries: Record<string, unknown[]> }> {
  const pause = createPause();
  const entries: Record<string, unknown[]> = { tables: [], files: [] };
  let list: unknown[] | undefined;
  let rest = '';
  for (let at = 0; at < body.length; ) {
    const newline = body.indexOf(10, at);
    const line = body.toString('utf8', at, newline === -1 ? body.length : newline);
    at = newline === -1 ? body.length : newline + 1;
    if (list && line.startsWith('{')) {
      list.push(JSON.parse(line.endsWith(',') ? line.slice(0, -1) : line));
      await pause();
      continue;
    }
    rest += line;
    const opened = /"(tables|files)":\[$/.exec(line)?.[1];
    list = opened === undefined ? undefined : entries[opened];
  }
  return { rest, entries };
}
