/** A webhook receiver on loopback that records calls. The test sets its response. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Call {
  at: number;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Respond = (response: ServerResponse, call: Call) => void;

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

const ok: Respond = (response) => void response.writeHead(200).end('thanks');

export async function startWebhookReceiver() {
  const calls: Call[] = [];
  let how = ok;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const call = { at: performance.now(), path: request.url ?? '', headers: request.headers, body };
      calls.push(call);
      how(response, call);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${at}/hook`,
    port: at,
    calls,
    /** Sets the response to later calls; the default is 200. */
    answer(next = ok): void {
      how = next;
    },
    async stop(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
