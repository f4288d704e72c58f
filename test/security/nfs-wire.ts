/**
 * A raw NFS client that sends any file handle and any name, from any local address. Libraries and kernels send only
 * handles from the server and names without slashes.
 *
 * Source: RFC 5531 (ONC RPC), RFC 1813 (NFSv3), RFC 7530 (NFSv4.0). Calls are sequential.
 */
import { connect, type Socket } from 'node:net';
import { opaque, words } from '../../src/drivers/xdr.ts';

export interface WireClient {
  /** One NFSv4.0 COMPOUND. Returns the results up to the first failure. */
  compound(...operations: Operation[]): Promise<Result[]>;
  /** One NFSv3 call. Returns its status, or null if the server rejects the call. */
  version3(procedure: number, ...parts: Buffer[]): Promise<number | null>;
  /** NFSv3 LOOKUP of any name. Returns the handle, or null if it fails. */
  find3(folder: Buffer, name: string): Promise<Buffer | null>;
  /** NFSv3 READ. Returns the text, or null if it fails. */
  read3(handle: Buffer): Promise<string | null>;
  close(): void;
}

export interface Operation {
  name: keyof typeof OPERATIONS;
  argument?: Buffer;
}

interface Result {
  name: keyof typeof OPERATIONS;
  status: number;
  /** Result of GETFH. */
  handle: Buffer;
  /** Result of READ and READLINK. */
  text: string;
  /** Result of READDIR. */
  names: string[];
}

export const OK = 0;
const RPC_DENIED = 1;
const NFS = 100_003;
const OPERATIONS = {
  CREATE: 6,
  GETATTR: 9,
  GETFH: 10,
  LOOKUP: 15,
  LOOKUPP: 16,
  PUTFH: 22,
  PUTROOTFH: 24,
  READ: 25,
  READDIR: 26,
  READLINK: 27,
  REMOVE: 28,
  RENAME: 29,
  SAVEFH: 32,
} as const;
const READ_BYTES = 4096;
const LOOKUP3 = 3;
const READ3 = 6;
/** Length of a file's attributes in a response that has them. */
const ATTRIBUTES3_BYTES = 84;

export async function wireClient(port: number, from: string): Promise<WireClient> {
  const { call, close } = await rpc(port, from);
  const succeeded = async (procedure: number, ...parts: Buffer[]) => {
    const answer = await call(3, procedure, Buffer.concat(parts));
    return answer?.word() === OK ? answer : null;
  };
  return {
    close,
    async find3(folder, name) {
      return (await succeeded(LOOKUP3, opaque(asVersion3(folder)), opaque(name)))?.opaque() ?? null;
    },
    async read3(handle) {
      const answer = await succeeded(READ3, opaque(handle), words(0, 0, READ_BYTES));
      if (!answer) return null;
      if (answer.word() === 1) answer.skip(ATTRIBUTES3_BYTES);
      answer.skip(8);
      return answer.opaque().toString();
    },
    async compound(...operations) {
      const answer = await call(4, 1, compoundOf(operations));
      if (!answer) throw new Error('the server does not speak NFSv4');
      return readCompound(answer);
    },
    version3: async (procedure, ...parts) => (await call(3, procedure, Buffer.concat(parts)))?.word() ?? null,
  };
}

export const putFh = (handle: Buffer): Operation => ({ name: 'PUTFH', argument: opaque(handle) });
export const putRoot: Operation = { name: 'PUTROOTFH' };
export const saveFh: Operation = { name: 'SAVEFH' };
export const lookup = (name: string): Operation => ({ name: 'LOOKUP', argument: opaque(name) });
export const lookupParent: Operation = { name: 'LOOKUPP' };
export const getFh: Operation = { name: 'GETFH' };
/** Uses the anonymous stateid. */
export const read: Operation = { name: 'READ', argument: words(0, 0, 0, 0, 0, 0, READ_BYTES) };
export const readlink: Operation = { name: 'READLINK' };
/** Requests only the error attribute of each entry. */
export const readdir: Operation = {
  name: 'READDIR',
  argument: words(0, 0, 0, 0, READ_BYTES, 8 * READ_BYTES, 1, 1 << 11),
};
/** Requests the type of the file. */
export const getattr: Operation = { name: 'GETATTR', argument: words(1, 1 << 1) };
/** Creates a directory without attributes. */
export const makeDirectory = (name: string): Operation => ({
  name: 'CREATE',
  argument: Buffer.concat([words(2), opaque(name), words(0, 0)]),
});
export const remove = (name: string): Operation => ({ name: 'REMOVE', argument: opaque(name) });
export const rename = (from: string, to: string): Operation => ({
  name: 'RENAME',
  argument: Buffer.concat([opaque(from), opaque(to)]),
});

