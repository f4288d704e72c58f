/** Sends requests to servers that customers name. public-address.ts decides which addresses they may have. */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { DEFAULT_CIPHERS } from 'node:tls';
import { Agent as HttpAgent, request as httpRequest } from '../platform/node-http.ts';

interface CustomerRequest extends Pick<RequestOptions, 'method' | 'headers' | 'signal' | 'lookup'> {
  body?: string;
  /** The server in the error of a closed connection: `the receiver`. */
  server: string;
}

/**
 * Without DHE: the server chooses its parameters, before its certificate is checked, and each handshake would block the process for
 * up to half a second. Browsers do not offer it either.
 */
const ciphers = `${DEFAULT_CIPHERS}:!kDHE`;

// Not the global agents: those may use a proxy, which would resolve names without the checks of addresses.
const agents = {
  'http:': new HttpAgent({ keepAlive: false }),
  'https:': new HttpsAgent({ keepAlive: false, ciphers }),
};

/** Of one response. Each costs as much as a response, and a server may send 100,000 of them a second. */
const maxInterimResponses = 16;

/** Resolves when the response begins. Redirects are not followed. @throws Error of the connection */
export function sendRequest(url: URL, { server, body, ...options }: CustomerRequest): Promise<IncomingMessage> {
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = open(url, { ...options, agent: agents[url.protocol as keyof typeof agents] });
    let interim = 0;
    request
      .on('error', reject)
      .on('information', () => {
        interim += 1;
        if (interim <= maxInterimResponses) return;
        request.destroy(new Error(`${server} sent more than ${maxInterimResponses} interim responses (1xx)`));
      })
      // Without an error, when the server responds with 101.
      .on('close', () => reject(new Error(`${server} closed the connection without a response`)))
      .on('response', resolve)
      .end(body);
  });
}

/**
 * Appends the beginning of a response to `chunks`, and closes the connection when it has this many bytes.
 * @throws Error of the connection; `chunks` has what arrived before
 */
export async function readBeginning(response: IncomingMessage, bytes: number, chunks: Buffer[]): Promise<void> {
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= bytes) break;
  }
}
