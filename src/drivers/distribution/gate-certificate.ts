/**
 * The certificate that the gate serves. It is stored in a file for the next start of the gate and sent to a running gate
 * through a socket, so that a renewal interrupts no push or pull.
 */
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, relative } from 'node:path';
import type { Certificate, CertificateSource } from '../../platform/tls/certificate.ts';
import { ensureDurably } from '../durable-files.ts';
import type { Layout } from './layout.ts';

const timeoutMs = 10_000;
const file = 'tls.pem';
const socketName = 'tls.sock';

/** The paths of the file and of the socket, relative to the folder of the registries, the gate's working directory. */
export const certificateFile = ({ root, distribution }: Layout) => join(relative(root, distribution), file);
export const certificateSocket = ({ root, distribution }: Layout) => join(relative(root, distribution), socketName);

/** `openSource`: opens the certificate that clients get, which may be shared and outlive the driver; null: plain HTTP. */
export function createGateCertificate(layout: Layout, openSource: (() => Promise<CertificateSource>) | null) {
  let source: CertificateSource | null = null;
  /** What the gate serves. */
  let served: Certificate | null = null;
  return {
    hasTls: openSource !== null,

    /** Calls `onChange` for each new certificate, until `close`. */
    async open(onChange: (isOpen: () => boolean) => void): Promise<void> {
      if (source || !openSource) return;
      const opened = await openSource();
      opened.onChange(() => onChange(() => source === opened));
      source = opened;
    },

    async close(): Promise<void> {
      await source?.stop();
      source = null;
    },

    /** False until an ACME server has issued the first certificate. */
    isKnown: () => openSource === null || Boolean(source?.current()),

    problem: () => source?.problem() ?? null,

    /** For the next start of the gate. */
    async store(): Promise<void> {
      const certificate = source?.current();
      if (certificate) await storeCertificate(layout, certificate);
    },

    /** The gate was started or adopted: an adopted one may serve an older certificate. */
    forgetServed: () => void (served = null),

    /** Sends the current certificate to a running gate that serves another one. */
    async renew(): Promise<void> {
      const certificate = source?.current();
      if (!certificate || certificate === served) return;
      await storeCertificate(layout, certificate);
      await sendCertificate(layout, certificate);
      served = certificate;
    },
  };
}

/** Only root can read the file. */
function storeCertificate({ distribution }: Layout, { certificate, key }: Certificate): Promise<void> {
  return ensureDurably(join(distribution, file), `${certificate}\n${key}\n`);
}

/** @throws Error if the gate does not use it */
async function sendCertificate({ distribution }: Layout, { certificate, key }: Certificate): Promise<void> {
  // The path of a socket is limited to about 100 characters.
  await using folder = await open(distribution);
  const answer = await exchange(`/proc/self/fd/${folder.fd}/${socketName}`, `${certificate}\n${key}\n`);
  if (answer !== 'ok') throw new Error(`the gate refused the TLS certificate: ${answer}`);
}

function exchange(path: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let answer = '';
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('the gate did not answer')));
    socket.setEncoding('utf8').on('data', (part: string) => (answer += part));
    socket.once('error', reject).once('end', () => resolve(answer));
    socket.end(text);
  });
}
