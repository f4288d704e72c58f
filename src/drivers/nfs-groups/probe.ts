/**
 * Probes the exports of a group as a client does: looks a name up that does not exist, in one connection. NFSv4.0, because such
 * a request needs no client id: a client id would be recorded, and the next server's grace period would wait for it.
 *
 * The storage must answer each probe. So an export whose client of Ceph was evicted is noticed, although Ganesha and its other
 * exports work.
 *
 * Source: RFC 7530 (NFSv4.0), RFC 5531 (ONC RPC).
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

const [RPC_CALL, RPC_VERSION, NFS, COMPOUND, AUTH_SYS] = [0, 2, 100_003, 1, 1];
const [PUTROOTFH, LOOKUP] = [24, 15];
const LAST_FRAGMENT = 0x8000_0000;
const NOENT = 2;
const PROBED_NAME = '.cloudyard-probe';

interface ProbeTarget {
  /** The address of the group, which this host has. */
  address: string;
  port: number;
  timeoutMs: number;
}

/** Returns the ids of the shares that respond correctly. @throws if the server does not respond at all */
export async function probeExports({ address, port, timeoutMs }: ProbeTarget, ids: string[]): Promise<Set<string>> {
  const healthy = new Set<string>();
  if (ids.length === 0) return healthy;
  const socket = connect({ host: address, port, localAddress: address });
  try {
    const replies = readReplies(socket, ids.length, timeoutMs);
    socket.once('connect', () => ids.forEach((id, index) => socket.write(callOf(index, ['shares', id, PROBED_NAME]))));
    for (const { xid, operations, status } of await replies) {
      // PUTROOTFH and three LOOKUP: the last one fails.
      if (operations === 4 && status === NOENT) healthy.add(ids[xid]!);
    }
    return healthy;
  } finally {
    socket.destroy();
  }
}

function callOf(xid: number, path: string[]): Buffer {
  const credential = Buffer.concat([words(0), opaque('cloudyard'), words(0, 0, 0)]);
  const call = Buffer.concat([
    words(xid, RPC_CALL, RPC_VERSION, NFS, 4, COMPOUND, AUTH_SYS),
    opaque(credential),
    words(0, 0),
    opaque(''),
    words(0, path.length + 1, PUTROOTFH),
    ...path.flatMap((name) => [words(LOOKUP), opaque(name)]),
  ]);
  return Buffer.concat([words(LAST_FRAGMENT + call.length), call]);
}

interface Reply {
  xid: number;
  /** How many operations were carried out, and how the last one ended. */
  operations: number;
  status: number;
}

/** Replies that have arrived when the time is over; others are missing. */
function readReplies(socket: Socket, expected: number, timeoutMs: number): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const replies: Reply[] = [];
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

/** Record: xid, REPLY, accepted, verifier (2 words), accept status; then status, tag, number of results. */
function parseReply(record: Buffer): Reply {
  const xid = record.readUInt32BE(0);
  const isAccepted = record.length >= 36 && record.readUInt32BE(8) === 0 && record.readUInt32BE(20) === 0;
  if (!isAccepted) return { xid, operations: 0, status: -1 };
  const tagLength = record.readUInt32BE(28);
  return {
    xid,
    operations: record.readUInt32BE(32 + Math.ceil(tagLength / 4) * 4),
    status: record.readUInt32BE(24),
  };
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => bytes.writeUInt32BE(value >>> 0, index * 4));
  return bytes;
}

function opaque(data: Buffer | string): Buffer {
  const bytes = Buffer.from(data);
  return Buffer.concat([words(bytes.length), bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
