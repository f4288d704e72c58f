/**
 * Error responses of distribution without details that are only for the operator.
 *
 * Distribution describes errors without a code of their own, such as those of its storage, in `detail` of the code UNKNOWN, with
 * paths of this host, and writes them to its log. The first error determines the status, so a response with a status below 500
 * may contain them, too: a manifest may name a missing blob and one that cannot be read.
 */
import type { IncomingMessage } from 'node:http';
import { Refusal } from './refusal.ts';

/** Several hundred errors. Further ones are omitted: parsing them would block other requests. */
const maxBytes = 64 * 1024;

/**
 * Whether these errors, from `publicErrors`, may be the fault of the storage: distribution reports a file that it cannot read as
 * UNKNOWN, and an incomplete link as DIGEST_INVALID: of a layer beside the digest, and of a manifest in response to its deletion.
 */
export function areOfStorage(errors: string, method: string): boolean {
  const codes = new Set((JSON.parse(errors) as { errors: { code: string }[] }).errors.map(({ code }) => code));
  const hasIncompleteLink = codes.has('DIGEST_INVALID') && (method === 'DELETE' || codes.has('MANIFEST_BLOB_UNKNOWN'));
  return codes.has('UNKNOWN') || hasIncompleteLink;
}

/**
 * The body to send instead of that of `answer`, or null to send the response unchanged.
 * @throws Refusal to send instead of a server error
 */
export async function publicErrors(answer: IncomingMessage): Promise<string | null> {
  const status = answer.statusCode!;
  if (status >= 500) throw new Refusal(status, 'UNKNOWN', 'internal error; see the log of distribution on the server');
  if (status < 400 || !answer.headers['content-type']?.startsWith('application/json')) return null;
  const { errors } = JSON.parse(await firstErrors(answer)) as { errors: { code: string; detail?: unknown }[] };
  const shown = errors.map(({ detail, ...error }) => (error.code === 'UNKNOWN' ? error : { ...error, detail }));
  return `${JSON.stringify({ errors: shown })}\n`;
}

/** The body to send with 416. Distribution declares the length of the blob, and then sends no body. */
export function rangeErrors(answer: IncomingMessage): string {
  answer.on('error', () => undefined).resume();
  return `${JSON.stringify({ errors: [{ code: 'RANGE_INVALID', message: 'the range is invalid or outside of the blob' }] })}\n`;
}

async function firstErrors(answer: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    parts.push(part);
    bytes += part.length;
    if (bytes > maxBytes) break;
  }
  const text = Buffer.concat(parts).toString();
  if (bytes <= maxBytes) return text;
  // Quotes in a text are escaped, so neither of these is part of one.
  const next = text.lastIndexOf(',{"code":');
  return next < 0 ? `${text.slice(0, text.indexOf(',"detail":'))}}]}` : `${text.slice(0, next)}]}`;
}
