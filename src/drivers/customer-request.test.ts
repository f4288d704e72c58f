/** Requests to servers of customers that respond in unusual ways. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { aCertificate, aKey } from '../resources/secrets/test-certificates.ts';
import { sendRequest } from './customer-request.ts';

let server: Server | undefined;
const sockets = new Set<Socket>();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server!.close(resolve));
});

/** A server that calls `respond` when a request has begun. */
async function serverThat(respond: (socket: Socket) => void): Promise<URL> {
  server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', () => respond(socket));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

const send = (url: URL) => sendRequest(url, { server: 'the receiver', signal: AbortSignal.timeout(10_000) });

it('a server that sends interim responses without end is left at once', async () => {
  const interim = 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(2000);
  const url = await serverThat((socket) => {
    const flood = () => {
      while (!socket.destroyed && socket.write(interim));
    };
    socket.on('drain', flood);
    flood();
  });
  await expect(send(url)).rejects.toThrow('the receiver sent more than 16 interim responses (1xx)');
});

it('a server may send some interim responses', async () => {
  const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(8);
  const url = await serverThat((socket) => socket.end(`${interim}HTTP/1.1 204 No Content\r\n\r\n`));
  const response = await send(url);
  expect(response.statusCode).toBe(204);
  response.resume();
});

it('a server cannot choose a key exchange whose cost it decides', async () => {
  const { pem: cert, keyPem: key } = aCertificate({ key: aKey('rsa') });
  // With parameters of 8,192 bits, which a server may choose, the exchange takes a processor for 0.25 s.
  const options = { cert, key, dhparam: 'auto', ciphers: 'DHE-RSA-AES256-GCM-SHA384', maxVersion: 'TLSv1.2' } as const;
  server = createTlsServer(options, (socket) => sockets.add(socket)).on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await expect(send(url)).rejects.toThrow(/handshake failure/);
});
