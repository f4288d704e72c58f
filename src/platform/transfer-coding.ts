import type { IncomingMessage } from 'node:http';

export const onlyChunked = 'must be chunked; other transfer codings are not supported';

/** Of a coding before `chunked`, the parser of Node would pass on the body undecoded. RFC 9112, 6.1: 501. */
export function hasUnknownCoding({ headers }: IncomingMessage): boolean {
  const codings = headers['transfer-encoding'];
  return codings !== undefined && !/^[\t ,]*chunked$/i.test(codings);
}
