/**
 * PEM: blocks of base64 between BEGIN and END lines. Text between blocks is dropped, and blocks are always encoded again,
 * so that no text of a client reaches a file of a driver.
 */
export interface PemBlock {
  /** Such as `CERTIFICATE`. */
  label: string;
  bytes: Buffer;
  encrypted: boolean;
}

/** Its message describes the error without quoting the text. */
export class PemError extends Error {}

const begin = '-----BEGIN ';
const dashes = '-----';

export function isPem(text: string): boolean {
  return text.includes(begin);
}

/** The blocks in their order; none for text without any. @throws PemError */
export function readPem(text: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  let at = text.indexOf(begin);
  while (at >= 0) {
    const labelEnd = text.indexOf(dashes, at + begin.length);
    const label = text.slice(at + begin.length, labelEnd);
    const nth = `block ${blocks.length + 1}`;
    if (labelEnd < 0 || !/^[A-Z0-9 ]{1,40}$/.test(label)) throw new PemError(`${nth} has an invalid BEGIN line`);
    const end = `${dashes}END ${label}${dashes}`;
    const bodyEnd = text.indexOf(end, labelEnd);
    if (bodyEnd < 0) throw new PemError(`${nth} has no line ${end}`);
    blocks.push(blockOf(label, text.slice(labelEnd + dashes.length, bodyEnd), nth));
    at = text.indexOf(begin, bodyEnd + end.length);
  }
  return blocks;
}

export function writePem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `${begin}${label}${dashes}\n${lines.join('\n')}\n${dashes}END ${label}${dashes}\n`;
}

function blockOf(label: string, body: string, nth: string): PemBlock {
  // Old encrypted keys have headers, and an empty line after them.
  const encrypted = label === 'ENCRYPTED PRIVATE KEY' || body.includes('ENCRYPTED');
  if (encrypted) return { label, bytes: Buffer.alloc(0), encrypted };
  const bytes = fromBase64(body);
  if (!bytes) throw new PemError(`${nth} (${label}) is not base64`);
  return { label, bytes, encrypted };
}

/** Null if the text is not base64. White space is ignored. */
export function fromBase64(text: string): Buffer | null {
  const base64 = text.replace(/\s+/g, '');
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return null;
  return Buffer.from(base64, 'base64');
}
