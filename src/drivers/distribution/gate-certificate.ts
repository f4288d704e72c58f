/**
 * The certificate that the gate serves. It is stored in a file for the next start of the gate and sent to a running gate
 * through a socket, so that a renewal interrupts no push or pull.
 */
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, relative } from 'node:path';
import type { Certificate } from '../../platform/tls/certificate.ts';
import { ensureDurably } from '../durable-files.ts';
import type { Layout } from './layout.ts';

const timeoutMs = 10_000;
const file = 'tls.pem';
const socketName = 'tls.sock';

/** The paths of the file and of the socket, relative to the folder of the registries, the gate's working directory. */
export const certificateFile = ({ root, distribution }: Layout) => join(relative(root, distribution), file);
export const certificateSocket = ({ root, distribution }: Layout) => join(relative(root, distribution), socketName);

/** For the next start of the gate. Only root can read it. */
export function storeCertificate({ distribution }: Layout, { certificate, key }: Certificate): Promise<void> {
  return ensureDurably(join(distribution, file), `${certificate}\n${key}\n`);
}

/** @throws Error if the gate does not use it */
export async function sendCertificate({ distribution }: Layout, { certificate, key }: Certificate): Promise<void> {
  // The path of a socket is limited to about 100 characters.
  const folder = await open(distribution);
  try {
    const answer = await exchange(`/proc/self/fd/${folder.fd}/${socketName}`, `${certificate}\n${key}\n`);
    if (answer !== 'ok') throw new Error(`the gate refused the TLS certificate: ${answer}`);
  } finally {
    await folder.close();
  }
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
