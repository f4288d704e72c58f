/**
 * Sends NFSv4.0 compounds to a server, in one connection. Version 4.0, because such requests need no client id: a client id would
 * be recorded, and the next server's grace period would wait for it.
 *
 * Source: RFC 7530 (NFSv4.0), RFC 5531 (ONC RPC).
 */
import { connect, type Socket } from 'node:net';
import { opaque, recordOf, words } from '../xdr.ts';

const [RPC_CALL, RPC_VERSION, NFS, COMPOUND, AUTH_SYS] = [0, 2, 100_003, 1, 1];

export interface CompoundTarget {
  /** The address of the group, which this host has. */
  address: string;
  port: number;
  timeoutMs: number;
}

interface CompoundReply {
  /** The index of the compound. */
  index: number;
  /** How many operations were carried out, and how the last one ended. */
  operations: number;
  status: number;
  /** One after the other: number of the operation, status, and what the operation returns. */
  results: Buffer;
}

/**
 * Each compound is a list of encoded operations. Returns the replies that arrive within the time; others are missing.
 * @throws if the server does not respond at all
 */
export async function sendCompounds(
  { address, port, timeoutMs }: CompoundTarget,
  compounds: Buffer[][],
): Promise<CompoundReply[]> {
  if (compounds.length === 0) return [];
  const socket = connect({ host: address, port, localAddress: address });
  try {
    const replies = readReplies(socket, compounds.length, timeoutMs);
    socket.once('connect', () => compounds.forEach((operations, index) => socket.write(callOf(index, operations))));
    return await replies;
  } finally {
    socket.destroy();
  }
}

function callOf(xid: number, operations: Buffer[]): Buffer {
  const credential = Buffer.concat([words(0), opaque('cloudyard'), words(0, 0, 0)]);
  const call = [
    words(xid, RPC_CALL, RPC_VERSION, NFS, 4, COMPOUND, AUTH_SYS),
    opaque(credential),
    words(0, 0),
    opaque(''),
    words(0, operations.length),
    ...operations,
  ];
  return recordOf(Buffer.concat(call));
}

function readReplies(socket: Socket, expected: number, timeoutMs: number): Promise<CompoundReply[]> {
  return new Promise((resolve, reject) => {
    const replies: CompoundReply[] = [];
    let received = Buffer.alloc(0);
    const timer = setTimeout(() => {
      if (replies.length > 0) resolve(replies);
      else reject(new Error(`no response in ${timeoutMs} ms`));
    }, timeoutMs);
    const fail = (err: Error) => {
      clearTimeout(timer);
      reject(err);
    };
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the server closed the connection')));
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      while (received.length >= 4) {
        const end = 4 + (received.readUInt32BE(0) & 0x7fff_ffff);
        if (received.length < end) return;
        replies.push(parseReply(received.subarray(4, end)));
        received = received.subarray(end);
      }
      if (replies.length < expected) return;
      clearTimeout(timer);
      resolve(replies);
    });
  });
}

/** Record: xid, REPLY, accepted, verifier (2 words), accept status; then status, tag, number of results, results. */
function parseReply(record: Buffer): CompoundReply {
  const index = record.readUInt32BE(0);
  const isAccepted = record.length >= 36 && record.readUInt32BE(8) === 0 && record.readUInt32BE(20) === 0;
  if (!isAccepted) return { index, operations: 0, status: -1, results: Buffer.alloc(0) };
  const tagLength = record.readUInt32BE(28);
  const at = 32 + Math.ceil(tagLength / 4) * 4;
  return {
    index,
    operations: record.readUInt32BE(at),
    status: record.readUInt32BE(24),
    results: record.subarray(at + 4),
  };
}
