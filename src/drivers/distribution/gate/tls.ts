/**
 * TLS of the gate. The gate drops root privileges after its start, so it cannot read a renewed key: the worker sends it to a
 * socket in a folder that only root enters.
 *
 * Invariant: a certificate that cannot be used never replaces another one.
 */
import { readFileSync, rmSync } from 'node:fs';
import { createServer as createControlServer } from 'node:net';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';

const maxBytes = 1024 * 1024;
const silentMs = 10_000;

/** One PEM file with the certificate, its issuers and the key. */
export const readTls = (file: string) => tlsOf(readFileSync(file));

const tlsOf = (pem: Buffer) => ({ cert: pem, key: pem, minVersion: 'TLSv1.2' as const });

/** Listens for certificates at this path and answers each with `ok` or the reason of the refusal. */
export function acceptCertificates(server: Server, socket: string): void {
  rmSync(socket, { force: true });
  const control = createControlServer({ allowHalfOpen: true }, (connection) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    connection.setTimeout(silentMs, () => connection.destroy());
    connection.on('error', () => undefined);
    connection.on('data', (part: Buffer) => {
      parts.push(part);
      bytes += part.length;
      if (bytes > maxBytes) connection.destroy();
    });
    connection.on('end', () => {
      try {
        const tls = tlsOf(Buffer.concat(parts));
        createSecureContext(tls);
        server.setSecureContext(tls);
        connection.end('ok');
      } catch (error) {
        connection.end((error as Error).message);
      }
    });
  });
  control.listen(socket);
}