/** Ganesha pads NFSv3 handles to whole words. */
export function asVersion3(handle: Buffer): Buffer {
  return Buffer.concat([handle, Buffer.alloc((4 - (handle.length % 4)) % 4)]);
}

function compoundOf(operations: Operation[]): Buffer {
  const each = operations.flatMap(({ name, argument }) => [words(OPERATIONS[name]), argument ?? Buffer.alloc(0)]);
  return Buffer.concat([opaque(''), words(0, operations.length), ...each]);
}

function readCompound(answer: Reader): Result[] {
  answer.skip(4);
  answer.opaque();
  const results: Result[] = [];
  for (let left = answer.word(); left > 0; left -= 1) {
    const number = answer.word();
    const name = (Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]).find((key) => OPERATIONS[key] === number);
    if (!name) throw new Error(`unknown operation ${number} in the response`);
    const result: Result = { name, status: answer.word(), handle: Buffer.alloc(0), text: '', names: [] };
    results.push(result);
    if (result.status !== OK) break;
    readResult(answer, result);
  }
  return results;
}

function readResult(answer: Reader, result: Result): void {
  const { name } = result;
  if (name === 'GETFH') result.handle = answer.opaque();
  if (name === 'READ') answer.skip(4);
  if (name === 'READ' || name === 'READLINK') result.text = answer.opaque().toString();
  if (name === 'GETATTR') readAttributes(answer);
  if (name === 'REMOVE') answer.skip(20);
  if (name === 'RENAME') answer.skip(40);
  if (name === 'CREATE') answer.skip(20 + answer.word() * 4);
  if (name !== 'READDIR') return;
  answer.skip(8);
  while (answer.word() === 1) {
    answer.skip(8);
    result.names.push(answer.opaque().toString());
    readAttributes(answer);
  }
  answer.skip(4);
}

function readAttributes(answer: Reader): void {
  answer.skip(answer.word() * 4);
  answer.opaque();
}

interface Reader {
  word(): number;
  opaque(): Buffer;
  skip(bytes: number): void;
}

function reader(bytes: Buffer): Reader {
  let at = 0;
  const word = () => bytes.readUInt32BE((at += 4) - 4);
  return {
    word,
    skip: (count) => void (at += count),
    opaque() {
      const length = word();
      const from = at;
      at += Math.ceil(length / 4) * 4;
      return bytes.subarray(from, from + length);
    },
  };
}

interface Rpc {
  /** Returns null if the server denies the call or does not support the version. */
  call(version: number, procedure: number, argument: Buffer): Promise<Reader | null>;
  close(): void;
}

async function rpc(port: number, from: string): Promise<Rpc> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opening = connect({ port, host: '127.0.0.1', localAddress: from }, () => resolve(opening));
    opening.once('error', reject);
  });
  let received = Buffer.alloc(0);
  let xid = 0;
  let settle: { resolve(record: Buffer): void; reject(err: Error): void } | null = null;
  const fail = (err: Error) => settle?.reject(err);
  socket.on('error', fail).on('close', () => fail(new Error('connection closed')));
  socket.on('data', (data) => {
    received = Buffer.concat([received, data]);
    const record = wholeRecord(received);
    if (record) {
      received = Buffer.alloc(0);
      settle?.resolve(record);
    }
  });
  const asRoot = Buffer.concat([words(1), opaque(Buffer.concat([words(0), opaque('test'), words(0, 0, 0)]))]);
  return {
    async call(version, procedure, argument) {
      const head = words((xid += 1), 0, 2, NFS, version, procedure);
      const call = Buffer.concat([head, asRoot, words(0, 0), argument]);
      const answered = new Promise<Buffer>((resolve, reject) => (settle = { resolve, reject }));
      socket.write(Buffer.concat([words(0x8000_0000 + call.length), call]));
      const answer = reader(await answered);
      answer.skip(8);
      if (answer.word() === RPC_DENIED) return null;
      answer.skip(4);
      answer.opaque();
      return answer.word() === OK ? answer : null;
    },
    close: () => socket.destroy(),
  };
}

/** Joins the fragments of a record. Returns null until the last one has arrived. */
function wholeRecord(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const mark = bytes.readUInt32BE(at);
    const end = at + 4 + (mark & 0x7fff_ffff);
    if (end > bytes.length) return null;
    parts.push(bytes.subarray(at + 4, end));
    if (mark >>> 31 === 1) return Buffer.concat(parts);
    at = end;
  }
  return null;
}
