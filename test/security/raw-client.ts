/** A client that sends arbitrary bytes and records the response. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawClient {
  socket: Socket;
  /** The bytes received so far. */
  received(): string;
  /** Status codes of the responses so far. Bodies must not contain a status line. */
  statuses(): number[];
  send(bytes: string | Buffer): void;
  /** Resolves with all received bytes when the connection is closed or fails. */
  closed: Promise<string>;
}

interface RawClientOptions {
  port: number;
  /** The address to connect from. */
  from?: string;
  /** False: nothing is read until `socket.resume()`. */
  reads?: boolean;
}

export async function rawClient({ port, from, reads = true }: RawClientOptions): Promise<RawClient> {
  const socket = connect({ host: '127.0.0.1', port, ...(from && { localAddress: from }) });
  let text = '';
  socket.on('error', () => undefined);
  if (reads) socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(text)));
  await Promise.race([once(socket, 'connect').catch(() => undefined), closed]);
  return {
    socket,
    received: () => text,
    statuses: () => [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status)),
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    closed,
  };
}

/** Sends bytes on a new connection. Resolves with the client when the server closes the connection. */
export async function exchange(port: number, bytes: string | Buffer, seconds = 20): Promise<RawClient> {
  const client = await rawClient({ port });
  client.send(bytes);
  const timer = setTimeout(() => client.socket.destroy(), seconds * 1000);
  await client.closed;
  clearTimeout(timer);
  return client;
}

export function withinSeconds<T>(promise: Promise<T>, seconds: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what}`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
