/** Calls the NULL procedure of an ONC RPC server, to check that it responds. */
import { connect } from 'node:net';

const CALL = 0;
const RPC_VERSION = 2;
const LAST_FRAGMENT = 0x8000_0000;
const TIMEOUT_MS = 2000;

export const PORTMAPPER = { program: 100_000, version: 2 };
export const NFS4 = { program: 100_003, version: 4 };

/** Resolves when the server responds. @throws Error after two seconds, or when it refuses the connection or the call */
export function callNull(
  address: { host: string; port: number },
  { program, version }: { program: number; version: number },
): Promise<void> {
  const call = [1, CALL, RPC_VERSION, program, version, 0, 0, 0, 0, 0];
  const message = Buffer.alloc(4 + call.length * 4);
  message.writeUInt32BE(LAST_FRAGMENT + call.length * 4, 0);
  call.forEach((word, index) => message.writeUInt32BE(word, 4 + index * 4));

  return new Promise((resolve, reject) => {
    const socket = connect(address, () => socket.write(message));
    let reply = Buffer.alloc(0);
    const finish = (err?: Error) => {
      socket.destroy();
      if (err) reject(err);
      else resolve();
    };
    socket.setTimeout(TIMEOUT_MS, () => finish(new Error('no response')));
    socket.on('error', finish);
    socket.on('close', () => finish(new Error('closed without a response')));
    socket.on('data', (data) => {
      reply = Buffer.concat([reply, data]);
      // Record mark, xid, REPLY, accepted, verifier (2 words), status: all but the first three are 0 in a successful reply.
      if (reply.length >= 28) finish(reply.readUInt32BE(24) === 0 ? undefined : new Error('refused'));
    });
  });
}
