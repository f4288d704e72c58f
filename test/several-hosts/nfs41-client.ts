/**
 * A small NFSv4.1 client: opens, locks, writes, and reclaims its state from a server that was restarted or replaced. Kernels do
 * the same, but need a mount and hide what happened. Calls are sequential, over one connection and one slot.
 *
 * Source: RFC 8881 (NFSv4.1), RFC 5531 (ONC RPC).
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { opaque, words } from '../../src/drivers/xdr.ts';

/** The server refused an operation. */
export class NfsError extends Error {
  readonly status: string;
  constructor(operation: number, status: number) {
    const name = STATUSES[status] ?? String(status);
    super(`operation ${operation}: ${name}`);
    this.status = name;
  }
}

/** A file that is open for reading and writing. */
export interface OpenFile {
  handle: Buffer;
  state: Buffer;
  /** The state of the lock; null: it is not locked. */
  lock: Buffer | null;
}

export interface Nfs41Client {
  /** Establishes a client id and a session; the state of an earlier session can be reclaimed. */
  openSession(): Promise<void>;
  /** After the last reclaim, or if nothing is reclaimed. */
  reclaimComplete(): Promise<void>;
  /** Returns the file handle. */
  lookup(path: string): Promise<Buffer>;
  /** Names in a folder are created if they do not exist. */
  open(folder: Buffer, name: string): Promise<OpenFile>;
  /** Opens a file that was open on the earlier server. */
  reclaimOpen(file: OpenFile): Promise<OpenFile>;
  /** Locks the first bytes of a file exclusively. */
  lock(file: OpenFile, options?: { reclaim: boolean }): Promise<void>;
  /** Written durably. */
  write(file: OpenFile, offset: number, data: Buffer): Promise<void>;
  read(file: OpenFile, offset: number, length: number): Promise<Buffer>;
  remove(folder: Buffer, name: string): Promise<void>;
  /** The server forgets the client. Otherwise its next grace period waits for it. */
  leave(): Promise<void>;
  /** Of a host that serves: what the server calls itself. */
  serverOwner(): string;
  /** Unlocks it first. */
  close(file: OpenFile): Promise<void>;
  disconnect(): void;
}

const STATUSES: Record<number, string> = {
  ...{ 1: 'PERM', 2: 'NOENT', 5: 'IO', 13: 'ACCES', 28: 'NOSPC', 30: 'ROFS', 69: 'DQUOT', 70: 'STALE' },
  ...{
    10_001: 'BADHANDLE',
    10_006: 'SERVERFAULT',
    10_008: 'DELAY',
    10_011: 'EXPIRED',
    10_012: 'LOCKED',
    10_013: 'GRACE',
  },
  ...{
    10_022: 'STALE_CLIENTID',
    10_023: 'STALE_STATEID',
    10_025: 'BAD_STATEID',
    10_033: 'NO_GRACE',
    10_034: 'RECLAIM_BAD',
  },
  ...{ 10_052: 'BADSESSION', 10_054: 'COMPLETE_ALREADY', 10_063: 'SEQ_MISORDERED', 10_078: 'DEADSESSION' },
};
const OP = {
  ...{
    CLOSE: 4,
    GETFH: 10,
    LOCK: 12,
    LOCKU: 14,
    LOOKUP: 15,
    OPEN: 18,
    PUTFH: 22,
    PUTROOTFH: 24,
    READ: 25,
    REMOVE: 28,
    WRITE: 38,
  },
  ...{
    EXCHANGE_ID: 42,
    CREATE_SESSION: 43,
    DESTROY_SESSION: 44,
    SEQUENCE: 53,
    DESTROY_CLIENTID: 57,
    RECLAIM_COMPLETE: 58,
  },
};
const [NFS, VERSION, COMPOUND, AUTH_SYS] = [100_003, 4, 1, 1];
const [WRITE_LOCK, FILE_SYNC, ACCESS_BOTH_NO_DELEGATION] = [2, 2, 3 | 0x400];
const [CLAIM_NULL, CLAIM_PREVIOUS, OPEN_DELEGATE_WRITE] = [0, 1, 2];
/** Offset and length as 64-bit numbers: the first 100 bytes. */
const lockedRange = words(0, 0, 0, 100);
const LAST_FRAGMENT = 0x8000_0000;

interface Operation {
  code: number;
  argument: Buffer;
  /** Reads the result. */
  parse?(result: XdrReader): unknown;
}

