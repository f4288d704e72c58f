/** Calls procedures of ONC RPC servers over TCP. Source: RFC 5531. */
import { connect, type NetConnectOpts } from 'node:net';
import { words } from './xdr.ts';

const CALL = 0;
const RPC_VERSION = 2;
const LAST_FRAGMENT = 0x8000_0000;
const TIMEOUT_MS = 2000;
const NOBODY = words(0, 0);

export const PORTMAPPER = { program: 100_000, version: 2 };
export const NFS4 = { program: 100_003, version: 4 };

type Server = typeof NFS4;
type Procedure = Server & { procedure: number };

interface Reply {
  /** The index of the call; -1: the reply is too short to have one. */
  index: number;
  /** In XDR; null: the server refused the call. */
  results: Buffer | null;
}

/** Checks that a server responds. @throws as `call` */
export function callNull(address: NetConnectOpts, server: Server): Promise<void> {
  return call(address, { ...server, procedure: 0 });
}

/**
 * Resolves when the server has executed the call, whatever its result. `parameters`: in XDR.
 * @throws Error after two seconds, or when it refuses the connection or the call
 */
export async function call(address: NetConnectOpts, procedure: Procedure, parameters = Buffer.alloc(0)): Promise<void> {
  const [reply] = await sendCalls(address, procedure, [parameters]);
  if (!reply?.results) throw new Error('refused');
}

/**
 * Calls a procedure several times, in one connection. Returns the replies that arrive within the time; others are missing.
 * `credential`: in XDR. @throws Error if the server does not respond at all
 */
export async function sendCalls(
  address: NetConnectOpts,
  { program, version, procedure }: Procedure,
  parameters: Buffer[],
  { credential = NOBODY, timeoutMs = TIMEOUT_MS } = {},
): Promise<Reply[]> {
  const callOf = (index: number, given: Buffer) => {
    const head = words(index, CALL, RPC_VERSION, program, version, procedure);
    const message = Buffer.concat([head, credential, NOBODY, given]);
    return Buffer.concat([words(LAST_FRAGMENT + message.length), message]);
  };
  const { promise, resolve, reject } = Promise.withResolvers<Reply[]>();
  const replies: Reply[] = [];
  let received = Buffer.alloc(0);
  const expire = () => (replies.length > 0 ? resolve(replies) : reject(new Error(`no response in ${timeoutMs} ms`)));
  const timer = setTimeout(expire, timeoutMs);
  const socket = connect(address, () => parameters.forEach((given, index) => socket.write(callOf(index, given))));
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('the server closed the connection')));
  socket.on('data', (data) => {
    received = Buffer.concat([received, data]);
    while (received.length >= 4) {
      const end = 4 + (received.readUInt32BE(0) & (LAST_FRAGMENT - 1));
      if (received.length < end) return;
      replies.push(parseReply(received.subarray(4, end)));
      received = received.subarray(end);
    }
    if (replies.length >= parameters.length) resolve(replies);
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** Record: xid, REPLY, accepted, verifier (2 words), accept status, results. */
function parseReply(record: Buffer): Reply {
  // What listens at the port may not be an RPC server.
  if (record.length < 24) return { index: -1, results: null };
  const isAccepted = record.readUInt32BE(8) === 0 && record.readUInt32BE(20) === 0;
  return { index: record.readUInt32BE(0), results: isAccepted ? record.subarray(24) : null };
}
