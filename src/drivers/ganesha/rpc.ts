/** Calls procedures of an ONC RPC server. */
import { connect } from 'node:net';
import { recordOf, words } from '../xdr.ts';

const CALL = 0;
const RPC_VERSION = 2;
const TIMEOUT_MS = 2000;

export const PORTMAPPER = { program: 100_000, version: 2 };
export const NFS4 = { program: 100_003, version: 4 };

type Address = { host: string; port: number } | { path: string };

/** Checks that a server responds. @throws as `call` */
export function callNull(address: Address, server: { program: number; version: number }): Promise<void> {
  return call(address, { ...server, procedure: 0 });
}

/**
 * Resolves when the server has executed the call, whatever its result. `parameters`: in XDR.
 * @throws Error after two seconds, or when it refuses the connection or the call
 */
export function call(
  address: Address,
  server: { program: number; version: number; procedure: number },
  parameters = Buffer.alloc(0),
): Promise<void> {
  const { program, version, procedure } = server;
  const message = Buffer.concat([words(1, CALL, RPC_VERSION, program, version, procedure, 0, 0, 0, 0), parameters]);
  return new Promise((resolve, reject) => {
    const socket = connect(address, () => socket.write(recordOf(message)));
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