export function nfs41Client(options: { host: string; port?: number; owner: string; timeoutMs?: number }): Nfs41Client {
  const { host, port = 2049, owner, timeoutMs = 2000 } = options;
  const verifier = randomBytes(8);
  const rpc = rpcConnection({ host, port, timeoutMs });
  let clientId = Buffer.alloc(8);
  let session = Buffer.alloc(16);
  let sequence = 0;
  let serverOwner = '';

  const compound = async (operations: Operation[]): Promise<unknown[]> => {
    const body = operations.flatMap(({ code, argument }) => [words(code), argument]);
    const reply = await rpc.call(Buffer.concat([opaque(''), words(1, operations.length), ...body]));
    reply.word();
    reply.opaque();
    const results: unknown[] = [];
    for (let count = reply.word(); count > 0; count -= 1) {
      const [code, status] = [reply.word(), reply.word()];
      if (status !== 0) throw new NfsError(code, status);
      results.push(operations[results.length]!.parse?.(reply));
    }
    return results;
  };
  /** One request in the session. A request that was not answered may be sent again. */
  const inSession = async (...operations: Operation[]): Promise<unknown[]> => {
    // The server keeps the reply for a repetition, if it is small.
    const keepsReply = operations.every(({ code }) => code !== OP.READ);
    const argument = Buffer.concat([session, words(sequence + 1, 0, 0, keepsReply ? 1 : 0)]);
    const first = { code: OP.SEQUENCE, argument, parse: (reply: XdrReader) => reply.skip(36) };
    const settle = () => (sequence += 1);
    try {
      const results = await compound([first, ...operations]);
      settle();
      return results.slice(1);
    } catch (err) {
      if (err instanceof NfsError) settle();
      throw err;
    }
  };
  const putFh = (handle: Buffer): Operation => ({ code: OP.PUTFH, argument: opaque(handle) });
  const getFh: Operation = { code: OP.GETFH, argument: empty, parse: (reply) => reply.opaque() };
  const openWith = (how: Buffer, claim: Buffer): Operation => ({
    code: OP.OPEN,
    argument: Buffer.concat([words(0, ACCESS_BOTH_NO_DELEGATION, 0), clientId, opaque('open'), how, claim]),
    parse: readOpen,
  });

  return {
    async openSession() {
      const exchange = Buffer.concat([verifier, opaque(owner), words(0, 0, 0)]);
      const [id] = (await compound([{ code: OP.EXCHANGE_ID, argument: exchange, parse: readExchange }])) as [Exchange];
      clientId = id.clientId;
      serverOwner = id.owner;
      const channel = words(0, 1_049_620, 1_049_480, 3428, 8, 8, 0);
      const argument = Buffer.concat([clientId, words(id.sequence, 0), channel, channel, words(0x4000_0000, 1, 0)]);
      const parse = (reply: XdrReader) => {
        const created = reply.bytes(16);
        reply.skip(8);
        for (const _ of [1, 2]) {
          reply.skip(24);
          reply.skip(4 * reply.word());
        }
        return created;
      };
      [session] = (await compound([{ code: OP.CREATE_SESSION, argument, parse }])) as [Buffer<ArrayBuffer>];
      sequence = 0;
    },
    async reclaimComplete() {
      await unless('COMPLETE_ALREADY', inSession({ code: OP.RECLAIM_COMPLETE, argument: words(0) }));
    },
    async lookup(path) {
      const names = path.split('/').filter(Boolean);
      const steps = names.map((name) => ({ code: OP.LOOKUP, argument: opaque(name) }));
      return (await inSession({ code: OP.PUTROOTFH, argument: empty }, ...steps, getFh)).at(-1) as Buffer;
    },
    async open(folder, name) {
      const create = Buffer.concat([words(1, 0, 0), opaque('')]);
      const claim = Buffer.concat([words(CLAIM_NULL), opaque(name)]);
      const [, state, handle] = await inSession(putFh(folder), openWith(create, claim), getFh);
      return { handle: handle as Buffer, state: state as Buffer, lock: null };
    },
    async reclaimOpen({ handle }) {
      const [, state] = await inSession(putFh(handle), openWith(words(0), words(CLAIM_PREVIOUS, 0)));
      return { handle, state: state as Buffer, lock: null };
    },
    async lock(file, { reclaim } = { reclaim: false }) {
      const newOwner = Buffer.concat([words(1, 0), file.state, words(0), clientId, opaque('lock')]);
      const argument = Buffer.concat([words(WRITE_LOCK, reclaim ? 1 : 0), lockedRange, newOwner]);
      file.lock = (await inSession(putFh(file.handle), { code: OP.LOCK, argument, parse: readState }))[1] as Buffer;
    },
    async write({ handle, state }, offset, data) {
      const argument = Buffer.concat([state, hyper(offset), words(FILE_SYNC), opaque(data)]);
      const parse = (reply: XdrReader) => {
        const written = reply.word();
        reply.skip(12);
        return written;
      };
      const [, written] = await inSession(putFh(handle), { code: OP.WRITE, argument, parse });
      if (written !== data.length) throw new Error(`wrote ${String(written)} of ${data.length} bytes`);
    },
    async read({ handle, state }, offset, length) {
      const argument = Buffer.concat([state, hyper(offset), words(length)]);
      const parse = (reply: XdrReader) => {
        reply.word();
        return reply.opaque();
      };
      return (await inSession(putFh(handle), { code: OP.READ, argument, parse }))[1] as Buffer;
    },
    async remove(folder, name) {
      await inSession(putFh(folder), { code: OP.REMOVE, argument: opaque(name), parse: (reply) => reply.skip(20) });
    },
    async leave() {
      await unless('BADSESSION', compound([{ code: OP.DESTROY_SESSION, argument: session }]));
      await unless('STALE_CLIENTID', compound([{ code: OP.DESTROY_CLIENTID, argument: clientId }]));
    },
    serverOwner: () => serverOwner,
    async close(file) {
      const { handle, state, lock } = file;
      if (lock) {
        const unlock = Buffer.concat([words(WRITE_LOCK, 0), lock, lockedRange]);
        await inSession(putFh(handle), { code: OP.LOCKU, argument: unlock, parse: readState });
      }
      const argument = Buffer.concat([words(0), state]);
      await inSession(putFh(handle), { code: OP.CLOSE, argument, parse: readState });
    },
    disconnect: rpc.disconnect,
  };
}

/** Ignores one status: an earlier request, whose response was late, has done it already. */
async function unless(status: string, call: Promise<unknown>): Promise<void> {
  await call.catch((err: unknown) => {
    if (!(err instanceof NfsError) || err.status !== status) throw err;
  });
}

interface Exchange {
  clientId: Buffer<ArrayBuffer>;
  sequence: number;
  owner: string;
}

function readExchange(reply: XdrReader): Exchange {
  const clientId = reply.bytes(8);
  const sequence = reply.word();
  reply.skip(8 + 8);
  const owner = `${reply.opaque().toString()}@${reply.opaque().toString()}`;
  for (let count = reply.word(); count > 0; count -= 1) {
    reply.opaque();
    reply.opaque();
    reply.skip(12);
  }
  return { clientId, sequence, owner };
}

const readState = (reply: XdrReader): Buffer => reply.bytes(16);

/** Returns the state id. */
function readOpen(reply: XdrReader): Buffer {
  const state = reply.bytes(16);
  reply.skip(24);
  reply.skip(4 * reply.word());
  const delegation = reply.word();
  if (delegation > 0 && delegation <= OPEN_DELEGATE_WRITE)
    throw new Error('the server delegates, although it must not');
  // OPEN_DELEGATE_NONE_EXT: the reason, and for two reasons one word more.
  if (delegation === 3 && [1, 2].includes(reply.word())) reply.word();
  return state;
}

interface RpcConnection {
  call(body: Buffer): Promise<XdrReader>;
  disconnect(): void;
}

/** Connects with the first call, and again after a failure. */
function rpcConnection(target: { host: string; port: number; timeoutMs: number }): RpcConnection {
  let socket: Socket | null = null;
  let received = Buffer.alloc(0);
  let xid = randomBytes(4).readUInt32BE() >>> 1;
  let waiting: { xid: number; settle(reply: Buffer | Error): void } | null = null;
  const drop = (reason: Error) => {
    socket?.destroy();
    socket = null;
    received = Buffer.alloc(0);
    waiting?.settle(reason);
    waiting = null;
  };
  const receive = (data: Buffer) => {
    received = Buffer.concat([received, data]);
    while (received.length >= 4) {
      const end = 4 + (received.readUInt32BE(0) & 0x7fff_ffff);
      if (received.length < end) return;
      const record = received.subarray(4, end);
      received = received.subarray(end);
      if (waiting?.xid !== record.readUInt32BE(0)) continue;
      waiting.settle(record);
      waiting = null;
    }
  };
  const open = () => {
    const opened = connect({ host: target.host, port: target.port });
    opened.on('data', receive);
    opened.on('error', (err) => opened === socket && drop(err));
    opened.on('close', () => opened === socket && drop(new Error('the connection was closed')));
    return opened;
  };
  return {
    call(body) {
      xid += 1;
      const credential = Buffer.concat([words(0), opaque('test'), words(0, 0, 0)]);
      const head = [words(xid, 0, 2, NFS, VERSION, COMPOUND, AUTH_SYS), opaque(credential), words(0, 0)];
      const call = Buffer.concat([...head, body]);
      socket ??= open();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => drop(new Error(`no response in ${target.timeoutMs} ms`)), target.timeoutMs);
        waiting = {
          xid,
          settle(reply) {
            clearTimeout(timer);
            if (reply instanceof Error) return reject(reply);
            const reader = xdrReader(reply);
            reader.skip(16);
            reader.opaque();
            return reader.word() === 0 ? resolve(reader) : reject(new Error('the server refused the call'));
          },
        };
        socket!.write(Buffer.concat([words(LAST_FRAGMENT + call.length), call]));
      });
    },
    disconnect: () => drop(new Error('disconnected')),
  };
}

interface XdrReader {
  word(): number;
  bytes(length: number): Buffer<ArrayBuffer>;
  opaque(): Buffer;
  skip(length: number): void;
}

function xdrReader(data: Buffer): XdrReader {
  let at = 0;
  const bytes = (length: number) =>
    Buffer.from(data.subarray(at, (at += Math.ceil(length / 4) * 4))).subarray(0, length);
  const word = () => data.readUInt32BE((at += 4) - 4);
  return { word, bytes, opaque: () => bytes(word()), skip: (length) => void (at += length) };
}

const empty = Buffer.alloc(0);

function hyper(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
